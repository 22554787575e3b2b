//! What an MCP server can run, see and leave behind, through the real binary. Agents can write the workspace, and a
//! server may have a token and network access, so it must not run their code.

use crate::lango::{Lango, finish, of_type, text};
use crate::mcp::{ALLOW, install_server, private_path, turn, with_toy};
use crate::models::{Provider, flags, run};
use lango_testkit::mcp_server;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns Python code that leaves a file in the workspace, which shows that it ran.
pub(crate) fn planted_code(lango: &Lango) -> String {
    let mark = lango.workspace().canonicalize().unwrap().join("stolen");
    format!("open({:?}, 'w').write('x')\n", mark.display().to_string())
}

pub(crate) fn is_stolen(lango: &Lango) -> bool {
    lango.workspace().join("stolen").exists()
}

/// Calls the server's tool `look` with a path and returns its result.
fn look(lango: &Lango, path: &Path) -> Value {
    let (ran, events) = turn(lango, "toy_look", json!({ "path": path }), &["-c", ALLOW]);
    ran.ok();
    let output = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
    serde_json::from_str(output.lines().nth(1).unwrap()).unwrap()
}

/// Creates a home whose server is a script in the workspace.
fn with_script_in_workspace() -> Lango {
    let lango = Lango::new();
    lango.file("server.py", mcp_server::PROGRAM);
    lango.home_file(
        "lango.toml",
        "[mcp.servers.toy]\ncommand = ['python3', '{workspace}/server.py', '--log', 'log']\nagent = 'navigator'\n",
    );
    lango
}

#[test]
fn a_server_does_not_load_a_module_that_an_agent_wrote() {
    for more in ["", ", 'ROOT={workspace}'"] {
        let lango = Lango::new();
        lango.file("json.py", planted_code(&lango));
        install_server(&lango);
        let folder = lango.home().with_file_name("installed");
        let folder = folder.canonicalize().unwrap();
        let folder = folder.display();
        lango.home_file(
            "lango.toml",
            format!(
                "[mcp.servers.toy]\ncommand = ['python3', '-m', 'server']\nread = ['{folder}']\n\
                 env = ['PYTHONPATH={folder}', 'TOKEN=secret'{more}]\nagent = 'navigator'\n"
            ),
        );
        let ran = lango.run(&["mcp", "test"]);
        assert!(!is_stolen(&lango), "{ran:#?}");
        ran.ok();
    }
}

#[test]
fn a_server_starts_in_a_private_directory_without_langos_loader_variables() {
    const LOADERS: [&str; 16] = [
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PERL5LIB",
        "PERL5OPT",
        "RUBYLIB",
        "RUBYOPT",
        "BASH_ENV",
        "ENV",
        "JAVA_TOOL_OPTIONS",
        "GIT_CONFIG_GLOBAL",
        "GIT_SSH_COMMAND",
    ];
    let lango = with_toy("env = ['PERL5LIB=/chosen']\n");
    lango.run(&["mcp", "test"]).ok();
    let provider = Provider::new(vec![
        delegate_and_finish("navigator", "look"),
        call("toy_look", json!({ "path": "." })),
        say("done"),
    ]);
    let mut arguments = vec!["run".to_owned(), "-c".to_owned(), ALLOW.to_owned()];
    arguments.extend(flags("openai", provider.server.url()));
    arguments.extend(["--json".to_owned(), "look".to_owned()]);
    let mut command = lango.command(&arguments);
    command.envs(LOADERS.map(|name| (name, "/nonexistent")));
    let ran = finish(&mut command, b"").ok();
    let events = lango.events(text(&ran.json()["session"]));
    let output = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
    let seen: Value = serde_json::from_str(output.lines().nth(1).unwrap()).unwrap();
    for name in LOADERS.iter().filter(|name| **name != "PERL5LIB") {
        assert!(seen["env"].get(name).is_none(), "{name}: {seen}");
    }
    assert_eq!(seen["env"]["PERL5LIB"], "/chosen", "{seen}");
    assert_eq!(seen["env"]["PYTHONSAFEPATH"], "1", "{seen}");
    assert_eq!(seen["found"], json!(["log"]), "{seen}");
    let mode = private_path(&lango, "")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_server_whose_command_does_not_name_the_workspace_cannot_access_it() {
    let lango = with_toy("");
    let notes = lango.workspace().canonicalize().unwrap().join("notes.md");
    assert_eq!(look(&lango, &notes)["found"], Value::Null);
    let new = notes.with_file_name("new.txt");
    turn(&lango, "toy_put", json!({ "path": new }), &["-c", ALLOW]);
    assert!(!new.exists());

    let lango = with_toy("env = ['ROOT={workspace}']\n");
    let workspace = lango.workspace().canonicalize().unwrap();
    let seen = look(&lango, &workspace.join("notes.md"));
    assert!(text(&seen["found"]).contains("bread"), "{seen}");
    assert_eq!(text(&seen["env"]["ROOT"]), workspace.to_str().unwrap());
    let new = workspace.join("new.txt");
    turn(&lango, "toy_put", json!({ "path": new }), &["-c", ALLOW]);
    assert!(new.exists());
}

#[test]
fn folders_opened_to_commands_are_not_open_to_servers() {
    let lango = with_toy("");
    let workspace = lango.workspace().canonicalize().unwrap();
    lango.run(&["mcp", "test"]).ok();
    let opened = format!("tools.exec.read=[{workspace:?}]");
    let path = workspace.join("notes.md");
    let flags = ["-c", ALLOW, "-c", &opened];
    let (_, events) = turn(&lango, "toy_look", json!({ "path": path }), &flags);
    let seen = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
    assert!(seen.contains(r#""found": null"#), "{seen}");
}

#[test]
fn a_script_that_agents_can_write_runs_only_with_trusted_content() {
    let lango = with_script_in_workspace();
    let ran = lango.run(&["mcp", "test"]).exits(3);
    let expected =
        "server.py`, and you have not trusted it yet; read it, then run `lango mcp trust toy`";
    assert!(ran.stdout.contains(expected), "{ran:#?}");
    assert!(!private_path(&lango, "log").exists());
    let shown = lango.run(&["mcp", "trust", "toy"]).exits(4);
    assert!(shown.stdout.contains("server.py  new  "), "{shown:#?}");
    assert!(
        shown.stdout.contains("+\"\"\"A scripted MCP server"),
        "{shown:#?}"
    );
    lango.run(&["mcp", "test"]).exits(3);
    let trusted = lango.run(&["mcp", "trust", "toy", "--yes"]).ok();
    assert!(trusted.stdout.contains("\ntrusted: /"), "{trusted:#?}");
    lango.run(&["mcp", "test"]).ok();
    lango.run(&["run", "hello"]).ok();

    lango.file("server.py", planted_code(&lango) + mcp_server::PROGRAM);
    let ran = lango.run(&["mcp", "test"]).exits(3);
    assert!(
        ran.stdout
            .contains("server.py` changed since you trusted it (SHA-256 "),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("then run `lango mcp trust toy`"),
        "{ran:#?}"
    );
    let (ran, events) = turn(&lango, "toy_echo", json!({ "text": "x" }), &["-c", ALLOW]);
    assert!(
        ran.stderr.contains("changed since you trusted it"),
        "{ran:#?}"
    );
    assert!(of_type(&events, "tool.called").is_empty());
    assert!(!is_stolen(&lango));
    let shown = lango.run(&["mcp", "trust", "toy"]).exits(4).stdout;
    assert!(shown.contains("server.py  changed, was "), "{shown}");
    assert!(shown.contains("+open("), "{shown}");
    assert!(!shown.contains("+import threading"), "{shown}");
}

#[test]
fn a_script_in_a_folder_that_commands_can_write_must_be_trusted_too() {
    let lango = with_toy("");
    let folder = lango.home().with_file_name("installed");
    let folder = folder.canonicalize().unwrap();
    let opened = format!("tools.exec.write=[{folder:?}]");
    let ran = lango.run(&["-c", &opened, "mcp", "test"]).exits(3);
    assert!(
        ran.stdout.contains("you have not trusted it yet"),
        "{ran:#?}"
    );
    lango.run(&["mcp", "test"]).ok();
    // A trusted script is checked in every working folder.
    lango
        .run(&["-c", &opened, "mcp", "trust", "toy", "--yes"])
        .ok();
    lango.run(&["-c", &opened, "mcp", "test"]).ok();
    fs::write(folder.join("server.py"), "changed").unwrap();
    let ran = lango.run(&["mcp", "test"]).exits(3);
    assert!(
        ran.stdout.contains("changed since you trusted it"),
        "{ran:#?}"
    );
}

#[test]
fn a_script_replaced_during_the_start_does_not_run() {
    let lango = with_script_in_workspace();
    lango.run(&["mcp", "trust", "toy", "--yes"]).ok();
    let [script, good, bad] = ["server.py", "good", "bad"].map(|name| lango.workspace().join(name));
    let evil = planted_code(&lango) + mcp_server::PROGRAM;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (content, from) in [(evil.as_str(), &bad), (mcp_server::PROGRAM, &good)] {
                    fs::write(from, content).unwrap();
                    fs::rename(from, &script).unwrap();
                    std::thread::sleep(std::time::Duration::from_micros(300));
                }
            }
        });
        for _ in 0..8 {
            lango.run(&["mcp", "test"]);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(!is_stolen(&lango));
    lango.file("server.py", mcp_server::PROGRAM);
    lango.run(&["mcp", "test"]).ok();
}

#[test]
fn a_package_without_an_exact_version_is_not_downloaded() {
    for (command, expected) in [
        (
            "'npx', '-y', '@scope/pkg'",
            "write, for example, `@scope/pkg@1.2.3` in `command`",
        ),
        ("'npx', 'pkg@latest'", "`pkg@latest` has no exact version"),
        (
            "'uvx', 'mcp-server-time'",
            "write, for example, `mcp-server-time==1.2.3`",
        ),
        (
            "'uvx', '--from', 'git+https://example.com/x', 'x'",
            "has no exact version",
        ),
        ("'pipx', 'run', 'pkg'", "`pkg` has no exact version"),
    ] {
        let lango = Lango::new();
        let settings = format!("[mcp.servers.toy]\ncommand = [{command}]\nagent = 'vault'\n");
        lango.home_file("lango.toml", settings);
        let ran = lango.run(&["mcp", "test"]).exits(3);
        assert!(ran.stdout.contains(expected), "{ran:#?}");
        let ran = lango.run(&["run", "hello"]).ok();
        assert!(ran.stderr.contains(expected), "{ran:#?}");
    }
}

#[test]
fn a_command_that_relies_on_the_workspace_as_working_directory_gets_a_hint() {
    let lango = Lango::new();
    lango.file("server.py", mcp_server::PROGRAM);
    let settings = "[mcp.servers.toy]\ncommand = ['python3', 'server.py']\n";
    lango.home_file("lango.toml", settings);
    let ran = lango.run(&["mcp", "test"]).exits(3);
    assert!(
        ran.stdout
            .contains("`server.py` is relative to the server's private directory"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("write `{workspace}/server.py`"),
        "{ran:#?}"
    );

    let lango = Lango::new();
    let keys = install_server(&lango);
    let keys = keys.trim_end_matches(']');
    lango.home_file(
        "lango.toml",
        format!("[mcp.servers.toy]\n{keys}, '--describe', '.']\nagent = 'vault'\n"),
    );
    lango.run(&["mcp", "test"]).ok();
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(
        ran.stderr
            .contains("warning: MCP server `toy`: `.` is relative"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("write `{workspace}`"), "{ran:#?}");
}

#[test]
fn c05_i06_the_orchestrator_does_not_see_the_tools_of_a_server() {
    for (capability, expected) in [
        ("", "- capabilities: scripted"),
        (
            "capability = 'echoes & sums'\n",
            "- capabilities: echoes & sums",
        ),
    ] {
        let lango = with_toy(capability);
        lango.run(&["mcp", "test"]).ok();
        let provider = Provider::new(vec![say("Hello.")]);
        run(&lango, &flags("openai", provider.server.url()), &["hello"]).ok();
        let requests = provider.server.requests();
        let request = &requests[0].body;
        let sent = request.to_string();
        let table = text(&request["messages"][0]["content"]);
        let names = lango.run(&["mcp", "list", "--json"]).ok().json();
        let names = names[0]["tools"].as_array().unwrap().clone();
        assert_eq!(names.len(), 20);
        for name in names.iter().map(|tool| text(&tool["name"])) {
            assert!(!sent.contains(name), "{name}: {sent}");
        }
        for word in ["exec", "fs", "browser", "crypto", "rag"] {
            let is_word = |found: &str| found.eq_ignore_ascii_case(word);
            let inside = |c: char| !c.is_alphanumeric() && c != '_';
            assert!(!sent.split(inside).any(is_word), "{word}: {sent}");
        }
        assert!(table.lines().any(|line| line == expected), "{table}");
    }
}

#[test]
fn files_that_a_server_plants_are_reported_even_if_it_died() {
    for last in ["toy_add", "toy_die"] {
        let lango = with_toy("env = ['ROOT={workspace}']\n");
        let planted = lango.workspace().canonicalize().unwrap().join("src/.env");
        let program = lango.home().with_file_name("installed").join("server.py");
        let at_start = "import os\nopen(os.environ['ROOT'] + '/src/.env', 'w').write('x')\n";
        std::fs::write(program, format!("{at_start}{}", mcp_server::PROGRAM)).unwrap();
        let provider = Provider::new(vec![
            delegate_and_finish("navigator", "write"),
            call(last, json!({ "a": 1, "b": 2 })),
            say("It is done."),
        ]);
        let ran = run(
            &lango,
            &flags("openai", provider.server.url()),
            &["-c", ALLOW, "write"],
        );
        let ran = ran.ok();
        assert!(planted.exists());
        let warning = format!(
            "warning: these files appeared while the MCP server `toy` ran, created by it or by another program: {}; check them",
            planted.display()
        );
        assert!(ran.stderr.contains(&warning), "{last}: {ran:#?}");
    }
}

#[test]
fn files_that_a_server_plants_in_a_call_are_removed_after_it() {
    let lango = with_toy("env = ['ROOT={workspace}']\n");
    let planted = lango.workspace().canonicalize().unwrap().join("src/.env");
    let provider = Provider::new(vec![
        delegate_and_finish("navigator", "write"),
        call("toy_put", json!({ "path": planted })),
        say("It is done."),
    ]);
    let model = flags("openai", provider.server.url());
    let ran = run(&lango, &model, &["-c", ALLOW, "--json", "write"])
        .ok()
        .json();
    assert!(!planted.exists());
    let log = lango.events(text(&ran["session"]));
    let returned = of_type(&log, "tool.returned");
    let output = text(&returned[0]["output"]);
    assert!(
        output.contains("/src/.env`: moved to the trash"),
        "{output}"
    );
}

#[test]
fn with_the_home_as_workspace_a_server_sees_neither_langos_state_nor_other_servers() {
    let lango = Lango::new();
    let keys = install_server(&lango);
    let home = lango.workspace().canonicalize().unwrap();
    lango.file(
        ".config/lango/lango.toml",
        format!(
            "[mcp.servers.toy]\n{keys}\nenv = ['ROOT={{workspace}}']\nagent = 'navigator'\n\
             [mcp.servers.other]\n{keys}\nagent = 'vault'\n"
        ),
    );
    let in_home = |arguments: &[&str]| {
        let mut command = lango.command(arguments);
        command.env_remove("LANGO_HOME").env("HOME", &home);
        finish(&mut command, b"")
    };
    in_home(&["mcp", "test"]).ok();
    let servers = home.join(".local/state/lango-mcp-servers");
    fs::write(servers.join("other/secret"), "secret").unwrap();
    for (path, is_seen) in [
        (home.join("notes.md"), true),
        (servers.join("toy"), true),
        (servers.join("other/secret"), false),
        (home.join(".local/state/lango/mcp/pins.json"), false),
        (home.join(".local/share/lango/trust"), false),
    ] {
        let provider = Provider::new(vec![
            delegate_and_finish("navigator", "look"),
            call("toy_look", json!({ "path": path })),
            say("done"),
        ]);
        let flags = flags("openai", provider.server.url());
        let mut arguments = vec!["run", "-c", ALLOW, "--json", "look"];
        arguments.extend(flags.iter().map(String::as_str));
        let session = in_home(&arguments).ok().json()["session"].clone();
        let shown = in_home(&["sessions", "show", text(&session), "--jsonl"]).ok();
        let events = shown.json_lines();
        let seen = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
        assert_eq!(
            !seen.contains(r#""found": null"#),
            is_seen,
            "{path:?}: {seen}"
        );
    }
    // Commands of agents see neither of them.
    let settings = servers.join("toy/planted");
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "write"),
        call("fs_write", json!({ "path": settings, "content": "x" })),
        say("done"),
    ]);
    let flags = flags("openai", provider.server.url());
    let allow = r#"approval.rules=[{action="allow",tool="fs_*"}]"#;
    let mut arguments = vec!["run", "-c", allow, "--json", "write"];
    arguments.extend(flags.iter().map(String::as_str));
    in_home(&arguments);
    assert!(!settings.exists());
}
