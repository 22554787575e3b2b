//! Several vaults: prompts, errors and servers name the one they mean, and each has its own passphrase.

use crate::lango::{Lango, finish, text};
use crate::secrets::{PASSPHRASE, run, set, with_passphrase};
use crate::serve::TestServer;
use crate::terminal::Terminal;

const OTHER: &str = "another passphrase";

/// Creates a home whose server has a vault with its own passphrase.
fn with_server_vault() -> Lango {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    let arguments = ["secrets", "--server", "set", "KEY"];
    with_passphrase(&lango, OTHER, &arguments, b"a long value").ok();
    lango
}

fn failures(lango: &Lango, flags: &[&str]) -> usize {
    let arguments = [&["secrets"], flags, &["log", "--json"]].concat();
    let log = lango.run(&arguments).ok().json();
    let rows = log.as_array().unwrap().iter();
    rows.filter(|row| text(&row["action"]) == "unlock failed")
        .count()
}

#[test]
fn prompts_name_the_vault_and_a_non_default_database() {
    let lango = with_server_vault();
    let store = format!(
        "sqlite:{}",
        lango.home().with_file_name("other.db").display()
    );
    let setting = format!("session.store={store}");
    let arguments = ["-c", &setting, "secrets", "set", "KEY"];
    with_passphrase(&lango, PASSPHRASE, &arguments, b"a long value").ok();
    let unlock = ["secrets", "unlock"];
    for (arguments, prompt) in [
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
        let mut terminal = Terminal::start(&lango, 200, &arguments, &[]);
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
fn the_vault_of_the_server_has_its_own_variable() {
    let lango = with_server_vault();
    let unlock = ["secrets", "--server", "unlock"];
    // The variable for both vaults may be wrong for one of them.
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
    // Commands do not get the variable.
    let mut command = lango.command(&["-c", ALLOW, "run", "-q", "run `env`"]);
    command.env("LANGO_SERVER_VAULT_PASSPHRASE", OTHER);
    let printed = finish(&mut command, b"").ok().stdout;
    assert!(!printed.contains("VAULT_PASSPHRASE"), "{printed}");
}

const ALLOW: &str = r#"approval.rules=[{action="allow"}]"#;

#[test]
fn a_server_reports_that_its_vault_is_locked_and_doctor_that_it_cannot_ask() {
    let lango = with_server_vault();
    let server = TestServer::start_with(lango.sibling(), &[]);
    let banner = server.banner().to_owned();
    drop(server);
    let line = banner.lines().find(|line| line.starts_with("vault "));
    let line = line.unwrap_or_else(|| panic!("{banner}"));
    for part in [
        "the vault of the server (`a2a`) is locked",
        "agents cannot use its secrets until it is unlocked",
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
        detail.contains("`lango serve` never asks for a passphrase"),
        "{detail}"
    );
    let empty = TestServer::start_with(Lango::new(), &[]);
    let mut lines = empty.banner().lines();
    assert!(
        lines.all(|line| !line.starts_with("vault ")),
        "{}",
        empty.banner()
    );
}

#[test]
fn a_failed_unlock_is_logged_once_per_command() {
    let lango = with_server_vault();
    lango.home_file(
        "lango.toml",
        "[search.providers.brave]\napiKeyEnv = 'secret:KEY'\n",
    );
    with_passphrase(&lango, "not the passphrase", &["doctor"], b"").exits(3);
    assert_eq!(failures(&lango, &[]), 1);
    assert_eq!(failures(&lango, &["--server"]), 1);
    // A typed passphrase is logged each time.
    lango.home_file("lango.toml", "");
    let mut terminal = Terminal::start(&lango, 100, &["secrets", "unlock"], &[]);
    for _ in 0..3 {
        terminal.wait_for("passphrase of the vault of `local`: ");
        terminal.press("not the passphrase\r");
    }
    terminal.end();
    assert_eq!(failures(&lango, &[]), 4);
}
