//! Invalid configurations and unusable environments: the reported errors and the exit codes.

use crate::lango::{Lango, RunResult, finish};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

fn with_variable(lango: &Lango, name: &str, value: &str) -> RunResult {
    finish(lango.command(&["run", "hello"]).env(name, value), b"")
}

#[test]
fn an_unknown_key_in_a_file_is_reported_with_its_line_and_the_nearest_key() {
    let lango = Lango::new();
    let text = "[agent]\nmaxModelCalls = 9\nmaxDelegationRound = 2\n";
    lango.file("lango.toml", text);
    let place = format!("{}/lango.toml:3", lango.workspace().display());
    let names = [
        &*place,
        "`agent.maxDelegationRound`",
        "did you mean `agent.maxDelegationRounds`?",
        "lango config check",
    ];
    for arguments in [
        &["run", "hello"][..],
        &["agents"],
        &["sessions", "list"],
        &["config", "show"],
        &["config", "check"],
    ] {
        lango.run(arguments).refused(3, &names);
    }
    let file = lango.workspace().join("lango.toml");
    assert_eq!(fs::read_to_string(file).unwrap(), text);
    assert!(!lango.home().exists());
}

#[test]
fn an_unknown_key_in_a_flag_is_a_usage_error() {
    let lango = Lango::new();
    let ran = lango.run(&["-c", "agent.modle=x", "run", "hello"]);
    let ran = ran.refused(2, &["-c: ", "`agent.modle`", "`agent.model`?"]);
    assert!(ran.stderr.contains("lango config show"), "{ran:#?}");
    lango.run(&["config", "show"]).ok();
    let ran = lango.run(&["-c", "agent.multiAgent=perhaps", "run", "hello"]);
    ran.refused(
        2,
        &["-c: ", "`agent.multiAgent`", "`true` or `false`", "perhaps"],
    );
    let ran = lango.run(&["-c", "agent.model", "run", "hello"]);
    ran.refused(2, &["key=value"]);
}

#[test]
fn an_unknown_variable_is_reported_with_the_nearest_one() {
    let lango = Lango::new();
    let ran = with_variable(&lango, "LANGO_MODEL", "x");
    ran.refused(
        3,
        &["LANGO_MODEL", "`LANGO_AGENT_MODEL`?", "lango config check"],
    );
    let ran = with_variable(&lango, "LANGO_AGENT_MAX_TOOL_CALLS", "many");
    ran.refused(3, &["LANGO_AGENT_MAX_TOOL_CALLS", "whole number", "`many`"]);
    with_variable(&lango, "LANGO_AGENT_MAX_TOOL_CALLS", "7").ok();
}

#[test]
fn invalid_toml_is_reported_with_line_and_column() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "[agent]\nmultiAgent = = true\n");
    let place = format!("{}/lango.toml:2:14", lango.home().display());
    let ran = lango.run(&["run", "hello"]);
    ran.refused(3, &[&place, "not valid TOML", "lango config check"]);
}

#[test]
fn with_json_a_failure_is_json_too() {
    let lango = Lango::new();
    lango.file("lango.toml", "agent.colour = 1\n");
    for flag in ["--json", "--jsonl"] {
        let ran = lango.run(&["run", flag, "hello"]).exits(3);
        let failure = ran.json();
        assert_eq!(failure["exit"], 3);
        let error = failure["error"].as_str().unwrap();
        assert!(error.contains("agent.colour"), "{error}");
        assert!(ran.stderr.contains("agent.colour"), "{ran:#?}");
    }
}

#[test]
fn without_a_home_lango_says_which_variable_to_set() {
    let lango = Lango::new();
    let mut command = lango.command(&["run", "hello"]);
    let ran = finish(command.env_remove("LANGO_HOME"), b"");
    ran.refused(3, &["`HOME`", "`LANGO_HOME`"]);
    let home = lango.home().with_file_name("me");
    let mut command = lango.command(&["run", "hello"]);
    finish(command.env_remove("LANGO_HOME").env("HOME", &home), b"").ok();
    assert!(home.join(".local/share/lango/lango.db").is_file());
}

#[test]
fn a_deleted_workspace_is_reported() {
    let lango = Lango::new();
    let gone = lango.workspace().join("gone");
    fs::create_dir(&gone).unwrap();
    let script = "rmdir ../gone && exec \"$0\" \"$@\"";
    for arguments in [&["run", "hello"][..], &["agents"], &["sessions", "list"]] {
        fs::create_dir_all(&gone).unwrap();
        let mut shell = std::process::Command::new("sh");
        let shell = lango.prepare(&mut shell).current_dir(&gone);
        let shell = shell.args(["-c", script, crate::lango::BINARY]);
        let ran = finish(shell.args(arguments), b"");
        ran.refused(3, &["working folder", "change to an existing folder"]);
    }
    assert!(!lango.home().exists());
}

#[test]
fn an_argument_that_is_not_utf_8_is_shown() {
    let lango = Lango::new();
    let wrong = || OsString::from_vec(b"caf\xe9".to_vec());
    for arguments in [
        vec!["run".into(), wrong()],
        vec!["-c".into(), wrong(), "run".into(), "hello".into()],
        vec!["sessions".into(), "show".into(), wrong()],
    ] {
        let ran = finish(&mut lango.command(&arguments), b"");
        ran.refused(2, &["UTF-8", "`caf\u{fffd}`"]);
    }
    assert!(!lango.home().exists());
}

#[test]
fn a_wrong_command_line_is_a_usage_error_with_help() {
    let lango = Lango::new();
    for arguments in [
        &["rnu"][..],
        &["run", "--jsno", "hello"],
        &["run", "--json", "--jsonl", "hello"],
        &["run", "--ephemeral", "--session", "s_1", "hello"],
        &["config", "shwo"],
        &["sessions", "list", "--limit", "many"],
    ] {
        let ran = lango.run(arguments).exits(2);
        assert_eq!(ran.stdout, "", "{arguments:?}");
        assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
        assert!(ran.stderr.contains("help"), "{ran:#?}");
    }
    let ran = lango.run(&["run", "--jsno", "hello"]);
    assert!(ran.stderr.contains("'--json'"), "{ran:#?}");
}

#[test]
fn an_untrusted_project_cannot_send_keys_to_its_own_url() {
    let lango = Lango::new();
    lango.file(
        "lango.toml",
        "agent.model = \"x/y\"\n[providers.x]\nkind = \"openai\"\nbaseUrl = \"http://127.0.0.1:1\"\napiKeyEnv = \"SECRET\"\n",
    );
    let ran = lango.run(&["run", "hello"]).ok();
    for part in [
        "lango.toml:4",
        "providers.x.baseUrl",
        "lango.toml:5",
        "providers.x.apiKeyEnv",
        "lango config trust",
    ] {
        assert!(ran.stderr.contains(part), "no `{part}` in {ran:#?}");
    }
    assert!(ran.stderr.contains("offline/rules"), "{ran:#?}");
    lango.home_file(
        "lango.toml",
        "agent.model = \"offline\"\n[providers.x]\nkind = \"openai\"\nbaseUrl = \"http://127.0.0.1:1\"\n",
    );
    std::fs::remove_file(lango.workspace().join("lango.toml")).unwrap();
    lango.run(&["run", "hello"]).ok();
}

#[test]
fn a_change_of_a_file_that_is_not_toml_names_the_line_as_a_check_does() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "agent.maxCost = 1\nbroken = [\n");
    let place = format!(
        "{}:2:11: not valid TOML",
        lango.home().join("lango.toml").display()
    );
    for command in [
        &["config", "check"][..],
        &["config", "set", "agent.maxCost", "2"],
        &["config", "unset", "agent.maxCost"],
    ] {
        lango.run(command).refused(3, &[&place]);
    }
}
