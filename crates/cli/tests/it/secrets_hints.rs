//! Errors of `lango secrets` and `lango doctor` about the vault: they name the cause and the next command.

use crate::lango::{Lango, text};
use crate::secrets::{PASSPHRASE, run, set, wait_until_expired, with_passphrase};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const WRONG: &str = "not the passphrase";
const NAMED: &str = "LANGO_VAULT_PASSPHRASE does not unlock the vault of";

/// Returns the rows of `lango doctor` about the vault, with the status first.
fn vault_rows(ran: &crate::lango::RunResult) -> Vec<Value> {
    let rows = ran.json().as_array().unwrap().clone();
    let own = rows.into_iter().filter(|row| row["name"] == "vault");
    own.collect()
}

#[test]
fn a_wrong_passphrase_in_the_environment_is_reported_and_names_are_still_listed() {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    let wrong = |arguments: &[&str]| with_passphrase(&lango, WRONG, arguments, b"");
    for arguments in [&["secrets", "list"][..], &["secrets", "describe", "KEY"]] {
        let ran = wrong(arguments).ok();
        assert!(ran.stdout.contains("KEY"), "{ran:#?}");
        assert!(ran.stderr.contains(NAMED), "{ran:#?}");
        assert!(ran.stderr.contains("not checked"), "{ran:#?}");
    }
    let listed = wrong(&["secrets", "list", "--json"]).ok().json();
    assert_eq!(listed[0]["checked"], false);
    wrong(&["secrets", "rm", "KEY"]).refused(3, &[NAMED]);
    wrong(&["secrets", "unlock"]).refused(3, &[NAMED, "unset it"]);
}

#[test]
fn doctor_distinguishes_a_vault_that_can_be_opened_here_from_one_that_cannot() {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    let status = |ran: crate::lango::RunResult| vault_rows(&ran)[0].clone();
    let doctor = ["doctor", "--json"];
    let open = status(run(&lango, &doctor));
    assert!(text(&open["detail"]).contains("unlocked here"), "{open}");
    let locked = status(lango.run(&doctor).ok());
    assert_eq!(
        (&locked["ok"], &locked["warning"]),
        (&true.into(), &false.into())
    );
    assert!(text(&locked["detail"]).contains("ask for the passphrase"));
    let wrong = status(with_passphrase(&lango, WRONG, &doctor, b"").exits(3));
    assert_eq!(wrong["ok"], false);
    assert!(text(&wrong["detail"]).contains(NAMED), "{wrong}");
}

#[test]
fn doctor_names_a_key_file_that_is_missing_or_readable_by_others() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("vault.key");
    let path = file.to_str().unwrap();
    let setting = format!("vault.keyFile={path}");
    lango.run(&["secrets", "init", "--key-file", path]).ok();
    let doctor = |flags: &[&str]| lango.run(&[flags, &["doctor", "--json"]].concat());
    let with_file = || doctor(&["-c", &setting]);
    assert_eq!(vault_rows(&with_file().ok())[0]["ok"], true);
    // Only the key file unlocks the vault, and no setting names the file.
    let unnamed = &vault_rows(&doctor(&[]).exits(3))[0];
    let detail = text(&unnamed["detail"]);
    assert!(detail.contains("set `vault.keyFile`"), "{detail}");
    assert!(!detail.contains("LANGO_VAULT_PASSPHRASE"), "{detail}");
    lango.run(&["secrets", "unlock"]).refused(
        3,
        &["the vault of `local` is locked", "set `vault.keyFile`"],
    );
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let open = &vault_rows(&with_file().exits(3))[0];
    assert!(text(&open["detail"]).contains("chmod 600"), "{open}");
    fs::remove_file(&file).unwrap();
    let missing = &vault_rows(&with_file().exits(3))[0];
    let detail = text(&missing["detail"]);
    assert!(
        detail.contains(path) && detail.contains("put the key file"),
        "{detail}"
    );
    // With a passphrase that can be typed, it is only a warning.
    let other = Lango::new();
    set(&other, "KEY", "a long value").ok();
    let ran = other.run(&["-c", &setting, "doctor", "--json"]).ok();
    assert_eq!(vault_rows(&ran)[0]["warning"], true);
}

#[test]
fn doctor_warns_about_bindings_with_a_missing_target() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[mcp.servers.shop]\ncommand = ['true']\nnetwork = ['a.example']\n",
    );
    set(&lango, "KEY", "a long value").ok();
    let bind = [
        "secrets",
        "bind",
        "KEY",
        "--tool",
        "mcp:shop",
        "--host",
        "a.example",
    ];
    run(&lango, &bind).ok();
    lango.home_file("lango.toml", "");
    let rows = vault_rows(&run(&lango, &["doctor", "--json"]).ok());
    assert_eq!(rows[1]["warning"], true);
    let detail = text(&rows[1]["detail"]);
    assert!(detail.contains("no MCP server `shop`"), "{detail}");
    assert!(detail.contains("lango secrets unbind KEY 1"), "{detail}");
}

#[test]
fn the_vault_of_the_server_has_its_own_secrets_and_hints() {
    let lango = Lango::new();
    let server = |arguments: &[&str], input: &[u8]| {
        let arguments = [&["secrets", "--server"], arguments].concat();
        with_passphrase(&lango, PASSPHRASE, &arguments, input)
    };
    let none = server(&["list"], b"").ok();
    assert!(
        none.stdout.contains("`lango secrets --server set NAME`"),
        "{none:#?}"
    );
    server(&["set", "KEY"], b"a long value").ok();
    let listed = server(&["list", "--json"], b"").ok().json();
    assert_eq!(listed[0]["name"], "KEY");
    let own = run(&lango, &["secrets", "list"]).ok();
    assert!(own.stdout.contains("`lango secrets set NAME`"), "{own:#?}");
    let unlocked = server(&["unlock"], b"").ok();
    assert!(
        unlocked.stdout.contains("`lango secrets --server lock`"),
        "{unlocked:#?}"
    );
    server(&["lock"], b"").ok();
    let examined = with_passphrase(&lango, WRONG, &["doctor"], b"").ok();
    assert!(examined.stdout.contains("! server vault"), "{examined:#?}");
    lango
        .run(&["secrets", "--server", "rm", "KEY"])
        .refused(3, &["`lango secrets --server unlock`"]);
    server(&["rm", "OTHER"], b"").refused(2, &["`lango secrets --server list`"]);
    let described = server(&["describe", "KEY"], b"").ok();
    assert!(
        described
            .stdout
            .contains("`lango secrets --server bind KEY`"),
        "{described:#?}"
    );
}

#[test]
fn a_rotated_secret_keeps_its_lifetime() {
    let lango = Lango::new();
    let store =
        |arguments: &[&str]| with_passphrase(&lango, PASSPHRASE, arguments, b"a long value");
    let lifetime = || {
        let row = run(&lango, &["secrets", "list", "--json"]).ok().json()[0].clone();
        let expires = row["expires"].as_u64()?;
        Some(expires - row["updated"].as_u64().unwrap())
    };
    const DAY: u64 = 24 * 60 * 60 * 1000;
    store(&["secrets", "set", "KEY", "--expires", "90d"]).ok();
    assert_eq!(lifetime().unwrap().div_ceil(1000) / 86_400, 90);
    let rotated = store(&["secrets", "rotate", "KEY"]).ok();
    assert!(rotated.stderr.contains("it expires on "), "{rotated:#?}");
    let kept = lifetime().unwrap();
    assert!(kept.abs_diff(90 * DAY) < 60_000, "{kept}");
    store(&["secrets", "rotate", "KEY", "--expires", "never"]).ok();
    assert_eq!(lifetime(), None);
    store(&["secrets", "rotate", "KEY", "--expires", "3s"]).ok();
    wait_until_expired(&lango);
    store(&["secrets", "rotate", "KEY"]).ok();
    assert!(lifetime().unwrap().abs_diff(3000) < 1000);
    let dropped = store(&["secrets", "set", "KEY"]).ok();
    assert!(dropped.stderr.contains("no longer expires"), "{dropped:#?}");
    assert_eq!(lifetime(), None);
}

#[test]
fn incomplete_commands_say_what_is_missing() {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    run(&lango, &["secrets", "rotate"]).refused(2, &["name the secret", "--master"]);
    let none = lango.run(&["secrets", "log", "--limit", "0"]).exits(2);
    assert!(none.stderr.contains("at least 1"), "{none:#?}");
    lango.run(&["payments", "history", "--limit", "0"]).exits(2);
    let file = lango.home().with_file_name("taken.key");
    fs::write(&file, "mine").unwrap();
    let add = [
        "secrets",
        "methods",
        "add",
        "--key-file",
        file.to_str().unwrap(),
    ];
    run(&lango, &add).refused(2, &["exists already", "name a path that does not exist"]);
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn a_new_master_key_in_a_script_says_which_method_is_missing() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("vault.key");
    let path = file.to_str().unwrap();
    set(&lango, "KEY", "a long value").ok();
    run(&lango, &["secrets", "methods", "add", "--key-file", path]).ok();
    let setting = format!("vault.keyFile={path}");
    let rotate = ["-c", &setting, "secrets", "rotate", "--master"];
    lango.run(&rotate).refused(
        2,
        &[
            "unlock method 1 (passphrase)",
            "LANGO_VAULT_PASSPHRASE",
            "--without 1",
        ],
    );
    run(&lango, &["secrets", "rotate", "--master"])
        .refused(2, &["unlock method 2 (key file)", "vault.keyFile"]);
    run(&lango, &rotate).ok();
}
