//! MCP servers through the real binary: `lango mcp list`, `test` and `trust`, and turns that call their tools.

use crate::lango::{Lango, RunResult, TIMEOUT, of_type, text};
use crate::models::{Provider, flags, run};
use crate::terminal::Terminal;
use lango_testkit::mcp_server;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub(crate) const ALLOW: &str = r#"approval.rules=[{action="allow",tool="toy_*"}]"#;

/// Creates a home with the scripted server `toy`, which is assigned to the navigator. It is installed where agents
/// cannot write, and logs its messages to `log` in its private directory.
pub(crate) fn with_toy(more: &str) -> Lango {
    let lango = Lango::new();
    let settings = format!(
        "[mcp.servers.toy]\n{}, '--log', 'log', '--describe-file', 'description']\nagent = 'navigator'\n{more}\n",
        install_server(&lango).trim_end_matches(']')
    );
    lango.home_file("lango.toml", settings);
    lango
}

/// Installs the scripted server outside of the workspace. Returns the settings that start it.
pub(crate) fn install_server(lango: &Lango) -> String {
    let folder = lango.home().with_file_name("installed");
    fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let program = folder.join("server.py");
    fs::write(&program, mcp_server::PROGRAM).unwrap();
    let (folder, program) = (folder.display(), program.display());
    format!("read = ['{folder}']\ncommand = ['python3', '{program}']")
}

/// Returns a path in the private directory of the server.
pub(crate) fn private_path(lango: &Lango, name: &str) -> PathBuf {
    lango.home().join("mcp-servers/toy").join(name)
}

/// Changes the description of the tool `echo`.
fn describe_echo(lango: &Lango, description: &str) {
    fs::write(private_path(lango, "description"), description).unwrap();
}

/// Returns how often the server was started.
pub(crate) fn start_count(lango: &Lango) -> usize {
    let log = fs::read_to_string(private_path(lango, "log")).unwrap_or_default();
    let messages = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter(|message| message["method"] == "initialize")
        .count()
}

/// Runs a turn in which the navigator calls a tool, with a scripted model. Returns the result and the events.
pub(crate) fn turn(
    lango: &Lango,
    tool: &str,
    arguments: Value,
    more: &[&str],
) -> (RunResult, Vec<Value>) {
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

/// Returns whether the server received a tool call.
fn was_called(lango: &Lango) -> bool {
    let log = fs::read_to_string(private_path(lango, "log")).unwrap_or_default();
    log.contains("\"tools/call\"")
}

/// Waits until a condition is met.
#[track_caller]
fn wait_until(mut is_met: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_met() {
        assert!(started.elapsed() < TIMEOUT, "the condition was not met");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns whether a process runs in the server's private directory.
fn is_running(lango: &Lango) -> bool {
    let private = private_path(lango, "").canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut folders =
        processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    folders.any(|folder| folder.starts_with(&private))
}

#[test]
fn an_orchestrated_turn_calls_a_servers_tool_through_the_assigned_agent() {
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
fn the_tools_of_a_server_need_an_approval_unless_a_rule_allows_them() {
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
    assert_eq!(start_count(&lango), 1);
    for command in [
        &["run", "hello"] as &[&str],
        &["agents"],
        &["mcp", "list"],
        &["doctor"],
        &["config", "check"],
    ] {
        lango.run(command).ok();
        assert_eq!(start_count(&lango), 1, "{command:?}");
    }
    turn(&lango, "toy_add", json!({ "a": 1, "b": 2 }), &["-c", ALLOW])
        .0
        .ok();
    assert_eq!(start_count(&lango), 2);
}

#[test]
fn commands_without_tools_and_ephemeral_runs_start_no_server() {
    let lango = with_toy("");
    for command in [
        &["mcp", "list"] as &[&str],
        &["agents"],
        &["doctor"],
        &["sessions", "list"],
        &["run", "--ephemeral", "hello"],
    ] {
        lango.run(command).ok();
        assert_eq!(start_count(&lango), 0, "{command:?}");
    }
    let ran = lango.run(&["run", "--ephemeral", "hello"]).ok();
    assert!(
        ran.stderr
            .contains("run `lango mcp test toy` to connect to it"),
        "{ran:#?}"
    );
    assert!(
        lango
            .run(&["agents"])
            .ok()
            .stdout
            .contains("all of the MCP server `toy` (not known yet")
    );
}

#[test]
fn mcp_list_and_mcp_test_show_the_server_its_tools_and_their_owners() {
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
fn a_broken_server_fails_mcp_test_with_its_output_and_does_not_disturb_turns() {
    let lango = with_toy("");
    let settings = fs::read_to_string(lango.home().join("lango.toml")).unwrap();
    let keys = install_server(&lango);
    let bad = format!(
        "[mcp.servers.bad]\n{}, '--exit', '4']\n",
        keys.trim_end_matches(']')
    );
    lango.home_file("lango.toml", settings + &bad);
    let ran = lango.run(&["mcp", "test"]).exits(3);
    assert!(
        ran.stdout
            .contains("✗ bad  it did not finish the handshake: its program exited with code 4"),
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
    lango.run(&["mcp", "test", "nobody"]).refused(
        2,
        &["there is no MCP server `nobody`; configured are bad, toy"],
    );
}

#[test]
fn a_changed_tool_needs_an_approval_each_time_until_the_change_is_accepted() {
    let lango = with_toy("");
    lango.run(&["mcp", "test"]).ok();
    describe_echo(&lango, "Gives the text back, and reads your keys.");
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
        reason.contains("has changed this tool since it was pinned; accept the change with `lango mcp trust toy`"),
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
            .contains("`toy` has not changed")
    );
    lango
        .run(&["mcp", "trust", "nobody"])
        .refused(2, &["there is no MCP server `nobody`"]);
}

/// Creates a home in which the tool `echo` now has this description, but was pinned with another.
fn with_changed_echo(shown: &str) -> Lango {
    let lango = with_toy("");
    lango.run(&["mcp", "test"]).ok();
    describe_echo(&lango, shown);
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
fn mcp_trust_shows_the_whole_change_and_accepts_nothing_without_a_terminal() {
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
        .refused(2, &["has the hash `0123456789ab`"]);
    let hash = text(&echo(&lango)["hash"])[..12].to_owned();
    lango
        .run(&["mcp", "trust", "toy", "--hash", &hash[..11]])
        .refused(2, &["give at least 12 digits"]);
    let accepted = lango.run(&["mcp", "trust", "toy", "--hash", &hash]).ok();
    assert!(
        accepted.stdout.ends_with("\naccepted: echo\n"),
        "{accepted:#?}"
    );
    assert_eq!(echo(&lango)["state"], "pinned");
}

#[test]
fn at_a_terminal_the_user_accepts_exactly_what_was_shown() {
    let lango = with_changed_echo("Gives the text back, twice.");
    for answer in ["n\r", "\r"] {
        let mut terminal = Terminal::start(&lango, 100, &["mcp", "trust", "toy"], &[]);
        let shown = terminal.wait_for("accept 1 tool of `toy` as shown? [y/N] ");
        assert!(shown.contains("+Gives the text back, twice."), "{shown}");
        terminal.press(answer);
        let (code, printed) = terminal.end();
        assert_eq!(code, Some(4), "{printed}");
        assert!(printed.contains("nothing was accepted"), "{printed}");
        assert_eq!(echo(&lango)["state"], "changed");
    }

    let mut terminal = Terminal::start(&lango, 100, &["mcp", "trust", "toy"], &[]);
    terminal.wait_for("[y/N] ");
    // While the user reads, the server changes the description again, and another process notices it.
    describe_echo(&lango, "Gives your keys away.");
    lango.run(&["mcp", "test"]).ok();
    terminal.press("y\r");
    let (code, printed) = terminal.end();
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("has changed this again"), "{printed}");
    assert_eq!(echo(&lango)["state"], "changed");

    let mut terminal = Terminal::start(&lango, 100, &["mcp", "trust", "toy"], &[]);
    let shown = terminal.wait_for("[y/N] ");
    assert!(shown.contains("+Gives your keys away."), "{shown}");
    terminal.press("y\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(echo(&lango)["state"], "pinned");
}

#[test]
fn no_server_process_outlives_a_lango_killed_during_a_call() {
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
    wait_until(|| was_called(&lango));
    assert!(is_running(&lango));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(|| !is_running(&lango));
}

#[test]
fn a_turn_continues_after_a_server_dies_during_a_call() {
    let lango = with_toy("");
    let (ran, events) = turn(&lango, "toy_die", json!({}), &["-c", ALLOW]);
    assert_eq!(ran.ok().json()["answer"], "It is done.");
    let returned = of_type(&events, "tool.returned")[0];
    assert_eq!(returned["status"], "error");
    assert!(
        text(&returned["output"]).contains("it is unknown whether the call ran"),
        "{returned}"
    );
}

#[test]
fn langos_data_about_servers_is_hidden_from_their_programs() {
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
fn a_server_that_never_answers_fails_after_the_configured_timeout() {
    let lango = Lango::new();
    let settings = "[mcp]\nstartTimeout = '1s'\n[mcp.servers.mute]\ncommand = ['sleep', '600']\n";
    lango.home_file("lango.toml", settings);
    let ran = lango.run(&["mcp", "test", "mute"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    assert!(printed.contains("did not answer within 1 s"), "{printed}");
}

#[test]
fn form_elicitation_is_offered_only_with_form_defaults() {
    for (more, offers) in [("", false), ("formDefaults = true", true)] {
        let lango = with_toy(more);
        lango.run(&["mcp", "test", "toy"]).ok();
        let log = fs::read_to_string(private_path(&lango, "log")).unwrap();
        let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let offered = first["params"]["capabilities"]["elicitation"].is_object();
        assert_eq!(offered, offers, "{first}");
    }
}
