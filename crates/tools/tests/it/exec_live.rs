//! What the user sees of a command while it runs: what is recorded, and no secret.

use crate::command_fixture::{CommandFixture, FixtureOptions};
use lango_core::{Caller, OutputSink};
use lango_net::SecretAccess;
use lango_secrets::{Masks, SecretValue};
use lango_testkit::secrets::MemorySecrets;
use lango_testkit::tool::caller;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const VALUE: &str = "QZXJ7KVW";

/// What was shown so far.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<String>>>);

impl Screen {
    /// Returns a caller whose output is shown here. `note` gets everything shown so far after each piece.
    fn caller(&self, note: impl Fn(&str) + Send + Sync + 'static) -> Caller {
        let screen = self.clone();
        let output = OutputSink::new(move |text| {
            screen.0.lock().unwrap().push(text.to_owned());
            note(&screen.text());
        });
        Caller { output, ..caller() }
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().concat()
    }
}

/// Runs a command, and returns what was shown.
fn shown(fixture: &CommandFixture, command: &str) -> String {
    let screen = Screen::default();
    let who = screen.caller(|_| {});
    let result = fixture.call_as(&who, "exec", json!({ "command": command }));
    result.unwrap();
    screen.text()
}

/// Returns the output that the only command so far has recorded.
fn recorded(fixture: &CommandFixture) -> String {
    let files = std::fs::read_dir(fixture.path("data/outputs")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let file = files.remove(0);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    text
}

fn masked_fixture() -> CommandFixture {
    let masks = Masks::default();
    masks.add("KEY", &SecretValue::new(VALUE));
    let source = Arc::new(MemorySecrets::new(VALUE));
    CommandFixture::with(FixtureOptions {
        secrets: Some(SecretAccess::new(source, masks)),
        ..FixtureOptions::default()
    })
}

/// Fails if a part of the value is shown.
fn assert_hidden(text: &str) {
    for part in VALUE.as_bytes().windows(3) {
        let part = std::str::from_utf8(part).unwrap();
        assert!(!text.contains(part), "{part} in {text}");
    }
}

/// Calls a tool whose command prints `ready` and then waits until the file `go` exists, which is created when `ready` is
/// shown. So the call only returns if its output is shown while it runs.
fn assert_shown_live(fixture: &CommandFixture, tool: &str, arguments: Value) {
    let go = fixture.inside("go");
    let screen = Screen::default();
    let who = screen.caller(move |text| {
        if text.contains("ready") {
            std::fs::write(&go, "").unwrap();
        }
    });
    let text = fixture.call_as(&who, tool, arguments).unwrap();
    assert!(text.starts_with("exit code 0"), "{text}");
    assert_eq!(screen.text(), "ready\nwent\n");
    std::fs::remove_file(fixture.inside("go")).unwrap();
}

const READY: &str = "echo ready; until test -e go; do sleep 0.02; done; echo went";

#[test]
fn a_command_and_a_script_show_their_output_while_they_run() {
    let fixture = CommandFixture::with(FixtureOptions {
        skills: vec![("pdf", vec![("scripts/a.sh", READY.into())])],
        ..FixtureOptions::default()
    });
    assert_shown_live(&fixture, "exec", json!({ "command": READY }));
    assert_shown_live(&fixture, "skill_pdf", json!({ "script": "a.sh" }));
    // An incomplete line is shown after a moment.
    let incomplete = READY.replace("echo ready", "printf ready");
    let incomplete = incomplete.replace("echo went", "printf '\\nwent\\n'");
    assert_shown_live(&fixture, "exec", json!({ "command": incomplete }));
}

#[test]
fn a_background_job_shows_nothing() {
    let fixture = CommandFixture::new();
    let screen = Screen::default();
    let who = screen.caller(|_| {});
    let arguments = json!({ "command": "echo started; echo more" });
    let text = fixture.call_as(&who, "exec_bg", arguments).unwrap();
    assert!(text.contains("job_1 has already ended"), "{text}");
    assert_eq!(screen.text(), "");
}

#[test]
fn what_is_left_on_the_screen_is_exactly_what_is_recorded() {
    for fixture in [CommandFixture::new(), masked_fixture()] {
        for command in [
            // Escape sequences that move the cursor, set the title, or end a string; a backspace; a bell.
            r"printf '\033[2J\033[1;1Hhi\033]0;title\007\b\b\033P+q\033\\\n'",
            // Control characters of Latin-1, in UTF-8 and as single bytes, and bytes that are not UTF-8.
            r"printf '\302\233[31mred\302\205 \233 \377\376 \303 ok\n'",
            // A character that is split over a pause.
            r"printf 'caf\303'; sleep 0.3; printf '\251 ol\303\251\r\n'",
            r"printf 'progress 1\rprogress 2\rdone\n'; printf 'no end of line'",
            "seq 1 5000; seq 1 100 >&2",
        ] {
            let text = shown(&fixture, command);
            // A carriage return starts the line again; the record has a mark for it.
            let last_states = |text: &str, mark: char| {
                let last = |line: &str| line.rsplit(mark).next().unwrap_or_default().to_owned();
                text.split('\n').map(last).collect::<Vec<String>>()
            };
            let recorded = recorded(&fixture);
            assert_eq!(
                last_states(&text, '\r'),
                last_states(&recorded, '␍'),
                "{command}"
            );
            let is_control = |letter: char| letter.is_control() && !"\n\t\r".contains(letter);
            assert!(!text.contains(is_control), "{text:?}");
        }
    }
}

#[test]
fn a_secret_is_never_shown_however_a_command_prints_it() {
    let fixture = masked_fixture();
    let letters: Vec<String> = VALUE
        .chars()
        .map(|letter| format!("printf {letter}"))
        .collect();
    let (first, second) = VALUE.split_at(4);
    for command in [
        letters.join("; sleep 0.15; "),
        format!("printf 'key {first}'; sleep 0.4; printf '{second}\\n'"),
        format!("printf 'key {first}'; sleep 0.4; printf '{second}\\n' >&2"),
        format!("printf 'key {first}'; printf '{second} end\\n'"),
        format!("printf '{VALUE}%.0s' $(seq 1 500)"),
        format!("printf '\\033[31m{VALUE}\\033[0m \\377{VALUE}\\377\\n'"),
        format!("printf {VALUE} | od -An -tx1; printf {VALUE} | base64"),
        format!(
            "printf 'x %.0s' $(seq 1 20000); printf '{first}'; sleep 0.3; printf '{second}\\n'"
        ),
    ] {
        let screen = Screen::default();
        let who = screen.caller(assert_hidden);
        let result = fixture.call_as(&who, "exec", json!({ "command": command }));
        result.unwrap();
        let text = screen.text();
        assert!(text.contains("[secret KEY]"), "{command}: {text}");
        assert_eq!(text, recorded(&fixture), "{command}");
    }
}

#[test]
fn a_secret_with_colours_in_it_is_not_recorded() {
    let fixture = masked_fixture();
    let (first, second) = VALUE.split_at(4);
    let command = format!("printf 'key {first}\\033[1m\\033[K{second}\\n'");
    let arguments = json!({ "command": command });
    let result = fixture.call_as(&caller(), "exec", arguments).unwrap();
    for text in [result, recorded(&fixture)] {
        assert!(text.contains("key [secret KEY]"), "{text}");
        assert!(!text.contains(VALUE), "{text}");
    }
}

#[test]
fn a_flood_is_shown_and_recorded_within_the_limits() {
    let fixture = CommandFixture::with(FixtureOptions {
        limits: lango_tools::CommandLimits {
            output_bytes: 1 << 20,
            ..lango_tools::CommandLimits::default()
        },
        ..FixtureOptions::default()
    });
    let text = shown(&fixture, "yes | head -c 8000000");
    assert_eq!(text.len(), 8_000_000);
    assert!(recorded(&fixture).len() < (1 << 20) + (64 << 10));
}
