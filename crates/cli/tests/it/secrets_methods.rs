//! Unlock methods on the command line: users cannot lock themselves out by mistake, and every refusal names a command
//! that works.

use crate::lango::Lango;
use crate::secrets::{PASSPHRASE, run, set, with_passphrase};
use crate::terminal::Terminal;

/// Creates a vault with a passphrase and this many key files, which no setting names.
fn with_key_files(count: usize) -> Lango {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    for number in 0..count {
        let file = lango.home().with_file_name(format!("{number}.key"));
        let add = ["secrets", "methods", "add", "--key-file"];
        run(&lango, &[&add[..], &[file.to_str().unwrap()]].concat()).ok();
    }
    lango
}

#[test]
fn a_new_master_key_reports_all_missing_methods_with_one_working_command() {
    let lango = with_key_files(2);
    let rotate = |without: &[&str]| {
        let arguments = [&["secrets", "rotate", "--master"], without].concat();
        run(&lango, &arguments)
    };
    let command = "`lango secrets rotate --master --without 2 --without 3`";
    rotate(&[]).refused(2, &["methods 2 (key file) and 3 (key file)", command]);
    rotate(&["--without", "3"]).refused(2, &["method 2 (key file)", command]);
    rotate(&["--without", "9"]).refused(2, &["no unlock method 9"]);
    rotate(&["--without", "2", "--without", "3"]).ok();
    run(&lango, &["secrets", "rotate", "--master"]).ok();
}

#[test]
fn removing_the_method_that_works_here_needs_a_confirmation() {
    let lango = with_key_files(1);
    let remove = |flags: &[&str], id: &str, rest: &[&str]| {
        run(
            &lango,
            &[flags, &["secrets", "methods", "remove", id], rest].concat(),
        )
    };
    let named = ["only unlock method 2 (key file)", "remove 1 --yes"];
    remove(&[], "1", &[]).refused(2, &named);
    remove(&[], "7", &[]).refused(2, &["no unlock method 7"]);
    // With the key file configured, the passphrase can be removed. The key file is then the last method.
    let file = lango.home().with_file_name("0.key");
    let setting = format!("vault.keyFile={}", file.display());
    let flags = ["-c", setting.as_str()];
    let removed = remove(&flags, "1", &[]).ok();
    assert!(
        removed.stdout.contains("unlock method 2 (key file)"),
        "{removed:#?}"
    );
    let unlocks = lango.run(&["-c", &setting, "secrets", "methods", "remove", "2", "--yes"]);
    unlocks.refused(2, &["no way to unlock the vault of `local`"]);
    let other = with_key_files(1);
    run(&other, &["secrets", "methods", "remove", "1", "--yes"]).ok();
}

#[test]
fn at_a_terminal_removing_the_method_that_works_here_is_confirmed() {
    let lango = with_key_files(1);
    let env = [("LANGO_VAULT_PASSPHRASE", PASSPHRASE)];
    let arguments = ["secrets", "methods", "remove", "1"];
    for answer in ["n\r", "y\r"] {
        let mut terminal = Terminal::start(&lango, 100, &arguments, &env);
        terminal.wait_for("only unlock method 2 (key file)");
        terminal.wait_for("[y/N] ");
        terminal.press(answer);
        let (ended, last) = terminal.end();
        assert_eq!(ended, Some(0), "{last}");
    }
}

#[test]
fn locking_says_what_unlocks_the_vault_again() {
    let lango = with_key_files(1);
    let locked = run(&lango, &["secrets", "lock"]).ok();
    let unset = "`unset LANGO_VAULT_PASSPHRASE`";
    assert!(locked.stderr.contains(unset), "{locked:#?}");
    let locked = lango.run(&["secrets", "lock"]).ok();
    assert_eq!(locked.stderr, "", "nothing unlocks it");
    let file = lango.home().with_file_name("0.key");
    let setting = format!("vault.keyFile={}", file.display());
    let locked = lango.run(&["-c", &setting, "secrets", "lock"]).ok();
    assert!(locked.stderr.contains("`vault.keyFile`"), "{locked:#?}");
}

#[test]
fn methods_of_one_kind_are_counted_in_doctor() {
    let lango = with_key_files(2);
    let examined = run(&lango, &["doctor"]).ok().stdout;
    assert!(
        examined.contains("can be unlocked by passphrase, 2 key files;"),
        "{examined}"
    );
}

#[test]
fn one_trailing_line_break_of_a_piped_value_is_removed() {
    let lango = Lango::new();
    // A remaining line break is refused in a header.
    for (command, piped, is_fit) in [
        ("set", &b"a long value\n"[..], true),
        ("rotate", b"a long value\r\n", true),
        ("rotate", b"a long value\n\n", false),
    ] {
        let arguments = ["secrets", command, "KEY"];
        let stored = with_passphrase(&lango, PASSPHRASE, &arguments, piped);
        if is_fit {
            stored.ok();
            run(&lango, &["secrets", "bind", "KEY", "--host", "a.example"]).ok();
        } else {
            stored.refused(2, &["a line break"]);
        }
    }
    let help = lango.run(&["secrets", "set", "--help"]).ok().stdout;
    assert!(help.contains("one trailing line end"), "{help}");
}
