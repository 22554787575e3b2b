//! Signals while a passphrase or a line is typed: the process ends, and the terminal is restored.

use crate::lango::{BINARY, Lango};
use crate::secrets::{run, set};
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process};

const PROMPT: &str = "passphrase of the vault of `local`: ";
const ALLOW: [&str; 2] = ["-c", r#"approval.rules=[{action="allow"}]"#];

/// Creates a home with a secret that is bound to `printenv`. The vault is locked.
fn with_program() -> Lango {
    let lango = Lango::new();
    set(&lango, "SIGNING", "a long value").ok();
    let bind = "secrets bind SIGNING --program printenv --env SIGNING_KEY";
    run(&lango, &bind.split(' ').collect::<Vec<_>>()).ok();
    lango
}

/// Opens a terminal in which a shell runs lango and then prints its exit code and the terminal's settings.
fn run_in_shell(lango: &Lango, arguments: &str) -> (Terminal, Pid) {
    let inner = format!("echo pid $$ here; exec {BINARY} {arguments}");
    let line = format!("sh -c '{inner}'; echo code $?; stty -a");
    let mut terminal = Terminal::start_program(lango, 100, &["sh", "-c", &line], &[]);
    let seen = terminal.wait_for(" here");
    let id = seen.split_whitespace().rev().nth(1).unwrap();
    let id = Pid::from_raw(id.parse().unwrap()).unwrap();
    (terminal, id)
}

#[track_caller]
fn assert_restored(terminal: Terminal) {
    let (_, shown) = terminal.end();
    let has = |word: &str| shown.split_whitespace().any(|shown| shown == word);
    assert!(has("echo") && has("icanon") && has("isig"), "{shown}");
}

#[test]
fn a_signal_at_a_passphrase_prompt_ends_the_command_and_restores_the_echo() {
    for (signal, code) in [
        (Signal::TERM, "code 143"),
        (Signal::HUP, "code 143"),
        (Signal::INT, "code 130"),
    ] {
        let lango = Lango::new();
        let (mut terminal, id) = run_in_shell(&lango, "secrets set KEY");
        terminal.wait_for("or more): ");
        terminal.press("abc");
        kill_process(id, signal).unwrap();
        terminal.wait_for(code);
        assert_restored(terminal);
    }
}

#[test]
fn a_signal_at_the_first_prompt_of_a_chat_or_a_run_ends_it() {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    lango.home_file(
        "lango.toml",
        "agent.model = 'x/m'\n[providers.x]\nkind = 'openai'\nbaseUrl = 'http://127.0.0.1:9/v1'\napiKeyEnv = 'secret:KEY'\n",
    );
    for arguments in ["", "run hello"] {
        let (mut terminal, id) = run_in_shell(&lango, arguments);
        terminal.wait_for(PROMPT);
        kill_process(id, Signal::TERM).unwrap();
        terminal.wait_for("code 143");
        assert_restored(terminal);
    }
}

#[test]
fn a_signal_at_the_passphrase_prompt_of_a_turn_ends_the_process_and_leaves_the_call_waiting() {
    let lango = with_program();
    for is_chat in [true, false] {
        let question = "run `printenv SIGNING_KEY`";
        let arguments: &[&str] = if is_chat { &[] } else { &["run", question] };
        let mut terminal = Terminal::start(&lango, 100, &[&ALLOW, arguments].concat(), &[]);
        if is_chat {
            terminal.prompt();
            terminal.press(&format!("{question}\r"));
        }
        terminal.prompt();
        terminal.press("y");
        terminal.wait_for(PROMPT);
        terminal.signal(Signal::TERM);
        let (code, last) = terminal.end();
        assert_eq!(code, Some(143), "{last}");
        let waits = lango.run(&["approvals"]).ok().stdout;
        assert!(waits.contains("printenv"), "{waits}");
    }
}

#[test]
fn a_signal_at_the_prompt_of_a_chat_ends_it_even_after_a_turn() {
    let lango = Lango::new();
    let (mut terminal, id) = run_in_shell(&lango, "");
    terminal.prompt();
    terminal.say("hello");
    terminal.press("half a li");
    terminal.wait_for("half a li");
    kill_process(id, Signal::TERM).unwrap();
    terminal.wait_for("code 143");
    assert_restored(terminal);
}

#[test]
fn a_signal_at_an_approval_prompt_restores_the_echo() {
    let lango = with_program();
    let question = "run `printenv SIGNING_KEY`";
    let (mut terminal, id) =
        run_in_shell(&lango, &format!("run \"{}\"", question.replace('`', "\\`")));
    terminal.prompt();
    kill_process(id, Signal::TERM).unwrap();
    terminal.wait_for("code 4");
    assert_restored(terminal);
    let (mut terminal, id) = run_in_shell(&lango, "");
    terminal.prompt();
    terminal.press(&format!("{question}\r"));
    terminal.prompt();
    kill_process(id, Signal::TERM).unwrap();
    terminal.wait_for("code 143");
    assert_restored(terminal);
}
