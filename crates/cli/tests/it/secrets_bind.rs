//! `lango secrets bind`, `unbind` and `describe` through the real binary.

use crate::lango::{Lango, text};
use crate::secrets::{run, set, with_passphrase};
use crate::terminal::Terminal;
use serde_json::{Value, json};

fn bindings(lango: &Lango, name: &str) -> Vec<Value> {
    let rows = run(lango, &["secrets", "list", "--json"]).ok().json();
    let mut rows = rows.as_array().unwrap().iter();
    let row = rows.find(|row| text(&row["name"]) == name).unwrap();
    row["bindings"].as_array().unwrap().clone()
}

#[test]
fn a_secret_is_bound_shown_and_unbound() {
    let lango = Lango::new();
    set(&lango, "GITHUB_TOKEN", "a long value").ok();
    let arguments = [
        "secrets",
        "bind",
        "GITHUB_TOKEN",
        "--host",
        "api.example.com",
        "--env",
        "GH",
    ];
    let ran = run(&lango, &arguments).ok();
    let binding = "exec: header `authorization` to https://api.example.com, placeholder in GH";
    assert_eq!(ran.stdout, format!("bound GITHUB_TOKEN: {binding}\n"));
    let expected_hint =
        "commands have no network: set tools.exec.network = [\"api.example.com\"] in ";
    assert!(ran.stderr.contains(expected_hint), "{ran:#?}");
    let listed = [
        &["-c", "tools.exec.network=[\"*.example.com\"]"][..],
        &[
            "secrets",
            "bind",
            "GITHUB_TOKEN",
            "--host",
            "b.example.com",
            "--env",
            "GH",
        ],
    ];
    assert_eq!(run(&lango, &listed.concat()).ok().stderr, "");
    let expected = json!({
        "tool": "exec",
        "origin": "https://api.example.com",
        "header": "authorization",
        "variable": "GH",
    });
    assert_eq!(bindings(&lango, "GITHUB_TOKEN")[0], expected);
    let again = run(&lango, &arguments).ok().stdout;
    assert!(again.contains("already has this binding"), "{again}");
    let shown = run(&lango, &["secrets", "describe", "GITHUB_TOKEN"])
        .ok()
        .stdout;
    assert!(shown.contains(&format!("  1. {binding}\n  2. ")), "{shown}");
    let locked = lango.run(&["secrets", "describe", "GITHUB_TOKEN"]).ok();
    assert!(locked.stdout.contains(binding) && locked.stderr.contains("not checked"));
    // A new value keeps the bindings.
    with_passphrase(
        &lango,
        crate::secrets::PASSPHRASE,
        &["secrets", "rotate", "GITHUB_TOKEN"],
        b"another value",
    )
    .ok();
    assert_eq!(bindings(&lango, "GITHUB_TOKEN").len(), 2);
    run(&lango, &["secrets", "unbind", "GITHUB_TOKEN", "3"]).refused(2, &["has no binding 3"]);
    run(&lango, &["secrets", "unbind", "GITHUB_TOKEN", "1"]).ok();
    assert_eq!(bindings(&lango, "GITHUB_TOKEN").len(), 1);
    run(&lango, &["secrets", "unbind", "GITHUB_TOKEN"]).ok();
    assert!(bindings(&lango, "GITHUB_TOKEN").is_empty());
    let log = lango.run(&["secrets", "log"]).ok().stdout;
    assert!(
        log.contains(&format!("unbound                 GITHUB_TOKEN ({binding})")),
        "{log}"
    );
}

#[test]
fn well_known_services_and_programs_can_be_bound() {
    let lango = Lango::new();
    set(&lango, "TOKEN", "a long value").ok();
    for service in ["github", "gitlab", "npm"] {
        let ran = run(&lango, &["secrets", "bind", "TOKEN", "--for", service]).ok();
        assert!(ran.stdout.contains("bound TOKEN: exec: header"), "{ran:#?}");
    }
    let origins: Vec<Value> = bindings(&lango, "TOKEN")
        .iter()
        .map(|binding| binding["origin"].clone())
        .collect();
    assert!(
        origins.contains(&json!("https://api.github.com")),
        "{origins:?}"
    );
    let unknown = run(&lango, &["secrets", "bind", "TOKEN", "--for", "mars"]);
    unknown.refused(2, &["github, gitlab, npm"]);
    set(&lango, "AWS", "a long value").ok();
    run(
        &lango,
        &[
            "secrets",
            "bind",
            "AWS",
            "--program",
            "aws",
            "--env",
            "AWS_SECRET",
        ],
    )
    .ok();
    assert_eq!(
        bindings(&lango, "AWS"),
        [json!({ "tool": "exec", "program": "aws", "variable": "AWS_SECRET" })]
    );
    let help = lango.run(&["secrets", "bind", "--help"]).ok().stdout;
    let help: Vec<&str> = help.split_whitespace().collect();
    let help = help.join(" ");
    assert!(help.contains("github, gitlab or npm"), "{help}");
}

#[test]
fn an_invalid_binding_is_refused_with_the_reason() {
    let lango = Lango::new();
    run(&lango, &["secrets", "bind", "A", "--host", "a.example"])
        .refused(3, &["there is no vault of `local` yet"]);
    set(&lango, "A", "a long value").ok();
    set(&lango, "B", "a long value").ok();
    for (arguments, printed) in [
        (&["A"][..], "name the host, the program or the field"),
        (&["A", "--host", "*.example"], "is not a host"),
        (&["A", "--host", "http://a.example"], "unencrypted"),
        (
            &["A", "--host", "a.example", "--header", "host"],
            "is not the name of a header",
        ),
        (
            &["A", "--host", "a.example", "--env", "1A"],
            "is not the name of an environment variable",
        ),
        (
            &["A", "--host", "a.example", "--tool", "fs_write"],
            "does not run programs",
        ),
        (&["C", "--host", "a.example"], "there is no secret `C`"),
        (
            &["A", "--program", "aws", "--host", "a.example"],
            "cannot be used with",
        ),
        (&["A", "--field", "b"], "--tool"),
        (
            &["A", "--tool", "shop_login", "--field", "b"],
            "`shop_login` takes no secrets as arguments",
        ),
    ] {
        let arguments = [&["secrets", "bind"][..], arguments].concat();
        let ran = run(&lango, &arguments);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(printed), "{printed} is not in {ran:#?}");
    }
    run(
        &lango,
        &["secrets", "bind", "A", "--host", "a.example", "--env", "X"],
    )
    .ok();
    let taken = run(
        &lango,
        &["secrets", "bind", "B", "--host", "a.example", "--env", "X"],
    );
    taken.refused(2, &["`X` of `exec` is already used by the secret `A`"]);
}

#[test]
fn a_short_value_is_stored_with_a_warning() {
    let lango = Lango::new();
    let ran = set(&lango, "PIN", "1234").ok();
    assert!(ran.stderr.contains("lango cannot mask it"), "{ran:#?}");
}

#[test]
fn rotating_without_a_vault_says_so_and_not_that_the_input_is_empty() {
    let ran = Lango::new().run(&["secrets", "rotate", "KEY"]);
    ran.refused(3, &["there is no vault of `local` yet"]);
}

#[test]
fn a_binding_to_an_unknown_tool_or_server_is_refused_with_suggestions() {
    let lango = Lango::new();
    lango.home_file("lango.toml", "[mcp.servers.sentry]\ncommand = ['true']\n");
    set(&lango, "A", "a long value").ok();
    set(&lango, "LINES", "first line\nsecond line").ok();
    let bind = |arguments: &[&str]| run(&lango, &[&["secrets", "bind"], arguments].concat());
    bind(&["A", "--tool", "mcp:sentri", "--host", "a.example"])
        .refused(2, &["no MCP server `sentri`", "did you mean `sentry`?"]);
    bind(&["A", "--tool", "mcp:sentri", "--program", "aws"]).refused(2, &["`sentri`"]);
    let login = ["A", "--tool", "sentry_login", "--field", "password"];
    bind(&login).refused(
        2,
        &["`sentry_login` takes no secrets", "lango mcp test sentry"],
    );
    let page = ["A", "--tool", "browser_act", "--field", "text"];
    bind(&[&page[..], &["--host", "a.example"]].concat())
        .refused(2, &["`browser_act` takes no secrets", "lango doctor"]);
    bind(&["LINES", "--host", "a.example"])
        .refused(2, &["line break", "not allowed in a header", "--program"]);
    assert!(bindings(&lango, "A").is_empty() && bindings(&lango, "LINES").is_empty());
    let bound = bind(&["A", "--tool", "mcp:sentry", "--host", "a.example:8443"]).ok();
    let hint = "add `a.example:8443` to `mcp.servers.sentry.network`";
    assert!(bound.stderr.contains(hint), "{bound:#?}");
    // A bound value cannot be replaced by one that is invalid in a header.
    let passphrase = crate::secrets::PASSPHRASE;
    let rotate = ["secrets", "rotate", "A"];
    with_passphrase(&lango, passphrase, &rotate, b"one\ntwo").refused(2, &["line break"]);
}

#[test]
fn binding_to_a_host_that_the_guard_refuses_names_the_entry_to_add() {
    let lango = Lango::new();
    set(&lango, "A", "a long value").ok();
    let network = "tools.exec.network=[\"127.0.0.1:80\"]";
    let bind = ["secrets", "bind", "A", "--host", "http://127.0.0.1"];
    let closed = run(&lango, &bind).ok();
    let setting = "set tools.exec.network = [\"127.0.0.1:80\"] in ";
    assert!(closed.stderr.contains(setting), "{closed:#?}");
    let listed = run(&lango, &[&["-c", network], &bind[..]].concat()).ok();
    let hint = "`127.0.0.1:80` to `egress.allow`";
    assert!(listed.stderr.contains(hint), "{listed:#?}");
}

#[test]
fn one_of_several_bindings_is_removed_only_by_number_or_with_all() {
    let lango = Lango::new();
    set(&lango, "KEY", "a long value").ok();
    for host in ["a.example", "b.example"] {
        run(&lango, &["secrets", "bind", "KEY", "--host", host]).ok();
    }
    run(&lango, &["secrets", "unbind", "KEY"]).refused(
        2,
        &[
            "1. exec: header `authorization` to https://a.example",
            "2. exec: header `authorization` to https://b.example",
            "`lango secrets unbind KEY NUMBER`",
            "--all",
        ],
    );
    assert_eq!(bindings(&lango, "KEY").len(), 2);
    let env = [("LANGO_VAULT_PASSPHRASE", crate::secrets::PASSPHRASE)];
    let mut terminal = Terminal::start(&lango, 100, &["secrets", "unbind", "KEY"], &env);
    terminal.wait_for("remove which one? [1-2, all, N] ");
    terminal.press("\r");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(bindings(&lango, "KEY").len(), 2);
    run(&lango, &["secrets", "unbind", "KEY", "--all"]).ok();
    assert!(bindings(&lango, "KEY").is_empty());
    run(&lango, &["secrets", "bind", "KEY", "--host", "a.example"]).ok();
    // A single binding needs no number.
    run(&lango, &["secrets", "unbind", "KEY"]).ok();
    assert!(bindings(&lango, "KEY").is_empty());
}

#[test]
fn a_useless_or_broad_binding_is_warned_about() {
    let lango = Lango::new();
    let store = ["secrets", "set", "KEY", "--expires", "1s"];
    with_passphrase(&lango, crate::secrets::PASSPHRASE, &store, b"a long value").ok();
    crate::secrets::wait_until_expired(&lango);
    let bind = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let ran = run(
            &lango,
            &[&["secrets", "bind", "KEY"], &arguments[..]].concat(),
        );
        ran.ok().stderr
    };
    let private = bind("--host http://127.0.0.1:8080");
    for part in ["expired on ", "tools.exec.network = [", "`egress.allow`"] {
        assert!(private.contains(part), "{private}");
    }
    let shell = bind("--program sh --env A");
    assert!(
        shell.contains("executes whatever its arguments say"),
        "{shell}"
    );
    let missing = bind("--program no-such-program --env B");
    assert!(
        missing.contains("no program `no-such-program` in PATH"),
        "{missing}"
    );
    let usual = bind("--program cat --env C");
    assert!(
        !usual.contains("PATH") && !usual.contains("executes"),
        "{usual}"
    );
}
