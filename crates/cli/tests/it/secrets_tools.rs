//! The vault agent's tools with and without a terminal: approvals, typed passphrases and values, and bindings.

use crate::lango::{Lango, RunResult};
use crate::models::{Provider, flags};
use crate::secrets::{PASSPHRASE, run, set};
use crate::terminal::Terminal;
use lango_core::ModelReply;
use lango_testkit::model::{call, delegate_and_finish, say};
use serde_json::{Value, json};

const CANARY: &str = "canary-f00d-1234";

/// Starts a model whose vault agent makes these calls.
fn model(calls: Vec<ModelReply>) -> Provider {
    let mut replies = vec![delegate_and_finish("vault", "do it")];
    replies.extend(calls);
    replies.push(say("Done."));
    Provider::new(replies)
}

fn run_arguments(provider: &Provider) -> Vec<String> {
    let mut arguments = vec!["run".to_owned()];
    arguments.extend(flags("openai", provider.server.url()));
    arguments.push("go".to_owned());
    arguments
}

fn terminal(lango: &Lango, provider: &Provider) -> Terminal {
    let arguments = run_arguments(provider);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Terminal::start(lango, 100, &arguments, &[])
}

/// Returns everything that was sent to the model.
fn sent(provider: &Provider) -> String {
    let requests = provider.server.requests();
    requests
        .iter()
        .map(|request| request.body.to_string())
        .collect()
}

fn assert_hidden(lango: &Lango, provider: &Provider, screen: &str) {
    for value in [CANARY, PASSPHRASE] {
        assert!(!screen.contains(value), "{screen}");
        assert!(!sent(provider).contains(value));
        for (path, content) in lango.stored_files() {
            let mut parts = content.windows(value.len());
            assert!(
                !parts.any(|part| part == value.as_bytes()),
                "{}",
                path.display()
            );
        }
    }
}

fn described(lango: &Lango, name: &str) -> Value {
    run(lango, &["secrets", "describe", name, "--json"])
        .ok()
        .json()
}

#[test]
fn a_requested_secret_is_typed_after_approval_and_creates_the_vault() {
    let lango = Lango::new();
    let provider = model(vec![call(
        "secrets_request",
        json!({ "name": "GITHUB_TOKEN", "purpose": "to push", "binding": { "host": "github.com" } }),
    )]);
    let mut terminal = terminal(&lango, &provider);
    let mut seen = terminal.wait_for("the agent says: to push");
    for shown in [
        "secret: GITHUB_TOKEN",
        "sent to: https://github.com",
        "in the header: authorization",
        "placeholder in: GITHUB_TOKEN",
    ] {
        assert!(seen.contains(shown), "{shown} is not in {seen}");
    }
    seen += &terminal.prompt();
    terminal.press("y");
    for (typed, next) in [
        ("", "8 characters or more): "),
        (PASSPHRASE, "repeat the passphrase: "),
        (PASSPHRASE, "value of GITHUB_TOKEN (not shown): "),
        (CANARY, "value of GITHUB_TOKEN again: "),
    ] {
        if !typed.is_empty() {
            terminal.press(&format!("{typed}\r"));
        }
        seen += &terminal.wait_for(next);
    }
    terminal.press(&format!("{CANARY}\r"));
    let (code, last) = terminal.end();
    seen += &last;
    assert_eq!(code, Some(0), "{seen}");
    assert!(sent(&provider).contains("the user stored GITHUB_TOKEN and bound it"));
    let stored = described(&lango, "GITHUB_TOKEN");
    assert_eq!(stored["bindings"][0]["origin"], "https://github.com");
    assert_hidden(&lango, &provider, &seen);
}

#[test]
fn a_secret_that_is_not_entered_is_not_stored() {
    let lango = Lango::new();
    set(&lango, "OTHER", "a long value").ok();
    let arguments = json!({ "name": "GITHUB_TOKEN", "purpose": "to push" });
    let provider = model(vec![call("secrets_request", arguments)]);
    let mut terminal = terminal(&lango, &provider);
    terminal.prompt();
    terminal.press("y");
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press(&format!("{PASSPHRASE}\r"));
    for _ in 0..3 {
        terminal.wait_for("(not shown): ");
        terminal.press("\r");
    }
    let (_, last) = terminal.end();
    assert!(
        sent(&provider).contains("but did not enter what it needs"),
        "{last}"
    );
    let ran = run(&lango, &["secrets", "describe", "GITHUB_TOKEN"]);
    ran.refused(2, &["there is no secret `GITHUB_TOKEN`"]);
}

#[test]
fn a_locked_vault_is_unlocked_for_a_key_with_one_prompt() {
    let lango = Lango::new();
    set(&lango, "OTHER", "a long value").ok();
    let create = |name: &str| {
        call(
            "crypto_create_key",
            json!({ "name": name, "kind": "ed25519" }),
        )
    };
    let sign = json!({ "key": "SIGNING", "type": "release", "message": "v1" });
    let provider = model(vec![create("SIGNING"), call("crypto_sign", sign)]);
    let mut terminal = terminal(&lango, &provider);
    terminal.wait_for("why: the vault is locked");
    terminal.prompt();
    terminal.press("y");
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press("something else\r");
    terminal.wait_for("try again");
    terminal.wait_for("passphrase of the vault of `local`: ");
    terminal.press(&format!("{PASSPHRASE}\r"));
    // Signing needs an approval because of its risk. The vault is unlocked now.
    terminal.wait_for("why: it can do harm");
    terminal.prompt();
    terminal.press("y");
    let (code, last) = terminal.end();
    assert_eq!(code, Some(0), "{last}");
    assert!(
        sent(&provider).contains("signature: "),
        "{}",
        sent(&provider)
    );
    let log = lango.run(&["secrets", "log"]).ok().stdout;
    assert!(log.contains("SIGNING (sign release)"), "{log}");
}

#[test]
fn a_binding_needs_an_approval_whatever_the_rules_allow_and_explains_itself() {
    let lango = Lango::new();
    set(&lango, "TOKEN", CANARY).ok();
    run(&lango, &["secrets", "unlock"]).ok();
    let bind = || {
        let binding =
            json!({ "host": "api.example.com", "header": "X-Key", "variable": "API_KEY" });
        call(
            "secrets_bind",
            json!({ "name": "TOKEN", "binding": binding }),
        )
    };
    let allow = [
        "-c",
        r#"approval.rules=[{action="allow"},{action="allow",tool="secrets_bind"}]"#,
    ];
    let provider = model(vec![bind()]);
    let mut scripted = run_arguments(&provider);
    scripted.splice(1..1, allow.map(str::to_owned));
    let scripted: Vec<&str> = scripted.iter().map(String::as_str).collect();
    let ran: RunResult = run(&lango, &scripted);
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert!(
        ran.stderr
            .contains("run it at a terminal, where each call can be approved"),
        "{ran:#?}"
    );
    assert_eq!(described(&lango, "TOKEN")["bindings"], json!([]));
    let provider = model(vec![bind(), bind()]);
    let mut typed = run_arguments(&provider);
    typed.splice(1..1, allow.map(str::to_owned));
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    let mut terminal = Terminal::start(&lango, 100, &typed, &[]);
    let seen = terminal.wait_for("placeholder in: API_KEY");
    for shown in [
        "secret: TOKEN",
        "sent to: https://api.example.com",
        "in the header: x-key",
    ] {
        assert!(seen.contains(shown), "{shown} is not in {seen}");
    }
    for _ in 0..2 {
        let keys = terminal.prompt();
        assert!(
            !keys.contains("this session") && !keys.contains("always"),
            "{keys}"
        );
        terminal.press("y");
    }
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(described(&lango, "TOKEN")["bindings"][0]["header"], "x-key");
    lango.run(&["secrets", "lock"]).ok();
}

#[test]
fn without_a_terminal_the_result_says_what_the_user_can_do() {
    let lango = Lango::new();
    let allow = r#"approval.rules=[{action="allow"}]"#;
    let cases = [
        (
            call("secrets_request", json!({ "name": "NEW", "purpose": "x" })),
            "lango secrets set NEW",
        ),
        (
            call("crypto_create_key", json!({ "name": "K", "kind": "hmac" })),
            "lango secrets init",
        ),
    ];
    for (reply, expected) in cases {
        let provider = model(vec![reply]);
        let mut arguments = run_arguments(&provider);
        arguments.splice(1..1, ["-c".to_owned(), allow.to_owned()]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        lango.run(&arguments).ok();
        assert!(sent(&provider).contains(expected), "{}", sent(&provider));
    }
    set(&lango, "OTHER", "a long value").ok();
    let provider = model(vec![call(
        "crypto_create_key",
        json!({ "name": "K", "kind": "hmac" }),
    )]);
    let mut arguments = run_arguments(&provider);
    arguments.splice(1..1, ["-c".to_owned(), allow.to_owned()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    lango.run(&arguments).ok();
    assert!(
        sent(&provider).contains("lango secrets unlock"),
        "{}",
        sent(&provider)
    );
}

#[test]
fn listing_names_in_a_script_warns_about_no_unused_secret() {
    let lango = Lango::new();
    set(&lango, "OTHER", "a long value").ok();
    let provider = model(vec![call("secrets_list", json!({}))]);
    let arguments = run_arguments(&provider);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = lango.run(&arguments).ok();
    assert!(sent(&provider).contains("OTHER"));
    assert!(!ran.stderr.contains("a secret was not used"), "{ran:#?}");
}
