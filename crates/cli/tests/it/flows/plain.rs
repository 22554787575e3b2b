//! Output for programs and for simple terminals: lines without a single escape byte.

use super::tmux::{Tmux, WIDE};
use crate::approvals::CREATE;
use crate::lango::{BINARY, Lango, RunResult, finish_child, text};
use crate::models::{Provider, flags, run};
use crate::terminal::Terminal;
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{Fault, ScriptedAnswer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[track_caller]
fn assert_plain(ran: &RunResult) {
    for output in [&ran.stdout, &ran.stderr] {
        assert!(!output.contains('\u{1b}'), "{output:?}");
    }
}

#[test]
fn the_output_of_run_in_a_pipe_is_plain_and_its_exit_code_says_what_happened() {
    let lango = Lango::new();
    let ran = lango.run(&["run", "read notes.md"]).ok();
    assert!(ran.stdout.contains("Buy *bread*."), "{ran:#?}");
    assert_plain(&ran);

    let ran = lango.run(&["run", CREATE]).exits(4);
    assert!(ran.stderr.contains("denied: "), "{ran:#?}");
    assert_plain(&ran);

    let provider = Provider::new(vec![Fault::BadKey]);
    let model = flags("openai", provider.server.url());
    assert_plain(&run(&lango, &model, &["hello"]).exits(3));

    // A model that never answers: a signal ends the turn.
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let provider = Provider::new(vec![ScriptedAnswer::from(Fault::SilentBeforeHead)]);
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(flags("openai", provider.server.url()));
        arguments.push("hello".to_owned());
        let mut command = lango.command(&arguments);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let since = Instant::now();
        while provider.server.requests().is_empty() {
            assert!(since.elapsed() < crate::lango::TIMEOUT, "no request");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_plain(&finish_child(child, b"").exits(code));
    }
}

#[test]
fn what_was_typed_or_pasted_before_a_question_does_not_answer_it() {
    // A terminal delivers a long paste in parts, some of them right after the question.
    for (typed, is_late) in [("y\n", false), (&"y\n".repeat(6000), true)] {
        let provider = Provider::new(vec![
            ScriptedAnswer::from(delegate_and_finish("operator", "write"))
                .after(Duration::from_secs(2)),
            ScriptedAnswer::from(call("fs_write", json!({ "path": "a.md", "content": "x" }))),
            ScriptedAnswer::from(say("Done.")),
        ]);
        let lango = Lango::new();
        let flags = flags("openai", provider.server.url());
        let flags: Vec<String> = flags.iter().map(|flag| format!("'{flag}'")).collect();
        let command = format!("echo data | {BINARY} {} --plain run go", flags.join(" "));
        let terminal = Tmux::start_shell(&lango, WIDE, &command);
        while provider.server.requests().is_empty() {
            std::thread::yield_now();
        }
        if is_late {
            terminal.wait_for("wants to use fs_write");
        }
        terminal.type_text(typed);
        terminal.wait_for("ctrl-d answers later >");
        assert!(!lango.workspace().join("a.md").exists());
        terminal.say("n");
        assert_eq!(terminal.exit_code(), 0);
        assert!(!lango.workspace().join("a.md").exists());
    }
}

/// Opens a plain terminal in which a call waits for its question to be printed in full.
fn plain_question(lango: &Lango, provider: &Provider) -> Tmux {
    let flags = flags("openai", provider.server.url());
    let flags: Vec<String> = flags.iter().map(|flag| format!("'{flag}'")).collect();
    let command = format!("echo data | {BINARY} {} --plain run go", flags.join(" "));
    let terminal = Tmux::start_shell(lango, WIDE, &command);
    terminal.wait_for("wants to use fs_write");
    terminal
}

fn writer() -> Provider {
    Provider::new(vec![
        delegate_and_finish("operator", "write"),
        call("fs_write", json!({ "path": "a.md", "content": "x" })),
        say("Done."),
    ])
}

#[test]
fn no_line_of_a_pasted_text_answers_a_plain_question() {
    for pasted in ["thoughts on this:\nx\ny\nz\n", "y\nand so on\n"] {
        let (provider, lango) = (writer(), Lango::new());
        let terminal = plain_question(&lango, &provider);
        terminal.wait_for("ctrl-d answers later >");
        terminal.send_bytes(pasted.as_bytes());
        terminal.wait_until("the question again", |screen| {
            screen.matches("ctrl-d answers later >").count() == 2
        });
        assert!(!lango.workspace().join("a.md").exists(), "{pasted}");
        terminal.say("n");
        assert_eq!(terminal.exit_code(), 0);
        assert!(!lango.workspace().join("a.md").exists(), "{pasted}");
    }
}

#[test]
fn a_letter_that_was_typed_before_the_keys_were_printed_does_not_answer_a_plain_question() {
    let (provider, lango) = (writer(), Lango::new());
    let terminal = plain_question(&lango, &provider);
    terminal.type_text("y");
    terminal.wait_for("ctrl-d answers later >");
    terminal.press(&["Enter"]);
    terminal.wait_for("type one of the letters");
    assert!(!lango.workspace().join("a.md").exists());
    terminal.wait_until("the question again", |screen| {
        screen.matches("ctrl-d answers later >").count() == 2
    });
    terminal.say("y");
    assert_eq!(terminal.exit_code(), 0);
    assert!(lango.workspace().join("a.md").exists());
}

#[test]
fn without_a_live_screen_lines_say_what_takes_long() {
    let provider = Provider::new(vec![
        ScriptedAnswer::from(delegate_and_finish("operator", "wait"))
            .after(Duration::from_millis(3500)),
        ScriptedAnswer::from(call("exec", json!({ "command": "sleep 3.5" }))),
        ScriptedAnswer::from(say("Waited.")),
    ]);
    let lango = Lango::new();
    let mut flags = flags("openai", provider.server.url());
    flags.extend(["-c", "approval.rules=[{action='allow'}]"].map(str::to_owned));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let ran = lango.run(&[&flags[..], &["run", "wait"]].concat()).ok();
    for line in [
        "lango-orchestrator … mock/any  running for",
        "operator … $ sleep 3.5  running for",
    ] {
        assert_eq!(ran.stderr.matches(line).count(), 1, "{ran:#?}");
    }
    let quiet = lango.run(&["run", "--quiet", "hello"]).ok();
    assert!(!quiet.stderr.contains("running for"), "{quiet:#?}");
}

#[test]
fn json_of_run_parses() {
    let lango = Lango::new();
    let ran = lango.run(&["run", "--json", "read notes.md"]).ok();
    assert!(text(&ran.json()["answer"]).contains("bread"), "{ran:#?}");
    assert_plain(&ran);
    let ran = lango.run(&["run", "--jsonl", "read notes.md"]).ok();
    let lines = ran.json_lines();
    assert!(lines.len() > 3, "{ran:#?}");
    assert!(lines.iter().all(serde_json::Value::is_object), "{ran:#?}");
    assert_plain(&ran);
}

#[test]
fn a_dumb_terminal_and_the_plain_setting_get_lines_only() {
    let lango = Lango::new();
    let plain = ["-c", "ui.plain=true"];
    let dumb = [("TERM", "dumb")];
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2Jbread\n";
    std::fs::write(lango.workspace().join("hostile.md"), hostile).unwrap();
    for (arguments, env) in [(&[][..], &dumb[..]), (&plain, &[])] {
        let run = [arguments, &["run", "read hostile.md"]].concat();
        let mut terminal = Terminal::start(&lango, 100, &run, env);
        terminal.wait_for("bread");
        terminal.wait_for("continue:");
        assert!(!terminal.raw().contains('\u{1b}'), "{:?}", terminal.raw());
        assert_eq!(terminal.end().0, Some(0));

        let mut terminal = Terminal::start(&lango, 100, arguments, env);
        terminal.wait_for("> ");
        terminal.press("read hostile.md\n");
        assert_eq!(terminal.raw().matches("\n> ").count(), 1, "one prompt");
        terminal.wait_for("bread");
        terminal.wait_for("tokens");
        terminal.press(&format!("{CREATE}\n"));
        terminal.wait_for("ctrl-d answers later > ");
        terminal.press("n\n");
        terminal.wait_for("tokens");
        terminal.press("/quit\n");
        terminal.wait_for("continue:");
        assert!(!terminal.raw().contains('\u{1b}'), "{:?}", terminal.raw());
        assert_eq!(terminal.end().0, Some(0));
    }
}
