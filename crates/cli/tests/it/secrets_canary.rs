//! Runs every command with a secret value, and searches for the value everywhere it must not be.

use crate::lango::{Lango, RunResult, finish, finish_child};
use crate::secrets::{PASSPHRASE, run, set, with_passphrase};
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const CANARY: &str = "canary-3b1f77c0";

/// Returns whether bytes contain the value or the passphrase, in plain text or in a common encoding.
fn contains_secret(bytes: &[u8]) -> bool {
    let forms = [CANARY, PASSPHRASE].into_iter().flat_map(|text| {
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let reversed: Vec<u8> = text.bytes().rev().collect();
        [text.as_bytes().to_vec(), hex.into_bytes(), reversed]
    });
    let base64 = b"Y2FuYXJ5LTNiMWY3N2Mw".to_vec();
    let mut forms = forms.chain([base64]);
    forms.any(|form| bytes.windows(form.len()).any(|part| part == form))
}

#[track_caller]
fn assert_hidden(ran: &RunResult) {
    assert!(!contains_secret(ran.stdout.as_bytes()), "{ran:#?}");
    assert!(!contains_secret(ran.stderr.as_bytes()), "{ran:#?}");
}

#[track_caller]
fn assert_not_stored(lango: &Lango) {
    for (path, content) in lango.stored_files() {
        assert!(!contains_secret(&content), "{}", path.display());
    }
}

#[test]
fn the_scan_finds_planted_values() {
    assert!(contains_secret(format!("x{CANARY}y").as_bytes()));
    assert!(contains_secret(b"..Y2FuYXJ5LTNiMWY3N2Mw.."));
    assert!(contains_secret(PASSPHRASE.as_bytes()));
    assert!(!contains_secret(b"canary"));
}

#[test]
fn a_value_appears_in_no_file_output_or_export() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("vault.key");
    let setting = format!("vault.keyFile={}", file.display());
    let mut all = Vec::new();
    all.push(set(&lango, "KEY", CANARY).ok());
    assert_not_stored(&lango);
    let arguments = ["secrets", "rotate", "KEY", "--expires", "9d"];
    all.push(with_passphrase(&lango, PASSPHRASE, &arguments, CANARY.as_bytes()).ok());
    let mut import = lango.command(&["secrets", "import-env", "OPENAI_API_KEY"]);
    import.env("OPENAI_API_KEY", CANARY);
    all.push(finish(import.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE), b"").ok());
    let key_file = file.to_str().unwrap();
    for arguments in [
        &["secrets", "list"][..],
        &["secrets", "list", "--json"],
        &["secrets", "methods", "add", "--key-file", key_file],
        &["-c", &setting, "secrets", "rotate", "--master"],
        &["secrets", "methods", "list", "--json"],
        &["secrets", "log", "--json"],
        &["secrets", "unlock"],
        &["secrets", "lock"],
        &["doctor", "--json"],
        &["config", "show", "--origin"],
        &["run", "--json", "hello"],
        &["sessions", "export", "--all"],
        &["store", "backup", "backup.db"],
        &["store", "compact"],
    ] {
        let ran = run(&lango, arguments);
        assert!(matches!(ran.code, Some(0 | 3)), "{arguments:?}: {ran:#?}");
        all.push(ran);
        assert_not_stored(&lango);
    }
    // A refusal does not repeat the value either.
    all.push(run(&lango, &["secrets", "set", "KEY", CANARY]).exits(2));
    let wrong = ["secrets", "rm", "KEY"];
    all.push(with_passphrase(&lango, CANARY, &wrong, b"").exits(3));
    all.push(run(&lango, &["secrets", "rm", "KEY"]).ok());
    all.push(run(&lango, &["secrets", "destroy", "--yes"]).ok());
    all.iter().for_each(assert_hidden);
    assert_not_stored(&lango);
    let backup = fs::read(lango.workspace().join("backup.db")).unwrap();
    assert!(backup.len() > 4096 && !contains_secret(&backup));
}

#[test]
fn a_value_appears_in_no_command_line_or_environment() {
    let lango = Lango::new();
    set(&lango, "OTHER", "x").ok();
    run(&lango, &["secrets", "unlock"]).ok();
    let mut command = lango.command(&["secrets", "set", "KEY"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // The process has read the value, and waits for the end of its input.
    input.write_all(CANARY.as_bytes()).unwrap();
    let process = format!("/proc/{}", child.id());
    let since = Instant::now();
    let wanted = b"secrets\0set\0KEY\0";
    while !fs::read(format!("{process}/cmdline"))
        .unwrap()
        .ends_with(wanted)
    {
        assert!(
            since.elapsed() < Duration::from_secs(10),
            "the process never started"
        );
        thread::sleep(Duration::from_millis(5));
    }
    for name in ["cmdline", "environ"] {
        // Only root can read its environment at all.
        let content = fs::read(format!("{process}/{name}")).unwrap_or_default();
        assert!(!contains_secret(&content), "{name}");
    }
    drop(input);
    assert_hidden(&finish_child(child, b"").ok());
    lango.run(&["secrets", "lock"]).ok();
    assert_not_stored(&lango);
}

#[test]
fn no_program_that_lango_starts_gets_the_passphrase() {
    let lango = Lango::new();
    set(&lango, "KEY", CANARY).ok();
    let allow = r#"approval.rules=[{action="allow"}]"#;
    let question = "run `env; cat /proc/self/environ /proc/1/environ; ls /proc`";
    let ran = run(&lango, &["-c", allow, "run", "-q", question]).ok();
    assert!(ran.stdout.contains("PATH="), "{ran:#?}");
    assert_hidden(&ran);
    assert_not_stored(&lango);
}

#[test]
fn an_mcp_server_does_not_get_the_passphrase_even_if_configured() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[mcp.servers.toy]\ncommand = ['sh', '-c', 'env > seen']\nenv = ['LANGO_VAULT_PASSPHRASE']\n",
    );
    let ran = run(&lango, &["mcp", "test", "toy"]).exits(3);
    let expected = "the environment variable `LANGO_VAULT_PASSPHRASE` is not set";
    assert!(ran.stdout.contains(expected), "{ran:#?}");
    assert!(!lango.home().join("mcp-servers/toy/seen").exists());
}
