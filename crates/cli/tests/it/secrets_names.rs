//! Which vault a prompt, an error or a server means: each is named, and each has a passphrase of its own.

use crate::lango::{Lango, finish, text};
use crate::secrets::{PASSPHRASE, run, set, with_passphrase};
use crate::serve::Serving;
use crate::terminal::Terminal;

const OTHER: &str = "another passphrase";

/// A home whose server has a vault with a passphrase of its own.
fn with_server_vault() -> Lango {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    let words = ["secrets", "--server", "set", "KEY"];
    with_passphrase(&lango, OTHER, &words, b"a long value").ok();
    lango
}

fn failures(lango: &Lango, flags: &[&str]) -> usize {
    let words = [&["secrets"], flags, &["log", "--json"]].concat();
    let log = lango.run(&words).ok().json();
    let rows = log.as_array().unwrap().iter();
    rows.filter(|row| text(&row["action"]) == "unlock failed")
        .count()
}

#[test]
fn prompts_name_the_vault_and_a_database_that_is_not_the_default() {
    let lango = with_server_vault();
    let store = format!(
        "sqlite:{}",
        lango.home().with_file_name("other.db").display()
    );
    let setting = format!("session.store={store}");
    let words = ["-c", &setting, "secrets", "set", "KEY"];
    with_passphrase(&lango, PASSPHRASE, &words, b"a long value").ok();
    let unlock = ["secrets", "unlock"];
    for (words, prompt) in [
        (
            unlock.to_vec(),
            "passphrase of the vault of `local`: ".to_owned(),
        ),
        (
            vec!["secrets", "--server", "unlock"],
            "passphrase of the vault of the server (`a2a`): ".to_owned(),
        ),
        (
            [&["-c", &setting], &unlock[..]].concat(),
            format!("passphrase of the vault of `local` in {store}: "),
        ),
    ] {
        let mut terminal = Terminal::start(&lango, 200, &words, &[]);
        terminal.wait_for(&prompt);
        terminal.press("\u{3}");
        assert_eq!(terminal.end().0, Some(130));
    }
    let locked = format!("the vault of `local` in {store} is locked");
    lango
        .run(&["-c", &setting, "secrets", "rm", "KEY"])
        .refused(3, &[&locked]);
}

#[test]
fn the_vault_of_the_server_has_a_variable_of_its_own() {
    let lango = with_server_vault();
    let unlock = ["secrets", "--server", "unlock"];
    // One that is for both may be wrong for one of them.
    run(&lango, &unlock).refused(
        3,
        &[
            "LANGO_VAULT_PASSPHRASE does not unlock the vault of the server (`a2a`)",
            "set LANGO_SERVER_VAULT_PASSPHRASE",
        ],
    );
    let mut command = lango.command(&unlock);
    command.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE);
    command.env("LANGO_SERVER_VAULT_PASSPHRASE", OTHER);
    let unlocked = finish(&mut command, b"").ok();
    assert!(unlocked.stdout.contains("the vault of the server (`a2a`)"));
    lango.run(&["secrets", "--server", "lock"]).ok();
    let mut command = lango.command(&unlock);
    command.env("LANGO_SERVER_VAULT_PASSPHRASE", PASSPHRASE);
    let wrong = "LANGO_SERVER_VAULT_PASSPHRASE does not unlock the vault of the server";
    finish(&mut command, b"").refused(3, &[wrong, "correct LANGO_SERVER_VAULT_PASSPHRASE"]);
    // Commands are not given it.
    let mut command = lango.command(&["-c", ALLOW, "run", "-q", "run `env`"]);
    command.env("LANGO_SERVER_VAULT_PASSPHRASE", OTHER);
    let printed = finish(&mut command, b"").ok().stdout;
    assert!(!printed.contains("VAULT_PASSPHRASE"), "{printed}");
}

const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;

#[test]
fn a_server_says_that_its_vault_is_locked_and_doctor_that_it_asks_nobody() {
    let lango = with_server_vault();
    let serving = Serving::start_with(lango.beside(), &[]);
    let banner = serving.banner().to_owned();
    drop(serving);
    let line = banner.lines().find(|line| line.starts_with("vault "));
    let line = line.unwrap_or_else(|| panic!("{banner}"));
    for part in [
        "the vault of the server (`a2a`) is locked",
        "agents go without its secrets until it is unlocked",
        "`lango secrets --server unlock`",
        "LANGO_SERVER_VAULT_PASSPHRASE",
    ] {
        assert!(line.contains(part), "{line}");
    }
    // Nothing in the configuration needs the vault of the user.
    assert!(!banner.contains("`local`"), "{banner}");
    let rows = lango.run(&["doctor", "--json"]).ok().json();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == "server vault").unwrap();
    assert_eq!(row["warning"], true);
    let detail = text(&row["detail"]);
    assert!(
        detail.contains("`lango serve` asks for no passphrase"),
        "{detail}"
    );
    let empty = Serving::start_with(Lango::new(), &[]);
    let mut lines = empty.banner().lines();
    assert!(
        lines.all(|line| !line.starts_with("vault ")),
        "{}",
        empty.banner()
    );
}

#[test]
fn a_failed_unlock_is_logged_once_for_a_command_that_opens_the_vault_in_several_places() {
    let lango = with_server_vault();
    lango.home_file(
        "lango.toml",
        "[search.providers.brave]\napiKeyEnv = 'secret:KEY'\n",
    );
    with_passphrase(&lango, "not the passphrase", &["doctor"], b"").exits(3);
    assert_eq!(failures(&lango, &[]), 1);
    assert_eq!(failures(&lango, &["--server"]), 1);
    // A typed one is logged each time.
    lango.home_file("lango.toml", "");
    let mut terminal = Terminal::start(&lango, 100, &["secrets", "unlock"], &[]);
    for _ in 0..3 {
        terminal.wait_for("passphrase of the vault of `local`: ");
        terminal.press("not the passphrase\r");
    }
    terminal.end();
    assert_eq!(failures(&lango, &[]), 4);
}
