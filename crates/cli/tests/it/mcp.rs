//! MCP servers through the real binary: the list, the test, trust, and turns that call their tools.

use crate::lango::{Lango, PATIENCE, Ran, of_type, text};
use crate::models::{Provider, flags, run};
use crate::terminal::Terminal;
use lango_testkit::mcp_server;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const ALLOW: &str = r#"approval.rules=[{action="allow",tool="toy_*"}]"#;

/// A home whose configuration names the scripted server `toy`, which belongs to the navigator. It is installed where
/// agents cannot write, and writes what it is told to `log` in its private directory.
pub fn with_toy(more: &str) -> Lango {
    let lango = Lango::new();
    let settings = format!(
        "[mcp.servers.toy]\n{}, '--log', 'log', '--describe-file', 'told']\nagent = 'navigator'\n{more}\n",
        installed(&lango).trim_end_matches(']')
    );
    lango.home_file("lango.toml", settings);
    lango
}

/// Installs the scripted server outside of the workspace; gives the keys that start it.
pub fn installed(lango: &Lango) -> String {
    let folder = lango.home().with_file_name("installed");
    fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let program = folder.join("server.py");
    fs::write(&program, mcp_server::PROGRAM).unwrap();
    let (folder, program) = (folder.display(), program.display());
    format!("read = ['{folder}']\ncommand = ['python3', '{program}']")
}

/// A path in the private directory of the server.
pub fn private(lango: &Lango, name: &str) -> PathBuf {
    lango.home().join("mcp-servers/toy").join(name)
}

/// Changes what the tool `echo` is said to do.
fn tell(lango: &Lango, description: &str) {
    fs::write(private(lango, "told"), description).unwrap();
}

/// How often the server was started.
pub fn starts(lango: &Lango) -> usize {
    let log = fs::read_to_string(private(lango, "log")).unwrap_or_default();
    let messages = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter(|message| message["method"] == "initialize")
        .count()
}

/// A turn in which the navigator calls a tool with a model that follows a script.
pub fn turn(lango: &Lango, tool: &str, arguments: Value, more: &[&str]) -> (Ran, Vec<Value>) {
    let script = vec![
        delegate_and_finish("navigator", "use the tool"),
        call(tool, arguments),
        say("It is done."),
    ];
    let provider = Provider::new(script);
    let mut asked = vec!["--json", "use the tool"];
    asked.extend(more);
    let ran = run(lango, &flags("openai", provider.server.url()), &asked);
    let session = ran.json()["session"].clone();
    let events = lango.events(text(&session));
    (ran, events)
}

/// Whether the server was told to call something.
fn called(lango: &Lango) -> bool {
    let log = fs::read_to_string(private(lango, "log")).unwrap_or_default();
    log.contains("\"tools/call\"")
}

/// Waits until something holds.
#[track_caller]
fn until(mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "it never came to be");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a program runs in the server's private directory.
fn is_running(lango: &Lango) -> bool {
    let private = private(lango, "").canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut folders =
        processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    folders.any(|folder| folder.starts_with(&private))
}

#[test]
fn an_orchestrated_turn_calls_a_servers_tool_through_the_agent_that_was_given_it() {
    let lango = with_toy("");
    let (ran, events) = turn(
        &lango,
        "toy_echo",
        json!({ "text": "across" }),
        &["-c", ALLOW],
    );
    let ran = ran.ok();
    assert_eq!(ran.json()["answer"], "It is done.");
    let called = of_type(&events, "tool.called");
    assert_eq!(
        (text(&called[0]["author"]), text(&called[0]["tool"])),
        ("navigator", "toy_echo")
    );
    let returned = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
    assert!(
        returned.starts_with("[untrusted: MCP server toy, tool echo]"),
        "{returned}"
    );
    assert!(returned.contains("\nacross\n"), "{returned}");
    let session = ran.json()["session"].clone();
    let shown = lango.run(&["sessions", "show", text(&session)]).ok().stdout;
    assert!(shown.contains("navigator ✓ across\n"), "{shown}");
    assert!(!is_running(&lango), "the server outlived the command");
}

#[test]
fn the_tools_of_a_server_are_asked_for_unless_a_rule_allows_them() {
    let lango = with_toy("");
    let (ran, events) = turn(&lango, "toy_echo", json!({ "text": "x" }), &[]);
    let ran = ran.exits(4);
    assert_eq!(ran.json()["denied"][0]["tool"], "toy_echo");
    assert_eq!(
        text(&of_type(&events, "approval.requested")[0]["reason"]),
        "it changes something, and no rule allows it"
    );
}

#[test]
fn a_server_is_connected_once_to_be_pinned_and_then_only_when_it_is_called() {
    let lango = with_toy("");
    lango.run(&["run", "hello"]).ok();
    assert_eq!(starts(&lango), 1);
    for command in [
        &["run", "hello"] as &[&str],
        &["agents"],
        &["mcp", "list"],
        &["doctor"],
        &["config", "check"],
    ] {
        lango.run(command).ok();
        assert_eq!(starts(&lango), 1, "{command:?}");
    }
    turn(&lango, "toy_add", json!({ "a": 1, "b": 2 }), &["-c", ALLOW])
        .0
        .ok();
    assert_eq!(starts(&lango), 2);
}

#[test]
fn commands_that_use_no_tools_start_no_server_and_a_run_that_keeps_nothing_neither() {
    let lango = with_toy("");
    for command in [
        &["mcp", "list"] as &[&str],
        &["agents"],
        &["doctor"],
        &["sessions", "list"],
        &["run", "--ephemeral", "hello"],
    ] {
        lango.run(command).ok();
        assert_eq!(starts(&lango), 0, "{command:?}");
    }
    let ran = lango.run(&["run", "--ephemeral", "hello"]).ok();
    assert!(
        ran.stderr.contains("`lango mcp test toy` connects to it"),
        "{ran:#?}"
    );
    assert!(
        lango
            .run(&["agents"])
            .ok()
            .stdout
            .contains("those of the MCP server `toy` (they are not known yet")
    );
}

#[test]
fn the_list_and_the_test_show_the_server_its_tools_and_who_holds_them() {
    let lango = with_toy("tools = ['echo', 'add']\nprefix = 'web.'\n");
    let listed = lango.run(&["mcp", "list", "--json"]).ok().json();
    assert_eq!(
        (&listed[0]["pinned"], &listed[0]["tools"]),
        (&json!(false), &json!([]))
    );
    let ran = lango.run(&["mcp", "test"]).ok();
    assert!(
        ran.stdout
            .starts_with("✓ toy  scripted 1.0  protocol 2025-11-25  20 tools"),
        "{ran:#?}"
    );
    assert!(!is_running(&lango));
    let tested = lango.run(&["mcp", "test", "toy", "--json"]).ok().json();
    assert_eq!(
        (&tested[0]["ok"], &tested[0]["protocol"]),
        (&json!(true), &json!("2025-11-25"))
    );
    let listed = lango.run(&["mcp", "list", "--json"]).ok().json();
    let names: Vec<&str> = listed[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| text(&tool["name"]))
        .collect();
    assert_eq!(names, ["web.add", "web.echo"]);
    assert_eq!(listed[0]["tools"][0]["owner"], "navigator");
    assert_eq!(listed[0]["tools"][0]["state"], "pinned");
    let agents = lango.run(&["agents"]).ok().stdout;
    assert!(agents.contains("Can do: scripted.\n"), "{agents}");
    assert!(agents.contains("tools: web.add, web.echo"), "{agents}");
    let doctor = lango.run(&["doctor"]).ok().stdout;
    assert!(
        doctor.contains("✓ MCP server     toy: 2 tools pinned"),
        "{doctor}"
    );
}

#[test]
fn a_server_that_does_not_answer_fails_the_test_with_its_last_words_and_disturbs_no_turn() {
    let lango = with_toy("");
    let settings = fs::read_to_string(lango.home().join("lango.toml")).unwrap();
    let keys = installed(&lango);
    let bad = format!(
        "[mcp.servers.bad]\n{}, '--exit', '4']\n",
        keys.trim_end_matches(']')
    );
    lango.home_file("lango.toml", settings + &bad);
    let ran = lango.run(&["mcp", "test"]).exits(3);
    assert!(
        ran.stdout
            .contains("✗ bad  it did not finish the handshake: its program ended with code 4"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout.contains("\n  | cannot find my settings"),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("✓ toy"), "{ran:#?}");
    let tested = lango.run(&["mcp", "test", "--json"]).exits(3).json();
    assert_eq!(
        (&tested[0]["ok"], text(&tested[0]["stderr"]).trim()),
        (&json!(false), "cannot find my settings")
    );
    let ran = lango.run(&["run", "hello"]).ok();
    assert!(
        ran.stderr
            .contains("warning: MCP server `bad`: it did not finish the handshake"),
        "{ran:#?}"
    );
    lango
        .run(&["mcp", "test", "nobody"])
        .refused(2, &["there is no MCP server `nobody`; there are bad, toy"]);
}

#[test]
fn a_tool_that_changed_is_asked_for_each_time_until_the_server_is_trusted() {
    let lango = with_toy("");
    lango.run(&["mcp", "test"]).ok();
    tell(&lango, "Gives the text back, and reads your keys.");
    let (_, events) = turn(&lango, "toy_echo", json!({ "text": "one" }), &["-c", ALLOW]);
    let refused = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
    assert!(
        refused.contains("changed its tool `echo` since it was pinned, so it was not called"),
        "{refused}"
    );

    let (ran, events) = turn(&lango, "toy_echo", json!({ "text": "two" }), &["-c", ALLOW]);
    let ran = ran.exits(4);
    assert!(
        ran.stderr.contains("`lango mcp trust toy` accepts them"),
        "{ran:#?}"
    );
    let reason = text(&of_type(&events, "approval.requested")[0]["reason"]).to_owned();
    assert!(
        reason.contains("changed this tool since it was pinned; `lango mcp trust toy` accepts it"),
        "{reason}"
    );
    turn(&lango, "toy_add", json!({ "a": 1, "b": 2 }), &["-c", ALLOW])
        .0
        .ok();

    let listed = lango.run(&["mcp", "list"]).ok().stdout;
    assert!(listed.contains("toy_echo  navigator  CHANGED"), "{listed}");
    let trusted = lango.run(&["mcp", "trust", "toy", "--yes"]).ok().stdout;
    assert!(trusted.contains("\naccepted: echo\n"), "{trusted}");
    let (ran, events) = turn(
        &lango,
        "toy_echo",
        json!({ "text": "three" }),
        &["-c", ALLOW],
    );
    ran.ok();
    assert!(text(&of_type(&events, "tool.returned")[0]["output"]).contains("three"));
    assert!(
        lango
            .run(&["mcp", "trust", "toy"])
            .ok()
            .stdout
            .contains("nothing of `toy` changed")
    );
    lango
        .run(&["mcp", "trust", "nobody"])
        .refused(2, &["there is no MCP server `nobody`"]);
}

/// A home in which the tool `echo` says this now, and something else was pinned.
fn with_changed_echo(told: &str) -> Lango {
    let lango = with_toy("");
    lango.run(&["mcp", "test"]).ok();
    tell(&lango, told);
    lango.run(&["mcp", "test"]).ok();
    lango
}

fn echo(lango: &Lango) -> Value {
    let listed = lango.run(&["mcp", "list", "--json"]).ok().json();
    let tools = listed[0]["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["tool"] == "echo");
    echo.unwrap().clone()
}

#[test]
fn all_that_changed_is_shown_before_it_is_accepted_and_without_a_terminal_nothing_is() {
    let long = format!("{} and reads your keys\u{1b}[2J.", "word ".repeat(200));
    let lango = with_changed_echo(&format!("Gives the text back.\n{long}"));
    let ran = lango.run(&["mcp", "trust", "toy"]).exits(4);
    let shown = &ran.stdout;
    assert!(shown.contains("\n Gives the text back.\n+word "), "{shown}");
    assert!(
        shown.contains(" word  and reads your keys␛[2J.\n"),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(ran.stderr.contains("lango mcp trust toy --yes"), "{ran:#?}");
    assert_eq!(echo(&lango)["state"], "changed");
    lango
        .run(&["mcp", "trust", "toy", "--hash", "0123456789ab"])
        .refused(2, &["in a form with the hash `0123456789ab`"]);
    let hash = text(&echo(&lango)["hash"])[..12].to_owned();
    lango
        .run(&["mcp", "trust", "toy", "--hash", &hash[..11]])
        .refused(2, &["of at least 12 digits"]);
    let accepted = lango.run(&["mcp", "trust", "toy", "--hash", &hash]).ok();
    assert!(
        accepted.stdout.ends_with("\naccepted: echo\n"),
        "{accepted:#?}"
    );
    assert_eq!(echo(&lango)["state"], "pinned");
}

#[test]
fn at_a_terminal_a_person_is_asked_and_accepts_what_was_shown_and_no_more() {
    let lango = with_changed_echo("Gives the text back, twice.");
    for answer in ["n\r", "\r"] {
        let mut terminal = Terminal::start(&lango, 100, &["mcp", "trust", "toy"], &[]);
        let shown = terminal.wait_for("accept 1 tool of `toy` like this? [y/N] ");
        assert!(shown.contains("+Gives the text back, twice."), "{shown}");
        terminal.press(answer);
        let (code, said) = terminal.end();
        assert_eq!(code, Some(4), "{said}");
        assert!(said.contains("nothing was accepted"), "{said}");
        assert_eq!(echo(&lango)["state"], "changed");
    }

    let mut terminal = Terminal::start(&lango, 100, &["mcp", "trust", "toy"], &[]);
    terminal.wait_for("[y/N] ");
    // While the person reads, the server changes its mind, and another lango hears of it.
    tell(&lango, "Gives your keys away.");
    lango.run(&["mcp", "test"]).ok();
    terminal.press("y\r");
    let (code, said) = terminal.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("changed this again meanwhile"), "{said}");
    assert_eq!(echo(&lango)["state"], "changed");

    let mut terminal = Terminal::start(&lango, 100, &["mcp", "trust", "toy"], &[]);
    let shown = terminal.wait_for("[y/N] ");
    assert!(shown.contains("+Gives your keys away."), "{shown}");
    terminal.press("y\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(echo(&lango)["state"], "pinned");
}

#[test]
fn nothing_of_a_server_outlives_a_lango_that_was_killed_in_the_middle_of_a_call() {
    let lango = with_toy("");
    lango.run(&["mcp", "test"]).ok();
    let provider = Provider::new(vec![
        delegate_and_finish("navigator", "wait"),
        call("toy_wait", json!({ "seconds": 600 })),
    ]);
    let mut arguments = vec!["run".to_owned(), "-c".to_owned(), ALLOW.to_owned()];
    arguments.extend(flags("openai", provider.server.url()));
    arguments.push("wait".to_owned());
    let mut child = lango
        .command(&arguments)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| called(&lango));
    assert!(is_running(&lango));
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| !is_running(&lango));
}

#[test]
fn a_server_that_dies_in_a_call_leaves_the_turn_to_go_on() {
    let lango = with_toy("");
    let (ran, events) = turn(&lango, "toy_die", json!({}), &["-c", ALLOW]);
    assert_eq!(ran.ok().json()["answer"], "It is done.");
    let returned = of_type(&events, "tool.returned")[0];
    assert_eq!(returned["status"], "error");
    assert!(
        text(&returned["output"]).contains("nobody knows whether it was done"),
        "{returned}"
    );
}

#[test]
fn what_lango_keeps_of_servers_is_hidden_from_their_programs() {
    let lango = with_toy("");
    lango.run(&["mcp", "test"]).ok();
    let pins = lango.home().join("mcp/pins.json").canonicalize().unwrap();
    let root = lango.home().parent().unwrap().canonicalize().unwrap();
    let read = format!("mcp.servers.toy.read=[{root:?}]");
    let (ran, events) = turn(
        &lango,
        "toy_look",
        json!({ "path": pins }),
        &["-c", ALLOW, "-c", &read],
    );
    ran.ok();
    let seen = text(&of_type(&events, "tool.returned")[0]["output"]).to_owned();
    assert!(seen.contains(r#""found": null"#), "{seen}");
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_time_that_is_set() {
    let lango = Lango::new();
    let settings = "[mcp]\nstartTimeout = '1s'\n[mcp.servers.mute]\ncommand = ['sleep', '600']\n";
    lango.home_file("lango.toml", settings);
    let ran = lango.run(&["mcp", "test", "mute"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("did not answer within 1 s"), "{said}");
}

#[test]
fn forms_are_offered_to_a_server_only_where_its_defaults_are_taken() {
    for (more, offers) in [("", false), ("formDefaults = true", true)] {
        let lango = with_toy(more);
        lango.run(&["mcp", "test", "toy"]).ok();
        let log = fs::read_to_string(private(&lango, "log")).unwrap();
        let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let offered = first["params"]["capabilities"]["elicitation"].is_object();
        assert_eq!(offered, offers, "{first}");
    }
}
