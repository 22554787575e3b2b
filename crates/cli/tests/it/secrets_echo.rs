//! Services that echo the keys they receive, through the real binary: no value appears on the screen, in a file, or in
//! a model request. Also what a locked vault prevents.

use crate::lango::{Lango, finish};
use crate::models::Provider;
use crate::secrets::{run, set, with_passphrase};
use lango_testkit::canary::{echo, find_encoding};
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{Fault, ScriptedAnswer};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::thread;

const KEY: &str = "sk-canary/+\\&<%41-9d2c";

/// Total number of secrets in the test with many.
const MANY: usize = 200;
/// How many of them are used in one run.
const PER_RUN: usize = 20;

fn canary(index: usize) -> String {
    format!(
        "canary-{index:03}-{:x}",
        0x9e37_79b9_u64 * (index as u64 + 11)
    )
}

/// Starts a server that answers every request with the key it received, in every encoding.
fn echo_server(status: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut key = String::new();
            for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("authorization: ") {
                    key = line[line.len() - value.len()..].replace("Bearer ", "");
                }
            }
            let echoed = echo(&key);
            let body = json!({
                "data": [{ "id": key }, { "id": echoed }],
                "error": { "message": format!("{key} {echoed}") }
            });
            let body = body.to_string();
            let length = body.len();
            let _ = write!(
                &stream,
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
                 Connection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

#[track_caller]
fn assert_absent(lango: &Lango, texts: &[&str], value: &str) {
    for text in texts {
        assert_eq!(find_encoding(text.as_bytes(), value), None, "{text}");
    }
    for (path, content) in lango.stored_files() {
        assert_eq!(find_encoding(&content, value), None, "{}", path.display());
    }
}

fn with_model(url: &str, more: &str) -> Lango {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        format!(
            "agent.model = 'mine/any'\n[providers.mine]\nkind = 'openai'\nbaseUrl = '{url}'\napiKeyEnv = 'secret:MODEL_KEY'\n{more}"
        ),
    );
    set(&lango, "MODEL_KEY", KEY).ok();
    lango
}

/// Returns the configuration of several providers, each with its own key.
fn providers(url: &str, indexes: Range<usize>) -> String {
    let provider = |index| {
        format!(
            "[providers.p{index}]\nkind = 'openai'\nbaseUrl = '{url}/v1'\napiKeyEnv = 'secret:CANARY_{index}'\n"
        )
    };
    indexes.map(provider).collect()
}

#[test]
fn two_hundred_echoed_keys_are_never_shown_or_stored() {
    let lango = Lango::new();
    let file = lango.home().with_file_name("vault.key");
    let settings = format!("vault.keyFile = '{}'\n", file.display());
    lango.home_file("lango.toml", &settings);
    let names: Vec<String> = (0..MANY).map(|index| format!("CANARY_{index}")).collect();
    let mut arguments = vec!["secrets", "import-env"];
    arguments.extend(names.iter().map(String::as_str));
    let mut import = lango.command(&arguments);
    for (index, name) in names.iter().enumerate() {
        import.env(name, canary(index));
    }
    finish(&mut import, b"").ok();
    let mut shown = String::new();
    let urls = [echo_server(200), echo_server(401)];
    for first in (0..MANY).step_by(PER_RUN) {
        let url = &urls[first / PER_RUN % 2];
        let asked = providers(url, first..first + PER_RUN);
        lango.home_file("lango.toml", settings.clone() + &asked);
        let ran = lango.run(&["models"]).ok();
        shown += &ran.stdout;
        shown += &ran.stderr;
    }
    let log = lango
        .run(&["secrets", "log", "--limit", "1000"])
        .ok()
        .stdout;
    assert_eq!(log.matches(" used ").count(), MANY, "{log}");
    shown += &log;
    let stored = lango.stored_files().into_iter();
    let stored: Vec<u8> = stored.flat_map(|(_, content)| content).collect();
    for (index, name) in names.iter().enumerate() {
        let value = canary(index);
        assert_eq!(find_encoding(shown.as_bytes(), &value), None, "{shown}");
        assert_eq!(find_encoding(&stored, &value), None, "{name}");
        assert!(
            shown.contains(&format!("[secret {name}]")),
            "{name}: {shown}"
        );
    }
}

#[test]
fn a_key_that_a_model_echoes_is_never_shown() {
    for stream in ["true", "false"] {
        let provider = Provider::new(vec![
            delegate_and_finish("operator", &echo(KEY)),
            call(
                "fs_write",
                json!({ "path": "echo.txt", "content": echo(KEY) }),
            ),
            call("fs_read", json!({ "path": "echo.txt" })),
            say(&format!("It is {}", echo(KEY))),
        ]);
        let stream = format!("stream = {stream}\n");
        let lango = with_model(provider.server.url(), &stream);
        let allow = r#"approval.rules=[{action="allow"}]"#;
        let ran = run(&lango, &["-c", allow, "run", "--json", "hello"]).ok();
        assert!(ran.stdout.contains("[secret MODEL_KEY]"), "{ran:#?}");
        let shown = std::fs::read_to_string(lango.workspace().join("echo.txt")).unwrap();
        let export = run(&lango, &["sessions", "export", "--all"]).ok();
        assert_absent(
            &lango,
            &[&ran.stdout, &ran.stderr, &shown, &export.stdout],
            KEY,
        );
        for request in provider.server.requests() {
            let body = request.body.to_string();
            assert_eq!(find_encoding(body.as_bytes(), KEY), None, "{body}");
        }
    }
}

#[test]
fn a_key_that_an_error_echoes_is_never_shown() {
    let content = format!("{}{}", "x".repeat(185), echo(KEY));
    let answers: Vec<ScriptedAnswer> = vec![
        Fault::status(401, &content).into(),
        Fault::status(500, &content)
            .header("content-encoding", "gzip")
            .into(),
    ];
    for answer in answers {
        let provider = Provider::new(vec![answer]);
        let lango = with_model(provider.server.url(), "");
        let ran = run(&lango, &["run", "hello"]);
        assert_ne!(ran.code, Some(0), "{ran:#?}");
        assert!(!ran.stderr.contains("sk-can"), "{ran:#?}");
        assert_absent(&lango, &[&ran.stdout, &ran.stderr], KEY);
    }
}

#[test]
fn a_command_that_prints_a_key_of_the_environment_is_masked() {
    let lango = Lango::new();
    lango.file("leak.txt", echo(KEY));
    let allow = r#"approval.rules=[{action="allow"}]"#;
    let mut command = lango.command(&["-c", allow, "run", "-q", "run `cat leak.txt`"]);
    // The environment has the key of a provider that is not used.
    command
        .env("ANTHROPIC_API_KEY", KEY)
        .args(["-c", "agent.model=offline"]);
    let ran = finish(&mut command, b"").ok();
    assert!(
        ran.stdout.contains("[secret ANTHROPIC_API_KEY]"),
        "{ran:#?}"
    );
    assert_eq!(find_encoding(ran.stdout.as_bytes(), KEY), None, "{ran:#?}");
    // The key is masked in the log of the session.
    let export = lango.run(&["sessions", "export", "--all"]).ok();
    assert!(export.stdout.contains("[secret"), "{export:#?}");
    assert_eq!(
        find_encoding(export.stdout.as_bytes(), KEY),
        None,
        "{export:#?}"
    );
}

#[test]
fn a_locked_vault_stops_only_what_needs_it() {
    let provider = Provider::new(vec![say("Hi.")]);
    let lango = with_model(provider.server.url(), "");
    lango.run(&["run", "hello"]).refused(
        3,
        &["the vault of `local` is locked", "lango secrets unlock"],
    );
    lango
        .run(&["run", "-c", "agent.model=offline", "hello"])
        .ok();
    // Read-only commands report a wrong passphrase and continue.
    let wrong = "wrong passphrase";
    let ran = with_passphrase(&lango, wrong, &["doctor"], b"");
    assert!(
        ran.stdout.contains("vault") && ran.stdout.contains("sandbox"),
        "{ran:#?}"
    );
    let ran = with_passphrase(&lango, wrong, &["agents"], b"").ok();
    let named = "LANGO_VAULT_PASSPHRASE does not unlock the vault of `local`";
    assert!(ran.stderr.contains(named), "{ran:#?}");
    with_passphrase(&lango, "wrong passphrase", &["run", "hello"], b"").exits(3);
    assert!(provider.server.requests().is_empty());
}

#[test]
fn an_error_about_an_empty_secret_name_names_the_setting() {
    let lango = Lango::new();
    lango.home_file(
        "lango.toml",
        "[providers.mine]\nkind = 'openai'\nbaseUrl = 'http://127.0.0.1:9'\napiKeyEnv = 'secret:'\n",
    );
    lango
        .run(&["run", "hello"])
        .refused(3, &["providers.mine.apiKeyEnv"]);
}
