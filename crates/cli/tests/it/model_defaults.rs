//! The model that a key alone selects, and the output of `lango models`, with providers on loopback whose list of
//! models is valid, missing or broken.

use crate::lango::{Lango, RunResult, finish};
use crate::models::Provider;
use crate::terminal::Terminal;
use lango_testkit::model::say;
use lango_testkit::wire_server::{ClosedPort, Fault, RecordedRequest, ScriptedAnswer};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const KEY: &str = "sk-the-very-secret";

/// Returns the list of models as a provider sends it.
fn list(provider: &str, ids: &[&str]) -> ScriptedAnswer {
    let entry = |id: &&str| match provider {
        "gemini" => json!({ "name": format!("models/{id}") }),
        _ => json!({ "id": id }),
    };
    let entries: Vec<Value> = ids.iter().map(entry).collect();
    let name = if provider == "gemini" {
        "models"
    } else {
        "data"
    };
    ScriptedAnswer::json(&json!({ name: entries }))
}

/// Runs lango with only a key and the URL of the provider.
fn with_key(lango: &Lango, provider: &str, url: &str, arguments: &[&str]) -> RunResult {
    let address = format!("providers.{provider}.baseUrl={url}");
    let key = format!("providers.{provider}.apiKeyEnv=THE_KEY");
    let mut command = lango.command(arguments);
    finish(
        command
            .args(["-c", &address, "-c", &key])
            .env("THE_KEY", KEY),
        b"",
    )
}

/// Returns the file of the only stored list.
fn stored_list(lango: &Lango) -> PathBuf {
    let directory = lango.home().join("model-lists");
    let mut files = directory.read_dir().unwrap().map(|file| file.unwrap());
    let file = files.next().expect("a list is stored").path();
    assert!(files.next().is_none(), "there is only one file");
    file
}

/// Makes the stored list older than a day.
fn make_list_old(lango: &Lango) {
    let path = stored_list(lango);
    let mut stored: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let listed_at = stored["listedAt"].as_u64().unwrap();
    stored["listedAt"] = json!(listed_at - 25 * 3600 * 1000);
    std::fs::write(path, stored.to_string()).unwrap();
}

fn paths(requests: &[RecordedRequest]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.path.split(['?', ':']).next().unwrap())
        .collect()
}

#[test]
fn a_key_alone_selects_the_first_preferred_model_on_offer_and_requests_the_list_once() {
    let cases: [(&str, &[&str], &str, &str); 3] = [
        (
            "anthropic",
            &["claude-opus-5", "claude-haiku-4-5-20251001"],
            "claude-haiku-4-5-20251001",
            "/v1/messages",
        ),
        (
            "gemini",
            &["gemini-3.5-flash", "gemini-3.7-flash", "gemini-embedding-2"],
            "gemini-3.7-flash",
            "/v1beta/models/gemini-3.7-flash",
        ),
        (
            "groq",
            &["whisper-large-v3", "qwen/qwen3.8-27b", "openai/gpt-oss-20b"],
            "qwen/qwen3.8-27b",
            "/v1/chat/completions",
        ),
    ];
    for (id, offered, expected, path) in cases {
        let answers = vec![list(id, offered), say("one").into(), say("two").into()];
        let provider = Provider::new(answers);
        let lango = Lango::new();
        let url = provider.server.url();
        let ran = with_key(&lango, id, url, &["run", "--json", "hello"]).ok();
        assert_eq!(ran.json()["model"], format!("{id}/{expected}"));
        assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
        with_key(&lango, id, url, &["run", "hello"]).ok();
        let requests = provider.server.requests();
        let models = if id == "gemini" {
            "/v1beta/models"
        } else {
            "/v1/models"
        };
        assert_eq!(paths(&requests), [models, path, path], "{id}");
        let stored = std::fs::read_to_string(stored_list(&lango)).unwrap();
        assert!(stored.contains(expected) && !stored.contains("very-secret"));
    }
}

#[test]
fn a_configured_model_needs_no_list() {
    let provider = Provider::new(vec![say("hi")]);
    let lango = Lango::new();
    let arguments = ["run", "-c", "agent.model=groq/any", "hello"];
    with_key(&lango, "groq", provider.server.url(), &arguments).ok();
    assert_eq!(paths(&provider.server.requests()), ["/v1/chat/completions"]);
    assert!(!lango.home().join("model-lists").exists());
}

#[test]
fn an_unreachable_provider_falls_back_to_the_stored_list_or_the_first_preference() {
    let lango = Lango::new();
    let provider = Provider::new(vec![
        list("groq", &["openai/gpt-oss-20b"]),
        say("hi").into(),
    ]);
    let url = provider.server.url().to_owned();
    with_key(&lango, "groq", &url, &["run", "hello"]).ok();
    drop(provider);
    make_list_old(&lango);
    let ran = with_key(&lango, "groq", &url, &["config", "check"]).ok();
    assert!(ran.stdout.contains("groq/openai/gpt-oss-20b"), "{ran:#?}");
    let unreachable = ClosedPort::new();
    let ran = with_key(&lango, "groq", unreachable.url(), &["config", "check"]).ok();
    assert!(
        ran.stdout.contains("groq/openai/gpt-oss-120b"),
        "another address has another list: {ran:#?}"
    );
}

#[test]
fn an_old_list_is_requested_again() {
    let lango = Lango::new();
    let provider = Provider::new(vec![
        list("groq", &["openai/gpt-oss-20b"]),
        say("one").into(),
        list("groq", &["openai/gpt-oss-120b"]),
        say("two").into(),
    ]);
    let url = provider.server.url();
    with_key(&lango, "groq", url, &["run", "hello"]).ok();
    make_list_old(&lango);
    let ran = with_key(&lango, "groq", url, &["run", "--json", "hello"]).ok();
    assert_eq!(ran.json()["model"], "groq/openai/gpt-oss-120b");
}

#[test]
fn a_silent_provider_delays_only_the_first_start_and_fails_none() {
    let lango = Lango::new();
    let provider = Provider::new(vec![
        ScriptedAnswer::from(Fault::SilentBeforeHead),
        say("one").into(),
        say("two").into(),
    ]);
    let url = provider.server.url();
    let started = Instant::now();
    let ran = with_key(&lango, "groq", url, &["run", "--json", "hello"]).ok();
    assert_eq!(ran.json()["model"], "groq/openai/gpt-oss-120b");
    assert!(started.elapsed() >= Duration::from_secs(2));
    with_key(&lango, "groq", url, &["run", "hello"]).ok();
    let requests = provider.server.requests();
    let chat = "/v1/chat/completions";
    assert_eq!(paths(&requests), ["/v1/models", chat, chat]);
}

#[test]
fn a_rejected_key_is_reported_by_the_first_call() {
    let provider = Provider::new(vec![Fault::BadKey, Fault::BadKey]);
    let ran = with_key(
        &Lango::new(),
        "groq",
        provider.server.url(),
        &["run", "hello"],
    );
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    for text in [
        "key is not accepted",
        "from THE_KEY",
        "`lango models` to list",
    ] {
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
}

#[test]
fn a_list_without_any_preferred_model_uses_the_first_preference_with_a_warning() {
    let provider = Provider::new(vec![list("groq", &["llama-9"]), say("hi").into()]);
    let ran = with_key(
        &Lango::new(),
        "groq",
        provider.server.url(),
        &["run", "--json", "hello"],
    )
    .ok();
    assert_eq!(ran.json()["model"], "groq/openai/gpt-oss-120b");
    for text in ["warning: groq offers none", "`lango models`", "agent.model"] {
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
}

#[test]
fn an_ephemeral_run_stores_no_list() {
    let provider = Provider::new(vec![
        list("groq", &["openai/gpt-oss-20b"]),
        say("hi").into(),
    ]);
    let lango = Lango::new();
    let arguments = ["run", "--ephemeral", "--json", "hello"];
    let ran = with_key(&lango, "groq", provider.server.url(), &arguments).ok();
    assert_eq!(ran.json()["model"], "groq/openai/gpt-oss-20b");
    assert!(!lango.home().join("model-lists").exists());
}

#[test]
fn models_shows_the_live_list_then_the_stored_one_then_the_table() {
    let lango = Lango::new();
    let offered = ["llama-9", "openai/gpt-oss-20b"];
    let provider = Provider::new(vec![list("groq", &offered)]);
    let url = provider.server.url().to_owned();
    let ran = with_key(&lango, "groq", &url, &["models"]).ok();
    let line =
        "● groq/openai/gpt-oss-20b  $0.075 in, $0.3 out per million tokens · 131k window · default";
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
    assert!(ran.stdout.contains("  groq/llama-9  price unknown\n"));
    assert!(ran.stderr.contains("list of groq: live"), "{}", ran.stderr);
    assert_eq!(provider.server.requests().len(), 1, "requested once");
    drop(provider);

    let ran = with_key(&lango, "groq", &url, &["models"]).ok();
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("groq/…  cannot be listed: it cannot be reached")
    );
    assert!(ran.stderr.contains("list of groq: cache, just now"));

    std::fs::remove_file(stored_list(&lango)).unwrap();
    let ran = with_key(&lango, "groq", &url, &["models"]).ok();
    assert!(ran.stdout.contains("● groq/openai/gpt-oss-120b  $0.15 in"));
    assert!(ran.stdout.contains("groq/…  cannot be listed"));
    assert!(ran.stderr.contains("list of groq: lango's own table, 20"));
}

#[test]
fn models_json_has_prices_and_windows_as_numbers() {
    let offered = ["llama-9", "openai/gpt-oss-20b"];
    let provider = Provider::new(vec![list("groq", &offered)]);
    let ran = with_key(
        &Lango::new(),
        "groq",
        provider.server.url(),
        &["models", "--json"],
    )
    .ok();
    let rows = ran.json();
    let row = |name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["model"] == name).unwrap().clone()
    };
    let known = row("groq/openai/gpt-oss-20b");
    assert_eq!(known["price"]["input"], 0.075);
    assert_eq!(known["context_tokens"], 131_072);
    let marks = (&known["default"], &known["chosen"], &known["source"]);
    assert_eq!(marks, (&json!(true), &json!(true), &json!("live")));
    let unknown = row("groq/llama-9");
    assert_eq!(
        (&unknown["price"], &unknown["note"]),
        (&Value::Null, &json!("price unknown"))
    );
}

#[test]
fn setup_proposes_the_model_that_the_key_selects() {
    let offered = ["openai/gpt-oss-20b", "qwen/qwen3.8-27b"];
    let provider = Provider::new(vec![list("groq", &offered)]);
    let lango = Lango::new();
    let url = provider.server.url();
    with_key(&lango, "groq", url, &["setup"]).refused(2, &["lango setup --provider groq --yes"]);
    with_key(&lango, "groq", url, &["setup", "--provider", "groq"]).refused(
        2,
        &["lango setup --provider groq --model groq/qwen/qwen3.8-27b"],
    );
}

#[test]
fn setup_lists_models_with_prices_and_writes_the_chosen_one() {
    let offered = ["openai/gpt-oss-20b", "llama-9", "qwen/qwen3.8-27b"];
    // The first one checks the address.
    let lists = [list("groq", &offered), list("groq", &offered)];
    let provider = Provider::new(lists.into_iter().chain([say("hi").into()]).collect());
    let lango = Lango::new();
    let address = format!("providers.groq.baseUrl={}", provider.server.url());
    let flags = ["-c", &address, "-c", "providers.groq.apiKeyEnv=THE_KEY"];
    let arguments: Vec<&str> = ["setup"].into_iter().chain(flags).collect();
    let mut terminal = Terminal::start(&lango, 120, &arguments, &[("THE_KEY", KEY)]);
    terminal.wait_for("number, name or URL (Enter: groq, q quits): ");
    terminal.press("\r");
    terminal.wait_for("Enter uses the one from THE_KEY): ");
    terminal.press("\r");
    let shown = terminal.wait_for("model, by number or name (Enter: qwen/qwen3.8-27b, q quits): ");
    for line in [
        "  1  groq/qwen/qwen3.8-27b  $0.8 in, $4 out per million tokens · 131k window · default",
        "  2  groq/openai/gpt-oss-20b  $0.075 in",
        "  3  groq/llama-9  price unknown",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    terminal.press("2\r");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    let written = std::fs::read_to_string(lango.home().join("lango.toml")).unwrap();
    let start = "[agent]\nmodel = \"groq/openai/gpt-oss-20b\"\n\n[providers.groq]\nbaseUrl = ";
    assert!(written.starts_with(start), "{written}");
    assert!(written.contains("apiKeyEnv = \"THE_KEY\""), "{written}");
    assert!(!lango.home().join("credentials").exists());
    assert!(!written.contains("very-secret"));
}

#[test]
fn a_key_goes_over_plain_http_to_another_machine_only_if_the_provider_allows_it() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[providers.lan]\nkind = 'openai'\nbaseUrl = 'http://models.invalid/v1'\napiKeyEnv = 'LAN_KEY'\n",
    );
    let run = |setting: &str| {
        let mut command = lango.command(&["-c", setting, "-c", "agent.model=lan/m", "run", "hi"]);
        finish(command.env("LAN_KEY", "a-key-that-nobody-sees"), b"")
    };
    run("providers.lan.allowPlainHttp=false").refused(
        3,
        &[
            "unencrypted to `models.invalid`",
            "providers.lan.allowPlainHttp = true",
        ],
    );
    let allowed = run("providers.lan.allowPlainHttp=true");
    assert!(allowed.stderr.contains("cannot be reached"), "{allowed:#?}");
}
