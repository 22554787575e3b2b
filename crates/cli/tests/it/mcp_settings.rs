//! The configuration of MCP servers and the login to them, through the real binary.

use crate::lango::{Lango, finish, finish_child, of_type, text};
use crate::mcp::{ALLOW, install_server, start_count, with_toy};
use crate::models::{Provider, flags};
use lango_testkit::mcp_server;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The scripted server on loopback, in a process that is killed when this value is dropped.
struct ScriptedServer {
    process: Child,
    url: String,
}

impl ScriptedServer {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new("python3")
            .args(["-c", mcp_server::PROGRAM, "--http"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        Self { process, url }
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn an_untrusted_project_starts_no_server_until_it_is_trusted() {
    let lango = Lango::new();
    let keys = install_server(&lango);
    let settings = format!(
        "[mcp.servers.toy]\n{}, '--log', 'log']\nagent = 'navigator'\n",
        keys.trim_end_matches(']')
    );
    lango.file("lango.toml", settings);
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(
        ran.stderr
            .contains("ignored because the project's file is not trusted: mcp.servers.toy.agent"),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("mcp.servers.toy.command"), "{ran:#?}");
    assert_eq!(start_count(&lango), 0);
    assert!(
        lango
            .run(&["mcp", "list"])
            .ok()
            .stdout
            .contains("no MCP servers")
    );
    lango.run(&["config", "trust", "--yes"]).ok();
    lango.run(&["run", "hello"]).ok();
    assert_eq!(start_count(&lango), 1);
}

#[test]
fn an_invalid_server_is_refused_with_the_key() {
    for (settings, expected) in [
        (
            "agent = 'navigator'",
            "mcp.servers.x: `command` or `url` must be set",
        ),
        ("command = ['a']\nurl = 'https://a'", "set only one"),
        ("url = 'ftp://a'", "`ftp://a` is not an address"),
        (
            "url = 'http://example.com'\ntokenEnv = 'T'",
            "lango does not send a token over http:// to another machine",
        ),
        (
            "url = 'http://127.0.0.1.example.com'\ntokenEnv = 'T'",
            "lango does not send a token over http:// to another machine",
        ),
        (
            "url = 'http://127.0.0.1:80@example.com'\ntokenEnv = 'T'",
            "lango does not send a token over http:// to another machine",
        ),
        (
            "command = 'a b'",
            "`mcp.servers.x.command` must be a program and its arguments as a list",
        ),
        (
            "command = []",
            "`mcp.servers.x.command` must be a program and its arguments as a list",
        ),
        (
            "command = ['a']\nenv = ['A B=1']",
            "`mcp.servers.x.env` must be a list such as",
        ),
        (
            "command = ['a']\nprefix = 'a b'",
            "`mcp.servers.x.prefix` must be up to 32 letters",
        ),
        (
            "command = ['a']\ncapability = 'issue tracking'",
            "needs `agent`",
        ),
        (
            "command = ['a']\nagent = 'vault'\ncapability = \"two\\nlines\"",
            "`mcp.servers.x.capability` must be one line of up to 80 characters",
        ),
        (
            "command = ['a']\nagent = 'vault'\ncapability = 'calls fs_read'",
            "mcp.servers.x: `capability` contains `fs_read`, which is the name of a tool",
        ),
        (
            "command = ['a']\nagent = 'vault'\ncapability = 'the browser'",
            "`capability` contains `browser`, which a model takes for the name of an agent",
        ),
        (
            "command = ['a']\nagent = 'vault'\ncapability = 'asks the researcher'",
            "`capability` contains `researcher`, which is the name of an agent",
        ),
        ("comand = ['a']", "unknown key `mcp.servers.x.comand`"),
    ] {
        let lango = Lango::new();
        lango.home_file("lango.toml", format!("[mcp.servers.x]\n{settings}\n"));
        lango.run(&["mcp", "list"]).refused(3, &[expected]);
    }
    let lango = Lango::new();
    lango.home_file("lango.toml", "[mcp.servers.'a b']\ncommand = ['a']\n");
    lango
        .run(&["mcp", "list"])
        .refused(3, &["1 to 32 letters, digits"]);
}

#[test]
fn an_unknown_agent_is_a_clear_error() {
    let lango = with_toy("");
    lango.run(&["mcp", "test"]).ok();
    lango
        .run(&["-c", "mcp.servers.toy.agent=navigatr", "run", "hello"])
        .refused(3, &["is assigned to the agent `navigatr`, which does not exist; the agents are `operator`, `navigator`"]);
}

#[test]
fn without_an_agent_the_prefix_decides_the_owner_and_unmatched_tools_are_reported() {
    let lango = with_toy("");
    let flags = [
        "-c",
        "mcp.servers.toy.agent=vault",
        "-c",
        "mcp.servers.toy.tools=add",
    ];
    let ran = lango.run(&[&flags[..], &["run", "hello"]].concat()).ok();
    assert!(!ran.stderr.contains("no agent owns"), "{ran:#?}");
    lango.home_file(
        "lango.toml",
        format!(
            "[mcp.servers.toy]\n{}\ntools = ['add']\n",
            install_server(&lango)
        ),
    );
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(
        ran.stderr
            .contains("no agent owns these tools, so they cannot run: toy_add"),
        "{ran:#?}"
    );
    let ran = lango
        .run(&["-c", "mcp.servers.toy.prefix=browser_", "agents"])
        .ok();
    assert!(ran.stdout.contains("tools: browser_add"), "{ran:#?}");
}

#[test]
fn variables_are_passed_by_name_and_shown_without_their_values() {
    let lango = with_toy("env = ['PASSED', 'SET=secret-value']\n");
    let mut command = lango.command(&["mcp", "test"]);
    let ran = finish(&mut command, b"").exits(3);
    assert!(
        ran.stdout
            .contains("the environment variable `PASSED` is not set"),
        "{ran:#?}"
    );
    let provider = Provider::new(vec![
        delegate_and_finish("navigator", "look"),
        call("toy_look", json!({ "path": "notes.md" })),
        say("done"),
    ]);
    let mut arguments = vec!["run".to_owned(), "-c".to_owned(), ALLOW.to_owned()];
    arguments.extend(flags("openai", provider.server.url()));
    arguments.extend(["--json".to_owned(), "look".to_owned()]);
    let mut command = lango.command(&arguments);
    command.env("PASSED", "from-outside");
    let ran = finish(&mut command, b"").ok();
    let events = lango.events(text(&ran.json()["session"]));
    let seen = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
    assert!(
        seen.contains(r#""PASSED": "from-outside""#) && seen.contains(r#""SET": "secret-value""#),
        "{seen}"
    );
    assert!(!seen.contains("LANGO_HOME"), "{seen}");
    let shown = lango.run(&["config", "show"]).ok().stdout;
    assert!(
        shown.contains(r#"mcp.servers.toy.env = ["PASSED", "SET=…"]"#),
        "{shown}"
    );
    assert!(!shown.contains("secret-value"));
}

#[test]
fn an_http_server_needs_one_login_and_then_works() {
    let server = ScriptedServer::start(&["--oauth", "well"]);
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        format!(
            "[mcp.servers.toy]\nurl = '{}'\nagent = 'vault'\n",
            server.url
        ),
    );
    let ran = lango.run(&["mcp", "test"]).exits(3);
    assert!(ran.stdout.contains("run `lango mcp login toy`"), "{ran:#?}");

    let mut command = lango.command(&["mcp", "login", "toy"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stderr.take().unwrap()).lines();
    let page = output.find_map(|line| {
        line.unwrap()
            .trim()
            .strip_prefix("http")
            .map(|rest| format!("http{rest}"))
    });
    let browser = "import sys, urllib.request as u; u.build_opener(u.ProxyHandler({})).open(sys.argv[1]).read()";
    let browsed = Command::new("python3")
        .args(["-c", browser, &page.unwrap()])
        .status()
        .unwrap();
    assert!(browsed.success());
    let ran = finish_child(child, b"").ok();
    assert!(ran.stdout.contains("logged in to `toy`"), "{ran:#?}");

    let ran = lango.run(&["mcp", "test"]).ok();
    assert!(ran.stdout.contains("✓ toy  scripted 1.0"), "{ran:#?}");
    lango
        .run(&["mcp", "login", "toy"])
        .refused(2, &["the server accepts lango without it"]);
    assert!(
        lango
            .run(&["mcp", "logout", "toy"])
            .ok()
            .stdout
            .contains("deleted the stored access")
    );
    lango.run(&["mcp", "test"]).exits(3);
    lango
        .run(&["mcp", "login", "nobody"])
        .refused(2, &["there is no MCP server `nobody`"]);
}
