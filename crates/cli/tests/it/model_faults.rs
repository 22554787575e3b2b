//! Faults of providers through the real binary: what is retried, what replaces the model, what the user reads, and the
//! exit code.

use crate::lango::{Lango, RunResult, text};
use crate::models::{KINDS, Provider, flags, run};
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{ClosedPort, Fault, ScriptedAnswer};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn a_rejected_key_and_a_missing_model_are_reported_without_retries() {
    for kind in KINDS {
        for (fault, says) in [
            (Fault::BadKey, "key is not accepted"),
            (Fault::UnknownModel, "no such model"),
        ] {
            let provider = Provider::new(vec![fault]);
            let ran = run(
                &Lango::new(),
                &flags(kind, provider.server.url()),
                &["hello"],
            );
            assert_eq!(ran.code, Some(3), "{kind}: {}", ran.stderr);
            for part in ["mock/any", provider.server.url(), "`lango setup`"] {
                assert!(ran.stderr.contains(part), "no `{part}` in {ran:#?}");
            }
            assert_printed_once(&ran, says);
            assert_eq!(provider.server.requests().len(), 1, "not asked again");
        }
    }
}

#[test]
fn a_failing_provider_is_retried_and_then_replaced_by_the_fallback() {
    let broken = Provider::new((0..3).map(|_| Fault::status(503, "busy")).collect());
    let other = Provider::new(vec![say("from the other")]);
    let mut flags = flags("openai", broken.server.url());
    for flag in [
        "providers.other.kind=anthropic".to_owned(),
        format!("providers.other.baseUrl={}", other.server.url()),
        "agent.fallback=other/understudy".to_owned(),
    ] {
        flags.extend(["-c".to_owned(), flag]);
    }
    let lango = Lango::new();
    let ran = run(&lango, &flags, &["--json", "hello"]).ok();
    let summary = ran.json();
    assert_eq!(summary["answer"], "from the other");
    assert_eq!(summary["model_calls"], 1, "only the accepted reply counts");
    assert_eq!(broken.server.requests().len(), 3);
    assert!(
        ran.stderr.contains("retrying in")
            && ran.stderr.contains("switching to `other/understudy`")
    );
    let events = lango.events(text(&summary["session"]));
    assert_eq!(events[1]["model"], "other/understudy");
}

/// Asserts that a text appears once, on stderr, in an error with a next step.
#[track_caller]
fn assert_printed_once(ran: &RunResult, text: &str) {
    assert_eq!(ran.stderr.matches(text).count(), 1, "{ran:#?}");
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{ran:#?}");
    assert_eq!(ran.stderr.matches("\n  next: ").count(), 1, "{ran:#?}");
    assert!(!ran.stdout.contains(text), "{ran:#?}");
}

#[test]
fn an_unreachable_provider_fails_the_turn_without_a_replacement() {
    let unreachable = ClosedPort::new();
    let lango = Lango::new();
    let flags = flags("openai", unreachable.url());
    let ran = run(&lango, &flags, &["hello"]).exits(3);
    assert_eq!(ran.stdout, "");
    assert_printed_once(&ran, "Connection refused");
    assert_printed_once(&ran, unreachable.url());
    assert!(ran.stderr.contains("is the server running?"), "{ran:#?}");
    assert!(!ran.stderr.contains("demo mode"), "{ran:#?}");
    assert!(!ran.stderr.contains("0 model calls"), "{ran:#?}");
    let quiet = run(&lango, &flags, &["-q", "hello"]).exits(3);
    assert_eq!(quiet.stderr.lines().count(), 2, "{quiet:#?}");
    assert_printed_once(&quiet, "Connection refused");
    let ran = run(&lango, &flags, &["--json", "hello"]).exits(3);
    assert_eq!(ran.json()["outcome"], "failed");
    assert_eq!(ran.json()["answer"], json!(null));
    assert!(text(&ran.json()["error"]).contains("cannot be reached"));
    assert_eq!(ran.stdout.matches("Connection refused").count(), 1);
    assert_eq!(ran.stderr.matches("Connection refused").count(), 1);
    let ran = run(&lango, &flags, &["--jsonl", "hello"]).exits(3);
    let lines = ran.json_lines();
    let errors = lines.iter().filter(|line| !line["error"].is_null());
    assert_eq!(errors.count(), 1, "{ran:#?}");
}

#[test]
fn a_provider_that_refuses_in_the_middle_of_a_turn_exits_3() {
    for fault in [Fault::BadKey, Fault::UnknownModel] {
        let provider = Provider::new(vec![
            ScriptedAnswer::from(delegate_and_finish("operator", "list the files")),
            call("fs_list", json!({})).into(),
            fault.clone().into(),
            fault.into(),
        ]);
        let ran = run(
            &Lango::new(),
            &flags("openai", provider.server.url()),
            &["-q", "what files are here?"],
        )
        .exits(3);
        assert!(
            ran.stdout.contains("operator failed with the same error."),
            "{ran:#?}"
        );
        assert_printed_once(&ran, "mock/any");
    }
}

#[test]
fn a_name_that_does_not_resolve_and_a_server_without_tls_exit_3_with_the_address() {
    let lango = Lango::new();
    let plain = Provider::new(vec![say("not over TLS")]);
    let encrypted = plain.server.url().replace("http://", "https://");
    for url in ["http://no-such-host.invalid:9/v1", &encrypted] {
        let ran = run(&lango, &flags("openai", url), &["-q", "hello"]).exits(3);
        assert_printed_once(&ran, url);
    }
}

#[test]
fn rate_limits_and_server_errors_exit_1_after_retries() {
    for status in [429, 503] {
        let faults = (0..3).map(|_| Fault::status(status, "come back later"));
        let provider = Provider::new(faults.collect());
        let ran = run(
            &Lango::new(),
            &flags("openai", provider.server.url()),
            &["hello"],
        )
        .exits(1);
        assert_eq!(provider.server.requests().len(), 3);
        assert_eq!(ran.stderr.matches("come back later").count(), 1, "{ran:#?}");
        assert_eq!(ran.stderr.matches("retrying in").count(), 2, "{ran:#?}");
    }
}

#[test]
fn an_account_without_credit_is_not_called_a_wrong_key_and_is_not_retried() {
    let quota = json!({ "error": { "message": "You exceeded your current quota", "code": "insufficient_quota" } });
    for fault in [
        Fault::status(402, "Insufficient credits"),
        Fault::rate_limited("1").body(quota),
    ] {
        let provider = Provider::new(vec![fault]);
        let url = provider.server.url();
        let ran = run(&Lango::new(), &flags("openai", url), &["-q", "hello"]);
        let ran = ran.refused(
            3,
            &[
                "the account has no credit left: ",
                &format!("(the address: {url}/v1)"),
                "next: add credit at the provider, or set agent.fallback",
            ],
        );
        assert!(!ran.stderr.contains("key is not accepted"), "{ran:#?}");
        assert_eq!(provider.server.requests().len(), 1, "not asked again");
    }
}

#[test]
fn every_error_of_a_model_names_its_address_and_a_next_step() {
    let page = "<!DOCTYPE html><html><head><title>Welcome</title></head><body>x</body></html>";
    let cut = ScriptedAnswer::from(say("half of it")).with(Fault::CutAfter(40));
    let rows = [
        (
            Fault::status(500, "oops").into(),
            "cannot serve now",
            "try again later",
        ),
        (
            Fault::status(502, "").body(page).into(),
            "a web page titled \"Welcome\"",
            "try again later",
        ),
        (
            Fault::rate_limited("3600").into(),
            "lango waits at most 60 s, so try again in 1 h",
            "agent.fallback",
        ),
        (cut, "its reply was cut off", "try again"),
        (
            ScriptedAnswer::bytes("text/html", page),
            "a web page titled \"Welcome\"",
            "is the base URL right?",
        ),
        (
            ScriptedAnswer::bytes("application/json", "{\"broken"),
            "its reply cannot be read",
            "is the base URL right?",
        ),
        (
            Fault::SilentBeforeHead.into(),
            "it sent nothing for 0.2 s",
            "agent.idleTimeout",
        ),
        (
            Fault::ContextTooLong.into(),
            "the conversation is too long for it",
            "/new in a chat",
        ),
    ];
    for (answer, says, next) in rows {
        let answer: ScriptedAnswer = answer;
        let provider = Provider::answering(move |_| answer.clone());
        let url = provider.server.url();
        let more = ["-q", "-c", "agent.idleTimeout=200ms", "hello"];
        let ran = run(&Lango::new(), &flags("openai", url), &more).exits(1);
        assert_printed_once(&ran, says);
        let (error, step) = ran.stderr.split_once("\n  next: ").unwrap();
        let address = format!("(the address: {url}/v1)");
        assert!(error.contains(&address), "{ran:#?}");
        assert!(step.contains(next), "{ran:#?}");
        assert!(!ran.stderr.contains('<'), "{ran:#?}");
    }
}

#[test]
fn https_to_a_server_without_tls_says_which_address_to_try() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // A web server answers a handshake with an error in plain text. The thread ends with the process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut hello = [0; 4096];
            let _ = stream.read(&mut hello);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let url = format!("https://{address}");
    let ran = run(&Lango::new(), &flags("openai", &url), &["-q", "hello"]);
    let says = format!("the server does not speak TLS; try http://{address}/v1");
    ran.refused(3, &[&says]);
}

#[test]
fn a_silent_provider_fails_at_the_idle_timeout() {
    let provider = Provider::new(vec![
        ScriptedAnswer::from(Fault::SilentBeforeHead),
        ScriptedAnswer::from(say("awake")),
    ]);
    let ran = run(
        &Lango::new(),
        &flags("openai", provider.server.url()),
        &["-c", "agent.idleTimeout=300ms", "hello"],
    )
    .ok();
    assert_eq!(ran.stdout, "awake\n");
    assert!(
        ran.stderr.contains("it sent nothing for 0.3 s"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_key_that_a_provider_echoes_is_never_shown() {
    let fault = Fault::status(401, "wrong key: Bearer sk-very-secret");
    let provider = Provider::new(vec![fault]);
    let lango = Lango::new();
    let mut command = lango.command(&["run", "-c", "providers.mock.apiKeyEnv=MY_KEY"]);
    command
        .args(flags("openai", provider.server.url()))
        .arg("hello")
        .env("MY_KEY", "sk-very-secret");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let shown = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        shown.contains("[secret MY_KEY]") && !shown.contains("very-secret"),
        "{shown}"
    );
    let stored = lango
        .stored_files()
        .into_iter()
        .flat_map(|(_, content)| content)
        .collect::<Vec<u8>>();
    assert!(!stored.windows(11).any(|window| window == b"very-secret"));
}

#[test]
fn the_offline_rules_as_fallback_are_announced() {
    let provider = Provider::new(vec![Fault::BadKey]);
    let flags = flags("openai", provider.server.url());
    let ran = run(
        &Lango::new(),
        &flags,
        &["-c", "agent.fallback=offline/rules", "--json", "hello"],
    )
    .ok();
    assert_eq!(
        (&ran.json()["model"], &ran.json()["offline"]),
        (&json!("offline/rules"), &json!(true))
    );
    assert!(ran.stderr.contains("not an AI model"));
}
