//! Faults of providers through the real binary: what is retried, what replaces the model, what the user reads, and the
//! exit code.

use crate::lango::{Lango, RunResult, text};
use crate::models::{KINDS, Provider, flags, run};
use lango_testkit::model::{call, delegate_and_finish, say};
use lango_testkit::wire_server::{ClosedPort, Fault, ScriptedAnswer};
use serde_json::json;

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
