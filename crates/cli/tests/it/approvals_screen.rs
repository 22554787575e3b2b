//! The approval prompt in a terminal: what it shows, what counts as an answer, and how to leave it.

use crate::approvals::{CREATE, run_until_asked, waiting_approvals, workspace_file};
use crate::lango::{Lango, text};
use crate::models::{Provider, flags};
use crate::terminal::Terminal;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{Fault, ScriptedAnswer};
use serde_json::json;
use std::time::Duration;

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

#[test]
fn no_control_sequence_reaches_the_approval_prompt() {
    let lango = Lango::new();
    let provider = Provider::new(vec![
        delegate_and_finish("operator", "x"),
        call(
            "exec",
            json!({ "command": "echo \u{1b}]0;HACKED\u{7}\u{1b}[2J\u{202e}x" }),
        ),
        say("Done."),
    ]);
    let model = flags("openai", provider.server.url());
    let arguments: Vec<&str> = ["run"]
        .into_iter()
        .chain(model.iter().map(String::as_str))
        .chain(["go"])
        .collect();
    let mut terminal = Terminal::start(&lango, 100, &arguments, &[]);
    terminal.wait_for("why: ");
    terminal.prompt();
    terminal.press("s");
    terminal.wait_for("enter grants it");
    terminal.press("\r");
    terminal.wait_for("continue:");
    let shown = terminal.raw();
    for bad in ["\u{1b}]0;HACKED", "\u{1b}[2J\u{202e}", "\u{202e}"] {
        assert!(!shown.contains(bad), "{shown:?}");
    }
}

#[test]
fn input_typed_before_the_prompt_is_not_an_answer() {
    let lango = Lango::new();
    // Send the reply byte by byte, so that there is time to type.
    let slow = Fault::Drip(Duration::from_millis(4));
    let provider = Provider::new(vec![
        ScriptedAnswer::from(delegate_and_finish("operator", "x")),
        ScriptedAnswer::from(call("fs_write", json!({ "path": "a.md", "content": "x" })))
            .with(slow),
        ScriptedAnswer::from(say("Done.")),
    ]);
    let model = flags("openai", provider.server.url());
    let arguments: Vec<&str> = ["run"]
        .into_iter()
        .chain(model.iter().map(String::as_str))
        .chain(["go"])
        .collect();
    let mut terminal = Terminal::start(&lango, 100, &arguments, &[]);
    terminal.wait_for("→ operator");
    terminal.press("y");
    terminal.prompt();
    // Letters of a text answer nothing, also if some of them are choices.
    terminal.press("/py");
    terminal.press("yes");
    terminal.wait_for("keys count after a short pause");
    terminal.prompt();
    assert_eq!(workspace_file(&lango, "a.md"), None);
    terminal.press("n");
    terminal.end();
    assert_eq!(workspace_file(&lango, "a.md"), None);
}

#[test]
fn a_pasted_text_that_ends_its_own_paste_is_not_an_answer() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, CREATE);
    terminal.press("\u{1b}[200~harmless\u{1b}[201~y\u{1b}[201~");
    // Keys count again after a pause.
    terminal.wait_for("keys count after a short pause");
    terminal.prompt();
    assert_eq!(workspace_file(&lango, "notes/a.md"), None);
    terminal.press("n");
    terminal.end();
    assert_eq!(workspace_file(&lango, "notes/a.md"), None);
}

#[test]
fn every_detail_of_a_call_can_be_viewed_before_the_answer() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, "run `ls #\ntouch planted`");
    terminal.press("v");
    let shown = terminal.wait_for("q back");
    assert!(shown.contains("│   touch planted"), "{shown}");
    terminal.press("q");
    terminal.wait_for("answers later");
    terminal.press(CTRL_D);
    terminal.end();
    let listed = lango.run(&["approvals"]).ok().stdout;
    assert!(listed.contains("ls #␊touch planted"), "{listed}");
    let id = text(&waiting_approvals(&lango)[0]["id"]).to_owned();
    let shown = lango.run(&["approvals", "show", &id]).ok().stdout;
    assert!(shown.contains("│   touch planted"), "{shown}");
    let ran = lango.run(&["approvals", "answer", &id, "no"]).ok();
    assert!(
        ran.stderr.contains("operator wants to use exec"),
        "{ran:#?}"
    );
}

#[test]
fn an_ephemeral_turn_is_cancelled_because_it_cannot_wait() {
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 100, &["run", "--ephemeral", CREATE], &[]);
    let shown = terminal.prompt();
    assert!(!shown.contains("answers later"), "{shown}");
    terminal.press(CTRL_D);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(!shown.contains("approvals answer"), "{shown}");
}

#[test]
fn ctrl_c_at_an_older_request_does_not_start_the_new_turn() {
    let lango = Lango::new();
    let (mut terminal, _) = run_until_asked(&lango, CREATE);
    terminal.press(CTRL_D);
    terminal.end();
    let session = text(&waiting_approvals(&lango)[0]["session"]).to_owned();
    let arguments = ["run", "--session", &session, "hello"];
    let mut terminal = Terminal::start(&lango, 100, &arguments, &[]);
    let shown = terminal.prompt();
    assert!(
        shown.contains("an earlier turn of this session waits"),
        "{shown}"
    );
    terminal.press(CTRL_C);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(130), "{shown}");
    assert!(!shown.contains("Hello!"), "{shown}");
    lango.run(&arguments).ok();
}

#[test]
fn an_answer_by_another_process_ends_the_prompt_and_the_turn() {
    for flags in [&[] as &[&str], &["--plain"]] {
        let lango = Lango::new();
        let arguments = [flags, &["run", CREATE]].concat();
        let mut terminal = Terminal::start(&lango, 100, &arguments, &[]);
        terminal.wait_for("no, and say why");
        let id = text(&waiting_approvals(&lango)[0]["id"]).to_owned();
        lango.run(&["approvals", "answer", &id, "yes"]).ok();
        let (code, shown) = terminal.end();
        assert!(shown.contains("answered by another process"), "{shown}");
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(
            workspace_file(&lango, "notes/a.md").as_deref(),
            Some("hi\n")
        );
    }
}

#[test]
fn a_line_after_a_stopped_plain_question_is_the_next_message() {
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 100, &["--plain"], &[]);
    terminal.wait_for("> ");
    terminal.press(&format!("{CREATE}\r"));
    terminal.wait_for("ctrl-d answers later > ");
    terminal.press(CTRL_C);
    terminal.wait_for("stopped");
    terminal.wait_for("> ");
    terminal.press("hello\r");
    terminal.wait_for("Hello!");
    terminal.press("exit\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(workspace_file(&lango, "notes/a.md"), None);
}
