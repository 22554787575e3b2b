//! The chat in a real pseudo-terminal.

use crate::cancel;
use crate::lango::{BINARY, Lango, field_values, of_type, text};
use crate::models::{Provider, flags};
use crate::setup::with_key;
use crate::terminal::Terminal;
use lango_testkit::model::say;
use lango_testkit::wire_server::Fault;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const UP: &str = "\u{1b}[A";

fn chat(lango: &Lango) -> Terminal {
    Terminal::start(lango, 100, &[], &[])
}

/// Returns the id of the only session.
fn only_session(lango: &Lango) -> String {
    let listed = lango.run(&["sessions", "list", "--json"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    text(&listed[0]["id"]).to_owned()
}

#[test]
fn the_banner_shows_the_folder_the_model_and_that_it_is_not_an_ai_model() {
    let lango = Lango::new();
    let mut terminal = chat(&lango);
    let banner = terminal.prompt();
    for part in [
        concat!("lango ", env!("CARGO_PKG_VERSION"), " · "),
        lango.workspace().to_str().unwrap(),
        " · session s_",
        "demo mode: built-in rules answer, not an AI model · connect a model: lango setup",
        "agents  operator · vault · librarian · planner · chronicler   (without tools: navigator)",
        "/help · esc stops · ctrl-d leaves",
    ] {
        assert!(banner.contains(part), "no `{part}` in {banner}");
    }
}

#[test]
fn a_question_is_answered_with_progress_and_its_cost() {
    let lango = Lango::new();
    let mut terminal = chat(&lango);
    terminal.prompt();
    let shown = terminal.say("what files are here?");
    let parts = [
        "● lango-orchestrator → operator  what files are here\r\n",
        "  operator ✓ list .  1 folder, 2 files in .  ",
        "\n1 folder, 2 files in .",
        "notes.md  22 B\r\n",
        "\r\n  operator · offline/rules · 3 model calls · 1 delegation round · 1 tool call · ",
        "0 tokens",
    ];
    let mut rest = &*shown;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("no `{part}` in {shown:?}");
        };
        rest = after;
    }
    let greeting = terminal.say("hello");
    assert!(greeting.contains("Hello!"), "{greeting:?}");
    assert!(!greeting.contains("withdrawn"), "{greeting:?}");
    let session = only_session(&lango);
    let events = lango.events(&session);
    assert_eq!(of_type(&events, "turn.finished").len(), 2);
}

#[test]
fn help_lists_the_commands_and_a_wrong_command_is_not_sent_to_a_model() {
    let lango = Lango::new();
    let mut terminal = chat(&lango);
    terminal.prompt();
    let help = terminal.say("/help");
    for part in ["/help", "/quit", "Ctrl-C", "ctrl-d"] {
        assert!(help.contains(part), "no `{part}` in {help:?}");
    }
    let shown = terminal.say("/nope");
    let expected = "there is no command /nope; /help lists them\r\n";
    assert!(shown.contains(expected), "{shown:?}");
    for (line, reply) in [
        ("/new session", "/new takes nothing after it"),
        ("/config ui.plain", "ui.plain"),
        ("/config nosuch", "no line contains `nosuch`"),
        ("/model nosuch/model", "next: /model lists the models"),
        ("/resume nosuch", "next: /sessions lists them"),
    ] {
        let shown = terminal.say(line);
        assert!(shown.contains(reply), "{line}: {shown:?}");
    }
    terminal.press("\r");
    terminal.press("   \r");
    terminal.press("/quit\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0));
    assert!(!last.contains("continue:"), "nothing was said: {last:?}");
    let listed = lango.run(&["sessions", "list", "--json"]).ok();
    assert_eq!(listed.stdout, "[]\n");
}

#[test]
fn a_key_that_is_stored_after_the_old_one_was_refused_reaches_the_running_chat() {
    const OLD: &str = "sk-old-0123456789";
    const NEW: &str = "sk-new-0123456789";
    for first in [Some(OLD), None] {
        let accepted = Arc::new(Mutex::new(OLD));
        let current = Arc::clone(&accepted);
        let provider = Provider::answering(move |request| {
            let expected = format!("Bearer {}", current.lock().unwrap());
            if request.header("authorization") == Some(&expected) {
                say("Welcome back.").into()
            } else {
                Fault::BadKey.into()
            }
        });
        let lango = Lango::new();
        let url = provider.server.url();
        let own = ["--provider", "mine", "--base-url", url, "--model", "any"];
        match first {
            Some(key) => drop(with_key(&lango, key, &own).ok()),
            None => lango.home_file(
                "lango.toml",
                format!(
                    "agent.model = 'mine/any'\nproviders.mine = {{ kind = 'openai', baseUrl = '{url}' }}"
                ),
            ),
        }
        *accepted.lock().unwrap() = NEW;
        let mut terminal = Terminal::start(&lango, 500, &[], &[]);
        terminal.prompt();
        let shown = terminal.say("hello");
        for part in ["its key is not accepted", "`lango setup --provider mine`"] {
            assert!(shown.contains(part), "no `{part}` in {shown:?}");
        }
        with_key(&lango, NEW, &own).ok();
        let shown = terminal.say("and now?");
        assert!(shown.contains("Welcome back."), "{first:?}: {shown:?}");
        terminal.press(CTRL_D);
        terminal.end();
    }
}

#[test]
fn the_demo_can_be_selected_and_does_not_ask_for_a_model_that_is_connected() {
    let provider = Provider::new(vec![Fault::status(404, "no list")]);
    let lango = Lango::new();
    let flags = flags("openai", provider.server.url());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut terminal = Terminal::start(&lango, 200, &flags, &[]);
    terminal.prompt();
    let shown = terminal.say("/model");
    let row = "  offline/rules  built-in rules, not an AI model";
    assert!(shown.contains(row), "{shown:?}");
    let shown = terminal.say("/model offline/rules");
    assert!(
        shown.contains("the next turns use offline/rules"),
        "{shown:?}"
    );
    let shown = terminal.say("hello");
    assert!(shown.contains("Hello!"), "{shown:?}");
    let raw = terminal.raw();
    assert!(raw.contains("offline/rules, not an AI model"), "{raw}");
    assert!(!raw.contains("connect a model:"), "{raw}");
}

#[test]
fn ctrl_c_at_the_prompt_clears_the_line_and_ctrl_d_exits_with_a_hint() {
    let lango = Lango::new();
    let mut terminal = chat(&lango);
    terminal.prompt();
    terminal.press("half a question");
    terminal.wait_for("half a question");
    terminal.press(CTRL_C);
    terminal.prompt();
    terminal.press(CTRL_C);
    terminal.prompt();
    assert!(terminal.say("hello").contains("Hello!"));
    terminal.press(CTRL_D);
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0));
    let session = only_session(&lango);
    let hint = format!("continue: lango resume {session}\r\n");
    assert!(last.ends_with(&hint), "{last:?}");
    assert_eq!(lango.events(&session)[0]["text"], "hello");
}

#[test]
fn ctrl_c_during_a_turn_cancels_the_turn_but_not_the_chat() {
    let lango = Lango::new();
    lango.create_many_files();
    let mut terminal = chat(&lango);
    terminal.prompt();
    terminal.say("hello");
    // Listing takes long enough to lock the database before it is complete.
    terminal.press("list the files in many/\r");
    terminal.wait_for("→ operator");
    let database_lock = cancel::lock_database(&lango);
    terminal.press(CTRL_C);
    terminal.wait_for("stopping");
    cancel::unlock_database(database_lock);
    let shown = terminal.prompt();
    assert!(shown.contains("stopped"), "{shown:?}");
    assert!(!shown.contains("notes.md"), "{shown:?}");
    let shown = terminal.say("what files are here?");
    assert!(shown.contains("notes.md  22 B"), "{shown:?}");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    let events = lango.events(&only_session(&lango));
    let outcomes = each_outcome(&events);
    assert_eq!(outcomes, ["answered", "cancelled", "answered"]);
}

fn each_outcome(events: &[serde_json::Value]) -> Vec<&str> {
    let ends = of_type(events, "turn.finished").into_iter();
    ends.map(|end| text(&end["outcome"])).collect()
}

#[test]
fn resume_continues_the_session() {
    let lango = Lango::new();
    let session = lango.session("hello");
    let arguments = ["sessions", "resume", &session[..7]];
    let mut terminal = Terminal::start(&lango, 100, &arguments, &[]);
    let banner = terminal.prompt();
    assert!(banner.contains(&format!("session {session}")), "{banner:?}");
    terminal.say("what files are here?");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    let events = lango.events(&session);
    let questions = of_type(&events, "user.message");
    assert_eq!(questions.len(), 2);
    assert_eq!(questions[1]["text"], "what files are here?");
    assert!(field_values(&events, "author").contains(&"operator"));
}

#[test]
fn the_input_history_is_readable_only_by_the_owner_and_is_restored() {
    let lango = Lango::new();
    let mut terminal = chat(&lango);
    terminal.prompt();
    terminal.say("hello");
    terminal.say("what files are here?");
    terminal.press(CTRL_D);
    terminal.end();
    let file = lango.home().join("chat-history");
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.ends_with("hello\nwhat files are here?\n"), "{kept:?}");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut terminal = chat(&lango);
    terminal.prompt();
    terminal.press(UP);
    terminal.wait_for("what files are here?");
    terminal.press("\r");
    assert!(terminal.prompt().contains("notes.md  22 B"));
}

#[test]
fn no_control_character_of_a_file_reaches_the_screen() {
    let lango = Lango::new();
    let evil = "calm\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m \u{202e}txt\rover\n\n# head\u{8}ing\n";
    lango.file("evil.txt", evil);
    lango.file("evil\u{1b}[5m.txt", "x");
    for env in [&[][..], &[("NO_COLOR", "1")]] {
        let mut terminal = Terminal::start(&lango, 100, &[], env);
        terminal.prompt();
        let shown = terminal.say("read evil.txt");
        assert!(shown.contains("calm␛[2J␛]0;title␇"), "{shown:?}");
        let shown = terminal.say("what files are here?");
        assert!(shown.contains("evil"), "{shown:?}");
        assert_harmless(&terminal.raw());
    }
    let mut terminal = Terminal::start(&lango, 100, &["run", "read evil.txt"], &[]);
    terminal.wait_for("continue:");
    assert_harmless(&terminal.raw());
    for flag in ["--json", "--jsonl"] {
        let arguments = ["run", "-q", flag, "read evil.txt"];
        let (code, shown) = Terminal::start(&lango, 100, &arguments, &[]).end();
        assert_eq!(code, Some(0));
        assert!(shown.contains("\\u009b31m \\u202etxt"), "{shown:?}");
        assert_harmless(&shown);
    }
}

#[track_caller]
fn assert_harmless(shown: &str) {
    for sequence in [
        "\u{1b}[2J",
        "\u{1b}]0;",
        "\u{1b}[5m",
        "\u{7}",
        "\u{8}",
        "\u{9b}",
        "\u{202e}",
    ] {
        assert!(!shown.contains(sequence), "{sequence:?} in {shown:?}");
    }
    assert!(
        !shown.replace("\r\n", "\n").contains("txt\rover"),
        "{shown:?}"
    );
}

#[test]
fn answers_are_coloured_unless_colours_are_disabled() {
    let lango = Lango::new();
    let is_coloured = |env: &[(&str, &str)]| {
        let mut terminal = Terminal::start(&lango, 100, &[], env);
        terminal.prompt();
        let shown = terminal.say("read notes.md");
        assert!(shown.contains("bread"), "{shown:?}");
        has_colours(&terminal.raw())
    };
    assert!(is_coloured(&[]));
    assert!(is_coloured(&[("NO_COLOR", "")]));
    assert!(!is_coloured(&[("NO_COLOR", "1")]));
    let mut terminal = Terminal::start(&lango, 100, &[], &[("TERM", "dumb")]);
    terminal.wait_for("> ");
    terminal.press("read notes.md\n");
    let shown = terminal.wait_for("0 tokens");
    assert!(
        shown.contains("*bread*") && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
}

/// Returns whether a text sets a colour: `ESC [ 3… m`. Bold and dim text has none.
fn has_colours(shown: &str) -> bool {
    shown.split("\u{1b}[").skip(1).any(|sequence| {
        let end = sequence.find(|letter: char| letter.is_ascii_alphabetic());
        let Some(end) = end.filter(|end| sequence[*end..].starts_with('m')) else {
            return false;
        };
        let mut codes = sequence[..end].split(';');
        codes.any(|code| matches!(code.parse(), Ok(30..=49 | 90..=107)))
    })
}

#[test]
fn run_in_a_terminal_formats_the_answer_and_asks_for_a_missing_question() {
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 100, &["run", "read notes.md"], &[]);
    terminal.wait_for("continue:");
    assert!(has_colours(&terminal.raw()), "{:?}", terminal.raw());
    let (code, _) = terminal.end();
    assert_eq!(code, Some(0));
    let terminal = Terminal::start(&lango, 100, &["run", "what can you do?"], &[]);
    let (_, shown) = terminal.end();
    assert!(shown.contains("run ls -la"), "{shown:?}");
    assert!(!shown.contains("`ls -la`"), "{shown:?}");
    let (code, shown) = Terminal::start(&lango, 100, &["run"], &[]).end();
    assert_eq!(code, Some(2));
    assert!(
        shown.starts_with("error: no question was given\r\n  next: "),
        "{shown:?}"
    );
}

#[test]
fn a_chat_works_in_a_narrow_terminal() {
    let lango = Lango::new();
    let mut terminal = Terminal::start(&lango, 20, &[], &[]);
    terminal.prompt();
    assert!(terminal.say("read notes.md").contains("bread"));
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_chat_whose_store_cannot_be_opened_reports_it_and_exits() {
    let lango = Lango::new();
    lango.home_file("lango.db", "not a database");
    let (code, shown) = chat(&lango).end();
    assert_eq!(code, Some(3));
    assert!(shown.starts_with("error: `"), "{shown:?}");
    assert!(shown.contains("is not a lango database") && shown.contains("  next: "));
}

#[test]
fn a_chat_continues_after_another_process_ran_a_turn_in_its_session() {
    let lango = Lango::new();
    let mut terminal = chat(&lango);
    terminal.prompt();
    terminal.say("hello");
    let session = only_session(&lango);
    // Another process continues the same session.
    lango.run(&["run", "--session", &session, "hello"]).ok();
    let shown = terminal.say("what files are here?");
    assert!(shown.contains("notes.md  22 B"), "{shown:?}");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, Some(0));
    let events = lango.events(&session);
    let numbers = events.iter().map(|event| event["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=events.len() as u64));
}

#[test]
fn lines_of_a_pipe_are_messages_also_at_a_terminal() {
    let lango = Lango::new();
    let line = format!("echo hello | {BINARY} chat");
    let terminal = Terminal::start_program(&lango, 100, &["sh", "-c", &line], &[]);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Hello!"), "{shown}");
}
