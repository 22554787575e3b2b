//! `lango doctor`, `lango config` and the help pages.

use crate::disk::Disk;
use crate::lango::{BINARY, Lango, finish, text};
use crate::models::{Provider, flags};
use lango_testkit::model::say;
use lango_testkit::wire_server::{ClosedPort, Fault};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn doctor_lists_what_a_turn_needs_and_changes_nothing() {
    let lango = Lango::new();
    let shown = lango.run(&["doctor"]).ok().stdout;
    let is_well = |line: &str| {
        ["✓ ", "– ", "      "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    assert!(shown.lines().all(is_well), "{shown}");
    for part in [
        "✓ sandbox        full (",
        "limits: processes by ",
        "✓ reach          read: nothing more; write: nothing more; network: closed\n",
        "– model          offline/rules (built-in rules, not an AI model), so there is no test call; connect a model with `lango setup`\n",
        "/home (does not exist yet)\n",
        "keys.toml (does not exist, optional)\n",
        "✓ agents         operator, vault, librarian, planner, chronicler; unavailable: navigator (no tools)\n",
        "– browser        none: `browser.enabled` is false; set it to \"auto\" to use a browser\n",
        "– web search     none; search_web needs a search service",
        "lango.toml (does not exist, optional)\n",
        "lango.db (created by the first turn)\n",
    ] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
    assert!(shown.contains(&format!("{}\n", lango.workspace().display())));
    let rows = lango.run(&["doctor", "--json"]).json();
    let absent = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["absent"] == true);
    let absent: Vec<&str> = absent.map(|row| text(&row["name"])).collect();
    assert_eq!(absent, ["browser", "web search", "model", "payments"]);
    assert!(!lango.home().exists());

    lango.session("hello");
    let before = lango.stored_files();
    lango.run(&["doctor"]).ok();
    assert_eq!(lango.stored_files(), before);
}

#[test]
fn doctor_calls_the_model_once() {
    let provider = Provider::new(vec![say("ok")]);
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let shown = lango.run(&[&["doctor"], &*flags].concat()).ok().stdout;
    assert!(
        shown.contains("✓ model          mock/any (agent.model); answered in "),
        "{shown}"
    );
    let offline = lango
        .run(&[&["doctor", "--offline"], &*flags].concat())
        .ok()
        .stdout;
    assert!(
        offline.contains("mock/any (agent.model); not called\n"),
        "{offline}"
    );
    assert_eq!(provider.server.requests().len(), 1);
}

#[test]
fn doctor_says_what_to_do_about_a_model_that_does_not_answer() {
    let unreachable = ClosedPort::new();
    let refusing = Provider::new(vec![Fault::BadKey]);
    for (url, cause) in [
        (unreachable.url(), "Connection refused"),
        (refusing.server.url(), "key is not accepted"),
    ] {
        let flags = flags("openai", url);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let shown = Lango::new()
            .run(&[&["doctor"], &*flags].concat())
            .exits(3)
            .stdout;
        let (_, row) = shown
            .split_once("✗ model          mock/any (agent.model)\n")
            .unwrap();
        for part in [
            url,
            cause,
            "next: fix the cause, or connect another model with `lango setup`",
        ] {
            assert!(row.contains(part), "no `{part}` in {shown}");
        }
        assert_eq!(shown.matches("✗").count(), 1, "{shown}");
    }
}

#[test]
fn doctor_writes_to_every_folder_and_leaves_nothing_behind() {
    let disk = Disk::with_size("4m");
    let lango = Lango::new().using_home(&disk.path().join("home"));
    lango.session("hello");
    lango.home_file("trash/x", "");
    let before = lango.stored_files();
    let shown = lango.run(&["doctor"]).ok().stdout;
    for name in ["✓ data folder", "✓ trash", "✓ workspace"] {
        assert!(shown.contains(name), "{shown}");
    }
    assert_eq!(lango.stored_files(), before);
    disk.make_read_only();
    let shown = lango.run(&["doctor"]).exits(3).stdout;
    for name in ["✗ data folder", "✗ trash"] {
        assert!(shown.contains(name), "{shown}");
    }
    assert!(shown.contains("Read-only file system"), "{shown}");
    assert!(shown.contains("next: make it writable"), "{shown}");
    let absent = Lango::new().using_home(&disk.path().join("absent"));
    let shown = absent.run(&["doctor"]).exits(3).stdout;
    assert!(shown.contains("✗ data folder"), "{shown}");
}

#[test]
fn paths_lists_files_with_their_sizes_and_how_to_uninstall() {
    let lango = Lango::new();
    let shown = lango.run(&["paths"]).ok().stdout;
    assert!(shown.contains("keys.toml  (does not exist)"), "{shown}");
    assert!(
        shown.contains("to uninstall: cargo uninstall lango-cli"),
        "{shown}"
    );
    assert!(!lango.home().exists());
    lango.session("hello");
    lango.home_file("lango.toml", "agent.maxToolCalls = 7\n");
    let listing = lango.run(&["paths", "--json"]).ok().json();
    let rows = listing["paths"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| text(&row["name"])).collect();
    let expected = [
        "configuration",
        "credentials",
        "data",
        "database",
        "trash",
        "state",
        "chat history",
        "cache",
        "MCP servers",
        "agents",
        "skills",
    ];
    assert_eq!(names, expected);
    assert_eq!(rows[0]["bytes"], 23);
    assert_eq!(rows[1]["exists"], false);
    assert!(rows[2]["bytes"].as_u64() > rows[3]["bytes"].as_u64());
    let remove = listing["uninstall"]["remove"].as_array().unwrap();
    assert_eq!(remove, &[Value::from(lango.home().to_str().unwrap())]);
    // Also with a configuration that cannot be read.
    lango.home_file("lango.toml", "nonsense");
    let ran = lango.run(&["paths"]).ok();
    assert!(ran.stdout.contains("lango.db"), "{ran:#?}");
    assert!(
        ran.stderr.contains("the configuration cannot be read"),
        "{ran:#?}"
    );
}

#[test]
fn doctor_does_not_turn_an_empty_file_into_a_database() {
    let lango = Lango::new();
    lango.home_file("lango.db", "");
    lango.run(&["doctor"]).ok();
    assert_eq!(fs::read(lango.database()).unwrap(), b"");
}

#[test]
fn doctor_says_what_to_do_about_a_problem() {
    let lango = Lango::new();
    lango.file("lango.toml", "agent.modle = 'x'\nagent.colour = 'red'\n");
    let ran = lango.run(&["doctor"]).exits(3);
    let file = lango.workspace().join("lango.toml");
    let expected = format!(
        "✗ configuration  {file}:1: unknown key `agent.modle`; did you mean `agent.model`?\n                 \
         {file}:2: unknown key `agent.colour`\n                   \
         next: fix the problems above, for example with `lango config edit`; `lango config check` checks the configuration again\n",
        file = file.display()
    );
    assert_eq!(ran.stdout, expected);
    let found = lango.run(&["doctor", "--json"]).exits(3).json();
    assert_eq!(found[0]["name"], "configuration");
    assert_eq!(found[0]["ok"], false);
    assert!(text(&found[0]["detail"]).contains("agent.modle"));
}

#[test]
fn a_bad_configuration_has_the_same_exit_code_for_every_command() {
    let lango = Lango::new();
    let commands: [&[&str]; 5] = [
        &["doctor"],
        &["doctor", "--json"],
        &["agents"],
        &["config", "check"],
        &["run", "hello"],
    ];
    for command in commands {
        let flagged = [&["-c", "agent.maxToolCalls=many"], command].concat();
        lango.run(&flagged).exits(2);
    }
    lango.home_file("lango.toml", "agent.maxToolCalls = 'many'\n");
    for command in commands {
        lango.run(command).exits(3);
    }
}

#[test]
fn doctor_prints_json() {
    let found = Lango::new().run(&["doctor", "--json"]).ok().json();
    let rows = found.as_array().unwrap();
    assert!(rows.iter().all(|row| row["ok"] == true), "{found}");
    let names: Vec<&str> = rows.iter().map(|row| text(&row["name"])).collect();
    let expected = [
        "lango",
        "user file",
        "project file",
        "keys",
        "data folder",
        "workspace",
        "sandbox",
        "reach",
        "egress",
        "browser",
        "web search",
        "model",
        "agents",
        "sessions",
        "vault",
        "payments",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_shown_configuration_loads_to_the_same_settings() {
    let lango = Lango::new();
    lango.file(
        "lango.toml",
        "[agent]\ntopology = 'classic'\nturnTimeout = '90s'\n",
    );
    let shown = lango.run(&["config", "show"]).ok().stdout;
    shown.parse::<toml::Table>().unwrap();
    assert!(shown.contains("\nagent.turnTimeout = \"90s\"\n"), "{shown}");
    let other = Lango::with_home(lango.home());
    other.file("lango.toml", &shown);
    assert_eq!(other.run(&["config", "show"]).ok().stdout, shown);
}

#[test]
fn origins_name_the_layer_and_the_line() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "\nagent.maxToolCalls = 1\n");
    lango.file("lango.toml", "[agent]\nstrictTools = true\n");
    let mut command = lango.command(&["-c", "agent.maxModelCalls=3", "config", "show", "--origin"]);
    let ran = finish(command.env("LANGO_AGENT_TOOL_TIMEOUT", "5s"), b"").ok();
    let origin = |assignment: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(assignment));
        line.unwrap().split("  ").last().unwrap().trim().to_owned()
    };
    let file = |folder: &Path, line: u32| format!("{}/lango.toml:{line}", folder.display());
    assert_eq!(origin("agent.maxToolCalls = 1 "), file(lango.home(), 2));
    assert_eq!(
        origin("agent.strictTools = true "),
        file(&lango.workspace(), 2)
    );
    assert_eq!(
        origin("agent.toolTimeout = \"5s\" "),
        "LANGO_AGENT_TOOL_TIMEOUT"
    );
    assert_eq!(origin("agent.maxModelCalls = 3 "), "-c");
    assert_eq!(origin("agent.multiAgent = true "), "default");
}

#[test]
fn config_check_reports_success_or_the_problems() {
    let lango = Lango::new();
    let ran = lango.run(&["config", "check"]).ok();
    let keys = plain_keys();
    assert_eq!(
        ran.stdout,
        format!("ok: {keys} keys, 6 agents, offline/rules\n")
    );
    let ran = lango.run(&["-c", "agent.topology=nix", "config", "check"]);
    ran.refused(3, &["`nix`", "specialists, classic"]);
    let ran = lango.run(&["-c", "agent.model=x", "config", "check"]);
    ran.refused(3, &["`x`", "provider/model", "lango models"]);
    assert!(!lango.home().exists());
}

#[test]
fn every_help_page_has_examples() {
    let lango = Lango::new();
    for page in [
        &["--help"][..],
        &["run"],
        &["agents"],
        &["sessions"],
        &["config"],
        &["setup"],
    ] {
        for flag in ["-h", "--help"] {
            let arguments = [page, &[flag]].concat();
            let shown = lango.run(&arguments).ok().stdout;
            assert!(shown.contains("\nExamples:\n  "), "{page:?}: {shown}");
            let lines = shown.lines().filter(|line| line.chars().count() > 100);
            assert_eq!(lines.count(), 0, "too wide: {shown}");
        }
    }
    let exit_codes = "Exit codes: 0 ok, 1 the turn failed, 2 usage";
    let shown = lango.run(&["--help"]).ok().stdout;
    assert!(shown.replace('\n', " ").contains(exit_codes), "{shown}");
}

#[test]
fn the_examples_of_the_help_pages_work() {
    let lango = Lango::new();
    lango.file("error.log", "it broke\n");
    lango.file("screen.png", crate::attachments::PIXEL);
    // The examples run `lango`, so a program of this name must be in PATH.
    let folder = Path::new(BINARY).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let mut tried = 0;
    for page in ["run", "agents", "config"] {
        let shown = lango.run(&[page, "--help"]).ok().stdout;
        let (_, examples) = shown.split_once("Examples:\n").unwrap();
        let examples = examples.lines().map(str::trim);
        // These need a session, a model that writes JSON, or an editor.
        let needs = ["--session", "--schema", "--continue", "config edit"];
        let can_run = |line: &&str| !needs.iter().any(|need| line.contains(need));
        for example in examples.filter(can_run) {
            let mut shell = Command::new("sh");
            let shell = lango.prepare(&mut shell).env("PATH", &path);
            let ran = finish(shell.args(["-c", example]), b"");
            assert_eq!(ran.code, Some(0), "{example}: {ran:#?}");
            tried += 1;
        }
    }
    assert!(tried >= 9, "{tried}");
    assert!(lango.workspace().join("answer.md").is_file());
}

#[test]
fn the_version_is_printed() {
    let ran = Lango::new().run(&["--version"]).ok();
    assert_eq!(ran.stdout, format!("lango {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_shown_configuration_is_json_with_every_origin() {
    let lango = Lango::new();
    let mut command = lango.command_with_defaults(&["config", "show", "--json"]);
    let shown = finish(&mut command, b"").ok().json();
    let Value::Object(keys) = shown else {
        panic!("{shown}");
    };
    assert_eq!(keys.len(), plain_keys());
    assert!(keys.values().all(|value| value["origin"] == "default"));
}

/// Counts the keys without a part that the user chooses.
fn plain_keys() -> usize {
    let is_plain = |key: &&lango_config::Key| !key.name.contains('<');
    lango_config::KEYS.iter().filter(is_plain).count()
}

#[test]
fn a_home_that_cannot_be_created_fails_the_check_and_a_turn_says_so() {
    let lango = Lango::new();
    let home = |arguments: &[&str]| {
        let mut command = lango.command(arguments);
        finish(command.env("LANGO_HOME", "/proc/nope"), b"")
    };
    let shown = home(&["doctor", "--offline"]).exits(3).stdout;
    let failed = "✗ data folder    /proc/nope cannot be written: it cannot be created in `/proc`\n";
    assert!(shown.contains(failed), "{shown}");
    let refused = home(&["run", "hello"]);
    let stderr = refused.stderr.clone();
    refused.refused(
        3,
        &["the folder `/proc/nope` cannot be created", "LANGO_HOME"],
    );
    assert!(!stderr.contains("backup"), "{stderr}");
}
