//! Arguments and values that `lango secrets` refuses before it stores anything.

use crate::lango::{Lango, finish, text};
use crate::secrets::{PASSPHRASE, listed, run, set, with_passphrase};
use std::process::Stdio;

const NEVER: &str = "never an argument";

#[test]
fn a_key_or_token_in_place_of_a_name_is_refused_and_not_printed() {
    let lango = Lango::new();
    let key = format!("0x{}", "4c08".repeat(16));
    let token = "ghp_0123456789abcdefghij";
    for arguments in [
        &["payments", "wallet", "import", &key][..],
        &["payments", "wallet", "create", &key[2..]],
        &["secrets", "set", token],
        &["secrets", "rotate", token],
        &["secrets", "bind", token, "--for", "github"],
    ] {
        let ran = with_passphrase(&lango, PASSPHRASE, arguments, b"a value").refused(2, &[NEVER]);
        assert!(
            !ran.stderr.contains("4c084c08") && !ran.stderr.contains(token),
            "{ran:#?}"
        );
    }
    assert!(!lango.database().exists());
}

#[test]
fn unlock_methods_can_be_omitted_only_with_a_new_master_key() {
    let lango = Lango::new();
    set(&lango, "A", "a value").ok();
    let arguments = ["secrets", "rotate", "A", "--without", "1"];
    let ran = with_passphrase(&lango, PASSPHRASE, &arguments, b"another").exits(2);
    assert!(ran.stderr.contains("--without"), "{ran:#?}");
    run(&lango, &["secrets", "rotate", "--master", "--without", "1"])
        .refused(2, &["one unlock method must remain"]);
    assert_eq!(listed(&lango), [("A".to_owned(), 1)]);
}

#[test]
fn a_value_with_a_zero_byte_is_not_bound_anywhere() {
    let lango = Lango::new();
    set(&lango, "A", "one\0two").ok();
    let bind = |arguments: &[&str]| run(&lango, &[&["secrets", "bind", "A"], arguments].concat());
    bind(&["--program", "id", "--env", "A"]).refused(2, &["a zero byte"]);
    let ran = bind(&["--host", "example.com"]).refused(2, &["a zero byte"]);
    assert!(!ran.stderr.contains("--program"), "{ran:#?}");
}

#[test]
fn import_env_replaces_an_existing_value_only_if_the_variable_is_named() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[providers.mine]\nkind = 'openai'\nbaseUrl = 'http://127.0.0.1:9/v1'\napiKeyEnv = 'A'\n",
    );
    let arguments = ["secrets", "set", "A", "--expires", "30d"];
    with_passphrase(&lango, PASSPHRASE, &arguments, b"stored").ok();
    let import = |names: &[&str]| {
        let mut command = lango.command(&[&["secrets", "import-env"], names].concat());
        command.env("LANGO_VAULT_PASSPHRASE", PASSPHRASE);
        command.env("A", "from the environment");
        finish(command.stdin(Stdio::null()), b"").ok()
    };
    let ran = import(&[]);
    assert!(
        ran.stdout.contains("skipped A") && ran.stdout.contains("import-env A"),
        "{ran:#?}"
    );
    assert_eq!(listed(&lango), [("A".to_owned(), 1)]);
    let ran = import(&["A"]);
    assert!(ran.stdout.contains("stored A (version 2"), "{ran:#?}");
    assert!(ran.stderr.contains("no longer expires"), "{ran:#?}");
    let row = &run(&lango, &["secrets", "list", "--json"]).ok().json()[0];
    assert_eq!(text(&row["kind"]), "text");
    let arguments = ["secrets", "import-env", "LANGO_VAULT_PASSPHRASE"];
    run(&lango, &arguments).refused(2, &["the passphrase of a vault"]);
}

#[test]
fn the_server_token_in_the_vault_must_be_long_and_errors_say_where_it_is() {
    let lango = Lango::new();
    let store = |command: &str, token: &[u8]| {
        let arguments = ["secrets", command, "lango-server-token"];
        with_passphrase(&lango, PASSPHRASE, &arguments, token)
    };
    store("set", b"short1").refused(3, &["at least 16 visible ASCII characters"]);
    let file = lango.home().join("server-token");
    lango.home_file("server-token", "0123456789abcdef-of-mine\n");
    let imported = run(&lango, &["secrets", "import-env"]).ok();
    assert!(!file.exists());
    for text in ["No command prints it", "rotate lango-server-token"] {
        assert!(imported.stderr.contains(text), "{imported:#?}");
    }
    store("rotate", b"short1").refused(3, &["at least 16 visible ASCII characters"]);
    lango
        .run(&["serve", "--port", "0"])
        .refused(3, &["the server's token is in the vault", "is locked"]);
    let rows = lango.run(&["doctor", "--json"]).json();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == "vault").unwrap();
    assert_eq!(row["warning"], true, "{row}");
    assert!(text(&row["detail"]).contains("the token of `lango serve`"));
}

#[test]
fn mistakes_in_commands_are_reported_with_a_fitting_next_step() {
    let lango = Lango::new();
    set(&lango, "A", "one\ntwo").ok();
    let secrets = |arguments: &[&str]| run(&lango, &[&["secrets"], arguments].concat());
    let arguments = ["bind", "A", "--tool", "mcp:none/foo", "--field", "pw"];
    secrets(&arguments).refused(2, &["there is no MCP server `none`"]);
    let bind = |arguments: &[&str]| secrets(&[&["bind", "A"], arguments].concat());
    bind(&["--program", "/usr/bin/aws"]).refused(2, &["without a path"]);
    bind(&["--host", "example.com"]).refused(2, &["secrets bind A --program"]);
    secrets(&["rm", "a b"]).refused(2, &["a name such as"]);
    secrets(&["set", "B"]).refused(2, &["secrets set B"]);
    secrets(&["set", "B", "--expires", "2020-01-01"]).refused(2, &["is over", "next: give"]);
    let ran = secrets(&["unbind", "A", "x"]).exits(2);
    assert!(
        ran.stderr.contains("not the number of a binding"),
        "{ran:#?}"
    );
    let arguments = ["methods", "add", "--key-file", "/nonexistent/x.key"];
    secrets(&arguments).refused(3, &["an existing, writable folder"]);
    let zero = "0".repeat(64);
    let arguments = ["payments", "wallet", "import"];
    with_passphrase(&lango, PASSPHRASE, &arguments, zero.as_bytes())
        .refused(3, &["the number is 0"]);
}
