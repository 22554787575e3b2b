//! Prompts of the vault at a terminal: which input they accept, and what ends them.

use crate::lango::Lango;
use crate::secrets::{PASSPHRASE, listed, run, set};
use crate::terminal::Terminal;

const PROMPT: &str = "passphrase of the vault of `local`: ";
const CANARY: &str = "canary-typed-ahead";

fn start(lango: &Lango, arguments: &[&str]) -> Terminal {
    Terminal::start(lango, 120, arguments, &[])
}

fn with_variable(lango: &Lango, arguments: &[&str]) -> Terminal {
    Terminal::start(
        lango,
        120,
        arguments,
        &[("LANGO_VAULT_PASSPHRASE", PASSPHRASE)],
    )
}

#[test]
fn input_typed_during_a_passphrase_check_is_hidden_and_goes_to_the_next_prompt() {
    let lango = Lango::new();
    set(&lango, "OTHER", "a value").ok();
    let mut terminal = start(&lango, &["secrets", "set", "KEY"]);
    terminal.wait_for(PROMPT);
    terminal.press(&format!("{PASSPHRASE}\r{CANARY}\r"));
    let mut seen = terminal.wait_for("value of KEY again: ");
    terminal.press(&format!("{CANARY}\r"));
    let (code, last) = terminal.end();
    seen += &last;
    assert_eq!(code, Some(0), "{seen}");
    assert!(last.contains("stored KEY"), "{seen}");
    assert!(!seen.contains(CANARY), "{seen}");
}

#[test]
fn ctrl_c_at_a_prompt_ends_a_run_and_an_empty_line_continues_without_secrets() {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    lango.home_file(
        "lango.toml",
        "agent.model = 'x/m'\n[providers.x]\nkind = 'openai'\nbaseUrl = 'http://127.0.0.1:9/v1'\napiKeyEnv = 'secret:KEY'\n",
    );
    for arguments in [&["run", "hello"][..], &[]] {
        let mut terminal = start(&lango, arguments);
        terminal.wait_for(PROMPT);
        terminal.press("\u{3}");
        let (code, last) = terminal.end();
        assert_eq!(code, Some(130), "{last}");
        assert!(!last.contains("pipe the value"), "{last}");
    }
    let mut terminal = start(&lango, &["run", "hello"]);
    terminal.wait_for(PROMPT);
    terminal.press("\r");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(3), "{last}");
    assert!(last.contains("not used until"), "{last}");
    assert!(!last.contains("try again"), "{last}");
}

#[test]
fn ctrl_c_at_the_passphrase_prompt_of_a_call_cancels_the_turn() {
    let lango = Lango::new();
    set(&lango, "SIGNING", "a long value").ok();
    let bind = "secrets bind SIGNING --program printenv --env SIGNING_KEY";
    run(&lango, &bind.split(' ').collect::<Vec<_>>()).ok();
    let question = "run `printenv SIGNING_KEY`";
    let mut terminal = start(&lango, &["run", question]);
    terminal.prompt();
    terminal.press("y");
    terminal.wait_for(PROMPT);
    terminal.press("\u{3}");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(130), "{last}");
    let mut terminal = start(&lango, &[]);
    terminal.prompt();
    terminal.press(&format!("{question}\r"));
    terminal.prompt();
    terminal.press("y");
    terminal.wait_for(PROMPT);
    terminal.press("\u{3}");
    // The chat continues.
    let seen = terminal.prompt();
    assert!(!seen.contains("continues without"), "{seen}");
}

#[test]
fn a_vault_stays_unlocked_after_creating_it_or_its_master_key_at_the_terminal() {
    let lango = Lango::new();
    let mut terminal = start(&lango, &["secrets", "set", "FIRST"]);
    for (prompt, typed) in [
        ("or more): ", PASSPHRASE),
        ("repeat the passphrase: ", PASSPHRASE),
        ("(not shown): ", CANARY),
        ("again: ", CANARY),
    ] {
        let seen = terminal.wait_for(prompt);
        if prompt == "(not shown): " {
            assert!(seen.contains("cannot be recovered"), "{seen}");
            assert!(seen.contains("unlocked for 15 minutes"), "{seen}");
        }
        terminal.press(&format!("{typed}\r"));
    }
    assert_eq!(terminal.end().0, Some(0));
    let mut terminal = start(&lango, &["secrets", "rotate", "--master"]);
    terminal.wait_for("unlock method 1: ");
    terminal.press("something else\r");
    terminal.wait_for("not the passphrase of unlock method 1; try again");
    terminal.press(&format!("{PASSPHRASE}\r"));
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    assert!(!last.contains("the vault is locked"), "{last}");
    let terminal = start(&lango, &["secrets", "rm", "FIRST"]);
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    assert!(!last.contains("passphrase"), "{last}");
}

#[test]
fn a_new_passphrase_must_be_typed_even_if_a_variable_unlocks_the_vault() {
    let lango = Lango::new();
    set(&lango, "KEY", "a value").ok();
    let arguments = ["secrets", "methods", "add", "--passphrase"];
    let add = |typed: &str| {
        let mut terminal = with_variable(&lango, &arguments);
        for prompt in ["or more): ", "repeat the passphrase: "] {
            terminal.wait_for(prompt);
            terminal.press(&format!("{typed}\r"));
        }
        terminal.end()
    };
    let (code, last) = add(PASSPHRASE);
    assert_eq!(code, Some(2), "{last}");
    assert!(last.contains("already is unlock method 1"), "{last}");
    assert_eq!(add("another passphrase").0, Some(0));
    run(&lango, &arguments).refused(3, &["LANGO_NEW_VAULT_PASSPHRASE"]);
    let mut command = lango.command(&arguments);
    command.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE);
    command.env("LANGO_NEW_VAULT_PASSPHRASE", "a third passphrase");
    let added = crate::lango::finish(command.stdin(std::process::Stdio::null()), b"").ok();
    assert!(added.stdout.contains("added unlock method 3"), "{added:#?}");
}

#[test]
fn unbinding_one_of_several_bindings_needs_its_number() {
    let lango = Lango::new();
    set(&lango, "TOKEN", "a value").ok();
    for host in ["one.example.com", "two.example.com"] {
        run(&lango, &["secrets", "bind", "TOKEN", "--host", host]).ok();
    }
    let unbind = |answer: &str| {
        let mut terminal = with_variable(&lango, &["secrets", "unbind", "TOKEN"]);
        terminal.wait_for("remove which one? [1-2, all, N] ");
        terminal.press(&format!("{answer}\r"));
        terminal.end()
    };
    let (code, last) = unbind("n");
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("nothing was changed"), "{last}");
    assert_eq!(unbind("7").0, Some(2));
    let (code, last) = unbind("2");
    assert_eq!(code, Some(0), "{last}");
    assert!(last.contains("two.example.com"), "{last}");
    assert_eq!(listed(&lango), [("TOKEN".to_owned(), 1)]);
    let left = run(&lango, &["secrets", "describe", "TOKEN"]).ok().stdout;
    assert!(
        left.contains("one.example.com") && !left.contains("two."),
        "{left}"
    );
}
