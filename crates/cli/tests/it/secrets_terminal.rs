//! Values that are typed at a terminal: they are not echoed, and the terminal is restored afterwards.

use crate::lango::Lango;
use crate::secrets::{PASSPHRASE, listed};
use crate::terminal::Terminal;

const CANARY: &str = "canary-typed";

fn start(lango: &Lango, arguments: &[&str]) -> Terminal {
    Terminal::start(lango, 100, arguments, &[])
}

#[test]
fn a_typed_value_and_passphrase_are_not_echoed() {
    let lango = Lango::new();
    let mut terminal = start(&lango, &["secrets", "set", "KEY"]);
    let mut seen = terminal.wait_for("8 characters or more): ");
    for (typed, next) in [
        (PASSPHRASE, "repeat the passphrase: "),
        (PASSPHRASE, "value of KEY (not shown): "),
        (CANARY, "value of KEY again: "),
    ] {
        terminal.press(&format!("{typed}\r"));
        seen += &terminal.wait_for(next);
    }
    terminal.press(&format!("{CANARY}\r"));
    let (code, last) = terminal.end();
    seen += &last;
    assert_eq!(code, Some(0), "{seen}");
    assert!(last.contains("stored KEY"), "{seen}");
    assert!(!seen.contains(CANARY) && !seen.contains("horse"), "{seen}");
    assert_eq!(listed(&lango), [("KEY".to_owned(), 1)]);
}

#[test]
fn an_unlock_at_the_terminal_asks_again_after_a_wrong_passphrase() {
    let lango = Lango::new();
    crate::secrets::set(&lango, "KEY", "value").ok();
    let mut terminal = start(&lango, &["secrets", "unlock"]);
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press("something else\r");
    terminal.wait_for("does not unlock the vault of `local`; try again");
    terminal.wait_for("passphrase of the vault of `local`: ");
    // Typed with mistakes that are corrected.
    terminal.press(&format!("wrong\u{15}{PASSPHRASE}x\u{7f}\r"));
    terminal.wait_for("unlocked for 15 minutes");
    assert_eq!(terminal.end().0, Some(0));
    let mut terminal = start(&lango, &["secrets", "unlock"]);
    for _ in 0..3 {
        terminal.wait_for("passphrase of the vault of `local`: ");
        terminal.press("something else\r");
    }
    let (code, last) = terminal.end();
    assert_eq!(code, Some(3), "{last}");
}

#[test]
fn different_values_or_an_interrupt_store_nothing() {
    let lango = Lango::new();
    crate::secrets::set(&lango, "KEY", "value").ok();
    let ask = |seconds: &[&str]| {
        let arguments = ["secrets", "rotate", "KEY"];
        let env = [("LANGO_VAULT_PASSPHRASE", PASSPHRASE)];
        let mut terminal = Terminal::start(&lango, 100, &arguments, &env);
        for second in seconds {
            terminal.wait_for("(not shown): ");
            terminal.press("one value\r");
            terminal.wait_for("again: ");
            terminal.press(second);
        }
        terminal.end()
    };
    let (code, last) = ask(&["another value\r"; 3]);
    assert_eq!(code, Some(2), "{last}");
    assert!(last.contains("entries differ"), "{last}");
    let (code, last) = ask(&["one\u{3}"]);
    assert_eq!(code, Some(130), "{last}");
    assert_eq!(listed(&lango), [("KEY".to_owned(), 1)]);
}

#[test]
fn the_echo_is_restored_after_an_interrupt() {
    let lango = Lango::new();
    let line = format!(
        "{} secrets set KEY; echo code $?; stty -a",
        crate::lango::BINARY
    );
    let mut terminal = Terminal::start_program(&lango, 100, &["sh", "-c", &line], &[]);
    terminal.wait_for("or more): ");
    terminal.press("abc\u{3}");
    terminal.wait_for("code 130");
    let (_, shown) = terminal.end();
    let has = |word: &str| shown.split_whitespace().any(|shown| shown == word);
    assert!(has("echo") && has("icanon") && has("isig"), "{shown}");
}

#[test]
fn a_short_passphrase_is_refused_before_it_is_typed_again() {
    let lango = Lango::new();
    let mut terminal = start(&lango, &["secrets", "set", "KEY"]);
    let mut seen = String::new();
    for _ in 0..3 {
        seen += &terminal.wait_for("or more): ");
        terminal.press("short\r");
    }
    let (code, last) = terminal.end();
    assert_eq!(code, Some(2), "{last}");
    seen += &last;
    assert!(
        seen.contains("at least 8 characters; try again")
            && !seen.contains("repeat the passphrase"),
        "{seen}"
    );
}

#[test]
fn a_mistyped_new_passphrase_and_an_empty_value_are_requested_again() {
    let lango = Lango::new();
    let mut terminal = start(&lango, &["secrets", "set", "KEY"]);
    let mut seen = terminal.wait_for("or more): ");
    for (typed, next) in [
        (PASSPHRASE, "repeat the passphrase: "),
        ("something else", "entries differ"),
        ("", "or more): "),
        (PASSPHRASE, "repeat the passphrase: "),
        (PASSPHRASE, "value of KEY (not shown): "),
        ("", "the value is empty; try again"),
    ] {
        if !typed.is_empty() || next.starts_with("the value") {
            terminal.press(&format!("{typed}\r"));
        }
        seen += &terminal.wait_for(next);
    }
    seen += &terminal.wait_for("value of KEY (not shown): ");
    terminal.press("a long value\r");
    seen += &terminal.wait_for("value of KEY again: ");
    terminal.press("a long value\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{seen}{last}");
    // The warning appears only for a value that is stored.
    assert!(!seen.contains("warning"), "{seen}");
    assert_eq!(listed(&lango), [("KEY".to_owned(), 1)]);
}

#[test]
fn a_command_that_asks_for_the_passphrase_says_how_long_the_unlock_lasts() {
    let lango = Lango::new();
    crate::secrets::set(&lango, "KEY", "value").ok();
    let mut terminal = start(&lango, &["secrets", "rm", "KEY"]);
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press(&format!("{PASSPHRASE}\r"));
    terminal.wait_for("the vault of `local` is unlocked for 15 minutes in this login session;");
    assert_eq!(terminal.end().0, Some(0));
    // `unlock` itself says it only once.
    let mut terminal = start(&lango, &["secrets", "unlock"]);
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press(&format!("{PASSPHRASE}\r"));
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown.matches("15 minutes").count(), 1, "{shown}");
}

#[test]
fn leaving_a_prompt_says_what_to_do_next() {
    let lango = Lango::new();
    let mut terminal = start(&lango, &["secrets", "set", "KEY"]);
    terminal.wait_for("or more): ");
    terminal.press("\u{4}");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(130), "{last}");
    assert!(last.contains("next: run the command again"), "{last}");
}

const RUN: [&str; 4] = [
    "-c",
    r#"approval.rules=[{action="allow"}]"#,
    "run",
    "run `printenv SIGNING_KEY`",
];

/// Creates a home with a secret that is bound to `printenv`. The vault is locked.
fn with_program() -> Lango {
    let lango = Lango::new();
    crate::secrets::set(&lango, "SIGNING", CANARY).ok();
    let bind = "secrets bind SIGNING --program printenv --env SIGNING_KEY";
    crate::secrets::run(&lango, &bind.split(' ').collect::<Vec<_>>()).ok();
    lango
}

#[test]
fn a_command_that_needs_a_locked_vault_asks_for_the_passphrase() {
    let lango = with_program();
    let mut terminal = start(&lango, &RUN);
    let mut seen = terminal.wait_for("you will be asked for its passphrase");
    assert!(
        seen.contains("SEES: SIGNING, in the variable SIGNING_KEY"),
        "{seen}"
    );
    assert!(seen.contains("all programs it start"), "{seen}");
    terminal.prompt();
    terminal.press("y");
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press(&format!("{PASSPHRASE}\r"));
    let (code, last) = terminal.end();
    seen += &last;
    assert_eq!(code, Some(0), "{seen}");
    assert!(last.contains("[secret SIGNING]"), "{seen}");
    assert!(!seen.contains(CANARY), "{seen}");
}

#[test]
fn a_command_continues_without_secrets_if_the_vault_stays_locked() {
    let lango = with_program();
    let mut terminal = start(&lango, &RUN);
    terminal.wait_for("you will be asked for its passphrase");
    terminal.prompt();
    terminal.press("y");
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press("\r");
    let (_, last) = terminal.end();
    assert!(
        last.contains("the call continues without its secrets"),
        "{last}"
    );
    assert!(last.contains("ran without its bound secrets"), "{last}");
}
