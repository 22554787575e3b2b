//! Images and files through the real binary: what is sent to the model, what is refused, and what is stored.

use crate::lango::{Lango, of_type, text};
use crate::models::{Provider, flags, run};
use crate::serve::TestServer;
use crate::terminal::Terminal;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};
use std::process::Command;

/// A PNG of one pixel.
pub(crate) const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\nIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";
pub(crate) const PIXEL_BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAACklEQVR4nGMAAQAABQABDQottAAAAABJRU5ErkJggg==";

/// Returns the bodies of the requests that a provider received.
fn bodies(provider: &Provider) -> Vec<String> {
    let requests = provider.server.requests();
    requests
        .iter()
        .map(|request| request.body.to_string())
        .collect()
}

/// Counts the rows of a table.
fn count(lango: &Lango, table: &str) -> i64 {
    let database = rusqlite::Connection::open(lango.database()).unwrap();
    let query = format!("SELECT count(*) FROM {table}");
    database.query_row(&query, [], |row| row.get(0)).unwrap()
}

#[test]
fn every_kind_of_provider_gets_an_image_in_its_turn_and_in_the_next() {
    for kind in ["openai", "anthropic", "gemini"] {
        let provider = Provider::new(vec![say("A dot."), say("Black.")]);
        let lango = Lango::new();
        lango.file("plan.png", PIXEL);
        let flags = flags(kind, provider.server.url());
        let more = ["--json", "--attach", "plan.png", "what is it?"];
        let first = run(&lango, &flags, &more).ok();
        assert!(
            first
                .stderr
                .contains("attached: plan.png (image/png, 67 bytes)"),
            "{}",
            first.stderr
        );
        let session = text(&first.json()["session"]).to_owned();
        run(&lango, &flags, &["--session", &session, "which colour?"]).ok();
        let bodies = bodies(&provider);
        for body in &bodies {
            assert!(body.contains(PIXEL_BASE64), "{kind}: {body}");
            assert!(
                body.contains("[Attached, in this order: `plan.png`]"),
                "{body}"
            );
        }
        let events = lango.events(&session);
        let asked = of_type(&events, "user.message");
        assert_eq!(asked[0]["attachments"][0]["name"], "plan.png");
        assert_eq!(asked[0]["attachments"][0]["size"], 67);
        assert_eq!(asked[1].get("attachments"), None);
        assert!(!json!(events).to_string().contains(PIXEL_BASE64));
        let shown = lango.run(&["sessions", "show", &session]).ok().stdout;
        assert!(
            shown.contains("  attached: plan.png (image/png, 67 bytes)"),
            "{shown}"
        );
    }
}

#[test]
fn a_turn_without_attachments_mentions_none() {
    let provider = Provider::new(vec![say("Hello.")]);
    let lango = Lango::new();
    run(&lango, &flags("openai", provider.server.url()), &["hello"]).ok();
    let request = &provider.server.requests()[0].body;
    let parameters = &request["tools"][0]["function"]["parameters"];
    assert!(parameters["properties"]["task"].is_object(), "{request}");
    assert_eq!(parameters["properties"].get("attachments"), None);
    let content = request["messages"][1]["content"].as_str().unwrap();
    assert!(content.starts_with("hello\n\n<environment>"), "{content}");
    assert!(!content.contains("Attached"), "{content}");
    assert_eq!(count(&lango, "attachments"), 0);
}

#[test]
fn a_sub_agent_sees_only_the_files_that_its_delegation_names() {
    let delegate = |attachments: Value| {
        let arguments = json!({ "agent": "operator", "task": "look", "attachments": attachments });
        call("delegate", arguments)
    };
    let provider = Provider::new(vec![
        delegate(json!(["plan.gif"])),
        delegate(json!(["plan.png"])),
        say("A dot."),
        delegate(json!([])),
        say("Nothing to see."),
        say("It is a dot."),
    ]);
    let lango = Lango::new();
    lango.file("plan.png", PIXEL);
    let more = ["--json", "-a", "plan.png", "what is it?"];
    let ran = run(&lango, &flags("openai", provider.server.url()), &more).ok();
    let bodies = bodies(&provider);
    let offered = &provider.server.requests()[0].body["tools"][0]["function"]["parameters"];
    assert_eq!(
        offered["properties"]["attachments"]["items"]["enum"],
        json!(["plan.png"])
    );
    assert!(
        bodies[1].contains("there is no attachment `plan.gif`; the attachments are: `plan.png`"),
        "{}",
        bodies[1]
    );
    assert!(bodies[2].contains(PIXEL_BASE64), "{}", bodies[2]);
    assert!(!bodies[4].contains(PIXEL_BASE64), "{}", bodies[4]);
    let events = lango.events(text(&ran.json()["session"]));
    let delegated = of_type(&events, "agent.delegated");
    assert_eq!(delegated[0]["attachments"][0]["name"], "plan.png");
    assert_eq!(delegated[1].get("attachments"), None);
}

#[test]
fn text_and_html_files_are_attached_as_text_in_addition_to_piped_input() {
    let provider = Provider::new(vec![say("Read.")]);
    let lango = Lango::new();
    lango.file(
        "page.html",
        "<title>Wings</title><script>x()</script><p>Lift</p>",
    );
    let mut arguments = vec!["run".to_owned()];
    arguments.extend(flags("openai", provider.server.url()));
    arguments.extend(["-a", "notes.md", "-a", "page.html", "compare"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    lango.piped(&arguments, "from the pipe\n").ok();
    let body = &bodies(&provider)[0];
    for part in [
        "]\\n# Notes\\n\\nBuy *bread*.\\n",
        "[file `notes.md` ",
        "]\\nWings\\n\\nLift",
        "[file `page.html` ",
        "<stdin>\\nfrom the pipe\\n</stdin>",
        "[Attached, in this order: `notes.md`, `page.html`]",
    ] {
        assert!(body.contains(part), "no `{part}` in {body}");
    }
    assert!(!body.contains("x()"), "{body}");
}

#[test]
fn an_invalid_attachment_is_refused_before_a_model_is_called() {
    let provider = Provider::new(vec![say("never")]);
    let lango = Lango::new();
    let mut image = PIXEL.to_vec();
    image.resize(5_000_001, 0);
    lango.file("large.png", &image);
    lango.file("large.txt", vec![b'a'; 10_000_001]);
    lango.file("archive.zip", b"PK\x03\x04\0\0");
    let fifo = lango.workspace().join("fifo");
    assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    for (file, problem) in [
        (
            "missing.png",
            "`missing.png` cannot be attached: No such file",
        ),
        ("src", "`src` cannot be attached: it is not a regular file"),
        (
            "fifo",
            "`fifo` cannot be attached: it is not a regular file",
        ),
        (
            "/dev/zero",
            "`/dev/zero` cannot be attached: it is not a regular file",
        ),
        (
            "large.png",
            "has 5000001 bytes; an image may have 5000000 at most",
        ),
        (
            "large.txt",
            "has 10000001 bytes; a file can have at most 10000000",
        ),
        (
            "archive.zip",
            "it is not a PNG, JPEG, GIF or WebP image, UTF-8 text, HTML or PDF",
        ),
    ] {
        let more = ["--attach", file, "what is it?"];
        run(&lango, &flags("openai", provider.server.url()), &more).refused(2, &[problem]);
    }
    assert_eq!(provider.server.requests().len(), 0);
}

#[test]
fn the_same_image_is_stored_once_but_gets_distinct_names() {
    let provider = Provider::new(vec![say("One."), say("Two.")]);
    let lango = Lango::new();
    lango.file("plan.png", PIXEL);
    lango.file("copy/plan.png", PIXEL);
    let flags = flags("openai", provider.server.url());
    let more = [
        "--json",
        "-a",
        "plan.png",
        "-a",
        "copy/plan.png",
        "the same?",
    ];
    let session = run(&lango, &flags, &more).ok().json();
    let session = text(&session["session"]);
    run(
        &lango,
        &flags,
        &["--session", session, "-a", "plan.png", "and this?"],
    )
    .ok();
    assert_eq!(count(&lango, "attachments"), 1);
    assert_eq!(count(&lango, "attachment_references"), 1);
    let events = lango.events(session);
    let names: Vec<&str> = of_type(&events, "user.message")
        .into_iter()
        .flat_map(|event| event["attachments"].as_array().unwrap())
        .map(|attachment| text(&attachment["name"]))
        .collect();
    assert_eq!(names, ["plan.png", "plan-2.png", "plan-3.png"]);
}

#[test]
fn an_ephemeral_turn_sends_files_and_stores_none() {
    let provider = Provider::new(vec![say("A dot.")]);
    let lango = Lango::new();
    lango.file("plan.png", PIXEL);
    let more = ["--ephemeral", "-a", "plan.png", "what is it?"];
    run(&lango, &flags("openai", provider.server.url()), &more).ok();
    assert!(bodies(&provider)[0].contains(PIXEL_BASE64));
    assert!(!lango.database().exists());
}

#[test]
fn a_mentioned_file_is_attached_in_a_chat_and_any_other_at_sign_is_text() {
    let provider = Provider::new(vec![say("A dot.")]);
    let lango = Lango::new();
    lango.file("plan.png", PIXEL);
    lango.file("archive.zip", b"PK\x03\x04\0\0");
    let flags = flags("openai", provider.server.url());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut terminal = Terminal::start(&lango, 100, &flags, &[]);
    terminal.prompt();
    let refused = terminal.say("unpack @archive.zip");
    assert!(
        refused.contains("`archive.zip` cannot be attached"),
        "{refused}"
    );
    let shown = terminal.say("mail @nobody: what is @plan.png?");
    assert!(
        shown.contains("attached: plan.png (image/png, 67 bytes)"),
        "{shown}"
    );
    let bodies = bodies(&provider);
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].contains(PIXEL_BASE64), "{}", bodies[0]);
    assert!(
        bodies[0].contains("mail @nobody: what is @plan.png?"),
        "{}",
        bodies[0]
    );
}

#[test]
fn another_lango_receives_the_image_that_the_delegation_names() {
    let theirs = Provider::new(vec![say("It is a dot.")]);
    let their_flags = flags("anthropic", theirs.server.url());
    let their_flags: Vec<&str> = their_flags.iter().map(String::as_str).collect();
    let other = TestServer::start_with(Lango::new(), &their_flags);
    let task = json!({
        "agent": "neighbour", "task": "what is in it?", "attachments": ["plan.png"], "finish": true,
    });
    let ours = Provider::new(vec![call("delegate", task)]);
    let lango = Lango::new();
    lango.file("plan.png", PIXEL);
    let config = format!(
        "[a2a]\nremoteAgents = [{{ name = \"neighbour\", agentCardUrl = \"{}\", tokenEnv = \"TOKEN\" }}]\n",
        other.url()
    );
    lango.home_file("lango.toml", config);
    let mut command = lango.command(&["run", "--json", "-a", "plan.png"]);
    command
        .args(flags("gemini", ours.server.url()))
        .arg("ask the neighbour")
        .env("TOKEN", other.token());
    let report = crate::lango::finish(&mut command, b"").ok().json();
    assert_eq!(report["answer"], "It is a dot.", "{report}");
    assert_eq!(report["author"], "neighbour");
    let asked = &bodies(&theirs)[0];
    assert!(asked.contains(PIXEL_BASE64), "{asked}");
    assert!(asked.contains("what is in it?"), "{asked}");
    let database = rusqlite::Connection::open(other.lango.database()).unwrap();
    let tasks = "SELECT sum(length(body)) FROM tasks";
    let bytes: i64 = database.query_row(tasks, [], |row| row.get(0)).unwrap();
    assert!(bytes < 4000, "a task of {bytes} bytes holds the file");
    assert_eq!(count(&other.lango, "attachments"), 1);
}

#[test]
fn an_image_in_the_workspace_is_shown_to_the_agent_that_reads_it() {
    for kind in ["openai", "anthropic", "gemini"] {
        let provider = Provider::new(vec![
            delegate_and_finish("operator", "look at plan.png"),
            call("fs_read", json!({ "path": "plan.png" })),
            say("A dot."),
        ]);
        let lango = Lango::new();
        lango.file("plan.png", PIXEL);
        let flags = flags(kind, provider.server.url());
        let ran = run(&lango, &flags, &["--json", "what is in plan.png?"]).ok();
        let bodies = bodies(&provider);
        let seen: Vec<bool> = bodies
            .iter()
            .map(|body| body.contains(PIXEL_BASE64))
            .collect();
        assert_eq!(seen, [false, false, true], "{kind}");
        let events = lango.events(text(&ran.json()["session"]));
        let returned = of_type(&events, "tool.returned");
        assert_eq!(returned[0]["attachments"][0]["media_type"], "image/png");
    }
}
