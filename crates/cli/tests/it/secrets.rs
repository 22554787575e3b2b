//! `lango secrets` through the real binary: storing, listing and unlocking, and what is refused.

use crate::lango::{Lango, RunResult, TIMEOUT, finish, text};
use rusqlite::Connection;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub(crate) const PASSPHRASE: &str = "correct horse battery";

/// Runs a command with the passphrase in the environment.
pub(crate) fn run(lango: &Lango, arguments: &[&str]) -> RunResult {
    with_passphrase(lango, PASSPHRASE, arguments, b"")
}

/// Runs a command with this passphrase in the environment and this standard input.
pub(crate) fn with_passphrase(
    lango: &Lango,
    passphrase: &str,
    arguments: &[&str],
    input: &[u8],
) -> RunResult {
    let mut command = lango.command(arguments);
    command.env("LANGO_VAULT_PASSPHRASE", passphrase);
    finish(command.stdin(Stdio::piped()), input)
}

pub(crate) fn set(lango: &Lango, name: &str, value: &str) -> RunResult {
    with_passphrase(
        lango,
        PASSPHRASE,
        &["secrets", "set", name],
        value.as_bytes(),
    )
}

/// Returns the name and version of every secret, as `list` shows them.
pub(crate) fn listed(lango: &Lango) -> Vec<(String, u64)> {
    let listed = run(lango, &["secrets", "list", "--json"]).ok().json();
    let rows = listed.as_array().unwrap().iter();
    rows.map(|row| {
        assert_eq!(row["checked"], true);
        (
            text(&row["name"]).to_owned(),
            row["version"].as_u64().unwrap(),
        )
    })
    .collect()
}

/// Waits until `list` shows that a secret has expired.
pub(crate) fn wait_until_expired(lango: &Lango) {
    let since = Instant::now();
    while !run(lango, &["secrets", "list"])
        .ok()
        .stdout
        .contains("EXPIRED on ")
    {
        assert!(since.elapsed() < TIMEOUT, "the secret does not expire");
    }
}

fn actions(lango: &Lango) -> Vec<String> {
    let log = lango.run(&["secrets", "log", "--json"]).ok().json();
    let rows = log.as_array().unwrap().iter();
    rows.map(|row| text(&row["action"]).to_owned()).collect()
}

#[test]
fn the_first_set_creates_the_vault_and_later_ones_create_versions() {
    let lango = Lango::new();
    let ran = set(&lango, "API_KEY", "first value\n").ok();
    assert_eq!(ran.stdout, "stored API_KEY\n");
    assert_eq!(
        ran.stderr,
        "created the vault of `local`; the passphrase in LANGO_VAULT_PASSPHRASE unlocks it\n\
         a passphrase that is lost cannot be recovered\n"
    );
    set(&lango, "API_KEY", "second").ok();
    set(&lango, "OTHER", "x").ok();
    assert_eq!(listed(&lango), [("API_KEY".into(), 2), ("OTHER".into(), 1)]);
    with_passphrase(&lango, PASSPHRASE, &["secrets", "rotate", "OTHER"], b"y").ok();
    let absent = ["secrets", "rotate", "ABSENT"];
    with_passphrase(&lango, PASSPHRASE, &absent, b"y").refused(2, &["no secret `ABSENT`"]);
    run(&lango, &["secrets", "rm", "API_KEY"]).ok();
    assert_eq!(listed(&lango), [("OTHER".into(), 2)]);
    run(&lango, &["secrets", "rm", "API_KEY"]).refused(2, &["no secret `API_KEY`"]);
    let log = actions(&lango);
    assert_eq!(log.last().unwrap(), "vault created");
    assert!(log.contains(&"removed".to_owned()) && log.contains(&"replaced".to_owned()));
}

#[test]
fn read_only_commands_create_no_database() {
    let lango = Lango::new();
    let ran = lango.run(&["secrets", "list"]).ok();
    assert!(ran.stdout.contains("no vault of `local` yet"), "{ran:#?}");
    assert_eq!(
        lango.run(&["secrets", "list", "--json"]).ok().stdout,
        "[]\n"
    );
    lango.run(&["secrets", "log"]).ok();
    for arguments in [&["unlock"][..], &["lock"], &["methods"], &["rm", "A"]] {
        let ran = lango.run(&[&["secrets"], arguments].concat());
        ran.refused(3, &["there is no vault of `local` yet"]);
    }
    assert!(!lango.database().exists());
}

#[test]
fn no_vault_is_created_with_an_invalid_passphrase_or_value() {
    let lango = Lango::new();
    let ran = lango.piped(&["secrets", "set", "KEY"], "value");
    ran.refused(3, &["no terminal", "LANGO_VAULT_PASSPHRASE", "--key-file"]);
    set(&lango, "KEY", "\n").refused(2, &["empty"]);
    with_passphrase(&lango, "short", &["secrets", "set", "KEY"], b"value")
        .refused(2, &["LANGO_VAULT_PASSPHRASE", "at least 8 characters"]);
    set(&lango, "KEY", &"x".repeat(16 * 1024 + 1)).refused(2, &["16384 bytes"]);
    assert!(
        lango
            .run(&["secrets", "list"])
            .ok()
            .stdout
            .contains("no vault of `local` yet")
    );
}

#[test]
fn a_value_on_the_command_line_is_refused_and_not_printed() {
    let lango = Lango::new();
    for arguments in [
        &["secrets", "set", "KEY", "canary-argument"][..],
        &["secrets", "rotate", "KEY", "canary-argument"],
        &["secrets", "set", "KEY", "--value=canary-argument"],
        &["secrets", "set", "KEY", "--", "-canary-argument"],
    ] {
        let ran = run(&lango, arguments).exits(2);
        assert!(!ran.stderr.contains("canary-argument"), "{ran:#?}");
    }
    let ran = run(&lango, &["secrets", "set", "KEY", "x"]);
    ran.refused(2, &["never an argument", "lango secrets set KEY"]);
    assert!(!lango.database().exists());
}

#[test]
fn a_wrong_passphrase_is_slowed_down_and_logged() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    for wrong in ["correct horse batter", "x"] {
        let started = Instant::now();
        let ran = with_passphrase(&lango, wrong, &["secrets", "rm", "KEY"], b"");
        assert!(started.elapsed() >= Duration::from_millis(100));
        let named = "LANGO_VAULT_PASSPHRASE does not unlock the vault of `local`";
        ran.refused(3, &[named, "unset it"]);
    }
    assert_eq!(actions(&lango)[..2], ["unlock failed", "unlock failed"]);
    assert_eq!(listed(&lango).len(), 1);
}

#[test]
fn a_locked_vault_can_be_listed_unchecked_but_not_changed() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    let ran = lango.run(&["secrets", "list", "--json"]).ok();
    assert_eq!(ran.json()[0]["checked"], false);
    let ran = lango.run(&["secrets", "list"]).ok();
    assert!(ran.stderr.contains("not checked"), "{ran:#?}");
    lango.run(&["secrets", "rm", "KEY"]).refused(
        3,
        &["the vault of `local` is locked", "lango secrets unlock"],
    );
}

#[test]
fn an_unlock_lasts_until_lock_even_after_a_new_master_key() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    let ran = run(&lango, &["secrets", "unlock"]).ok();
    assert!(ran.stdout.contains("15 minutes"), "{ran:#?}");
    lango.piped(&["secrets", "set", "SECOND"], "x").ok();
    assert_eq!(
        lango.run(&["secrets", "lock"]).ok().stdout,
        "locked the vault of `local`\n"
    );
    lango.run(&["secrets", "rm", "KEY"]).refused(3, &["locked"]);
    run(&lango, &["secrets", "unlock"]).ok();
    let ran = run(&lango, &["secrets", "rotate", "--master"]).ok();
    assert!(ran.stderr.contains("15 minutes"), "{ran:#?}");
    lango.run(&["secrets", "rm", "KEY"]).ok();
    lango.run(&["secrets", "lock"]).ok();
    // A passphrase from the environment does not unlock the vault for later commands.
    let ran = run(&lango, &["secrets", "rotate", "--master"]).ok();
    assert!(!ran.stderr.contains("15 minutes"), "{ran:#?}");
    assert_eq!(listed(&lango).len(), 1);
    let again = lango.run(&["secrets", "lock"]).ok();
    assert_eq!(again.stdout, "the vault of `local` was already locked\n");
}

#[test]
fn a_key_file_unlocks_for_scripts_and_is_refused_if_others_can_read_it() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("vault.key");
    let path = file.to_str().unwrap();
    let setting = format!("vault.keyFile={path}");
    let ran = lango.run(&["secrets", "init", "--key-file", path]).ok();
    assert!(ran.stderr.contains("vault.keyFile"), "{ran:#?}");
    let with_file =
        |arguments: &[&str]| lango.piped(&[&["-c", &setting], arguments].concat(), "value");
    with_file(&["secrets", "set", "KEY"]).ok();
    let listed = with_file(&["secrets", "list", "--json"]).ok().json();
    assert_eq!(listed[0]["checked"], true);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    with_file(&["secrets", "rm", "KEY"]).refused(3, &["chmod 600", "locked"]);
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let again = ["secrets", "init", "--key-file", path];
    lango
        .run(&again)
        .refused(2, &["the vault of `local` already exists"]);
    with_file(&["secrets", "rm", "KEY"]).ok();
}

#[test]
fn set_creates_the_configured_key_file_and_the_vault() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("made.key");
    lango.home_file(
        "lango.toml",
        format!("vault.keyFile = '{}'", file.display()),
    );
    lango.piped(&["secrets", "set", "KEY"], "value").ok();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    lango.run(&["secrets", "rm", "KEY"]).ok();
}

#[test]
fn unlock_methods_are_added_and_removed_but_the_last_one_stays() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    run(&lango, &["secrets", "methods", "add"]).refused(2, &["--key-file PATH"]);
    let file = lango.home().with_file_name("vault.key");
    let path = file.to_str().unwrap();
    run(&lango, &["secrets", "methods", "add", "--key-file", path]).ok();
    let shown = lango.run(&["secrets", "methods"]).ok().stdout;
    assert!(
        shown.contains("1  passphrase") && shown.contains("2  key file"),
        "{shown}"
    );
    run(&lango, &["secrets", "rotate", "--master"]).refused(2, &["unlock method 2 (key file)"]);
    let setting = format!("vault.keyFile={path}");
    run(&lango, &["-c", &setting, "secrets", "rotate", "--master"]).ok();
    let arguments = ["-c", &setting, "secrets", "methods", "remove", "1"];
    lango.run(&arguments).ok();
    let arguments = ["-c", &setting, "secrets", "methods", "remove", "2"];
    lango
        .run(&arguments)
        .refused(2, &["one unlock method must remain"]);
    let ran = run(&lango, &["secrets", "rm", "KEY"]);
    ran.refused(3, &["locked"]);
    lango.run(&["-c", &setting, "secrets", "rm", "KEY"]).ok();
}

#[test]
fn a_secret_is_shown_with_its_expiry_date() {
    let lango = Lango::new();
    let expiring = |when: &str| {
        let arguments = ["secrets", "set", "KEY", "--expires", when];
        with_passphrase(&lango, PASSPHRASE, &arguments, b"value")
    };
    for wrong in ["soon", "0d", "2020-01-01", "12"] {
        expiring(wrong).exits(2);
    }
    expiring("2099-01-31").ok();
    let shown = run(&lango, &["secrets", "list"]).ok().stdout;
    assert!(shown.contains("expires on 2099-01-31"), "{shown}");
    expiring("3s").ok();
    wait_until_expired(&lango);
    let found = lango.run(&["doctor", "--json"]).json();
    let mut rows = found.as_array().unwrap().iter();
    let expired = rows.find(|row| text(&row["detail"]).starts_with("KEY expired on"));
    let expired = expired.unwrap();
    assert_eq!(expired["warning"], true);
    assert!(text(&expired["detail"]).contains("lango secrets rotate KEY"));
}

#[test]
fn a_record_changed_outside_lango_is_refused_by_list_and_doctor() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    let database = Connection::open(lango.database()).unwrap();
    let envelope = |database: &Connection| -> Vec<u8> {
        let query = "SELECT envelope FROM vault_records WHERE name = 'KEY'";
        database.query_row(query, [], |row| row.get(0)).unwrap()
    };
    let old = envelope(&database);
    set(&lango, "KEY", "newer").ok();
    let put = "UPDATE vault_records SET envelope = ?1 WHERE name = 'KEY'";
    let new = envelope(&database);
    database.execute(put, [&old]).unwrap();
    let rolled_back =
        "the stored record of `KEY` is older than the vault expects (version 1, not 2)";
    let locked = lango.run(&["secrets", "list"]).exits(1);
    assert!(locked.stderr.contains(rolled_back), "{locked:#?}");
    let unlocked = run(&lango, &["secrets", "list"]).exits(1);
    assert!(unlocked.stderr.contains(rolled_back), "{unlocked:#?}");
    let doctor = lango.run(&["doctor"]).exits(3);
    assert!(doctor.stdout.contains("✗ vault"), "{doctor:#?}");
    database.execute(put, [&new]).unwrap();
    run(&lango, &["secrets", "list"]).ok();
    database
        .execute("UPDATE vaults SET revision = revision + 1", [])
        .unwrap();
    run(&lango, &["secrets", "list"]).refused(1, &["changed outside lango"]);
    // A damaged vault can be destroyed.
    run(&lango, &["secrets", "destroy"]).refused(2, &["--yes"]);
    run(&lango, &["secrets", "destroy", "--yes"]).ok();
    set(&lango, "KEY", "value").ok();
}

#[test]
fn a_desktop_keyring_receives_the_key_on_standard_input() {
    let lango = Lango::new();
    set(&lango, "KEY", "value").ok();
    let folder = lango.home().with_file_name("bin");
    fs::create_dir(&folder).unwrap();
    // A fake of the keyring program, which only machines with a desktop have.
    let program = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho \"$@\" >> arguments\nenv > environment\n\
                   case $1 in store) cat > key;; lookup) cat key;; esac\n";
    let tool = folder.join("secret-tool");
    fs::write(&tool, program).unwrap();
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let with_keyring = |passphrase: Option<&str>, arguments: &[&str]| {
        let mut command = lango.command(arguments);
        command.env("PATH", &path);
        command.envs(passphrase.map(|value| ("LANGO_VAULT_PASSPHRASE", value)));
        finish(&mut command, b"")
    };
    let add = ["secrets", "methods", "add", "--keyring"];
    with_keyring(Some(PASSPHRASE), &add).ok();
    let key = fs::read_to_string(folder.join("key")).unwrap();
    assert_eq!(key.len(), 64);
    let seen = fs::read_to_string(folder.join("arguments")).unwrap()
        + &fs::read_to_string(folder.join("environment")).unwrap();
    assert!(!seen.contains(&key) && !seen.contains(PASSPHRASE), "{seen}");
    with_keyring(None, &["secrets", "rm", "KEY"]).ok();
    // A broken keyring does not make the vault unusable.
    fs::write(&tool, "#!/bin/sh\nexit 1\n").unwrap();
    set(&lango, "KEY", "value").ok();
    with_keyring(Some(PASSPHRASE), &["secrets", "rm", "KEY"]).ok();
    with_keyring(None, &["secrets", "lock"]).ok();
    with_keyring(None, &["secrets", "unlock"]).refused(3, &["secret-tool", "locked"]);
}
