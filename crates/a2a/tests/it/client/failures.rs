//! Refusals and broken connections: the error message, and whether the outcome of the task is unknown.

use super::script::{
    BOTH, Op, Scripted, ScriptedReply, bare_task, done, no_answer, not_found, resume, run_call,
    send, settings, task, timeouts,
};
use super::support::{Action, Server, head, json as answer, response};
use lango_a2a::client::{Binding, RemoteSettings, RemoteTimeouts, connect};
use lango_core::{RemoteAgent, RemoteCall, RemoteError};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Returns the error of a call whose message gets this reply. Checks that the message is sent once.
async fn error_of(binding: Binding, streams: bool, reply: ScriptedReply) -> RemoteError {
    let scripted = Scripted::start(binding, streams, move |_| reply.clone()).await;
    let (_, ended) = run_call(&*scripted.agent().await, send("x")).await;
    assert_eq!(scripted.operations().len(), 1);
    ended.unwrap_err()
}

#[tokio::test]
async fn a_refusal_quotes_the_agents_message_and_its_outcome_is_known() {
    for binding in BOTH {
        for streams in [false, true] {
            let reply = ScriptedReply::Error(
                -32005,
                "CONTENT_TYPE_NOT_SUPPORTED",
                "no\u{1b}[0m\ntext here".to_owned(),
            );
            let error = error_of(binding, streams, reply).await;
            let expected = match binding {
                Binding::JsonRpc => "it answered with error -32005: no [0m text here",
                Binding::HttpJson => "it answered 400: no [0m text here",
            };
            assert_eq!((error.detail.as_str(), error.is_unknown), (expected, false));
            assert_eq!(
                error.to_string(),
                format!("remote agent `helper` failed: {expected}")
            );
        }
    }
}

#[tokio::test]
async fn the_status_decides_whether_the_outcome_is_unknown() {
    for (status, body, expected, is_unknown) in [
        (400, "", "it answered 400", false),
        (404, "gone", "it answered 404", false),
        (500, "<html>", "it answered 500", true),
        (502, "", "it answered 502", true),
        (504, "", "it answered 504", true),
        (408, "", "it answered 408", true),
        (503, "", "it answered 503", true),
        (
            500,
            r#"{"error":{"code":-32603,"message":"oops"}}"#,
            "it answered 500: oops",
            true,
        ),
        (
            500,
            r#"{"error":{"code":-32602,"message":"no parts"}}"#,
            "it answered 500: no parts",
            false,
        ),
        (
            504,
            r#"{"error":{"code":504,"message":"upstream timed out"}}"#,
            "it answered 504: upstream timed out",
            true,
        ),
        (
            504,
            r#"{"message":"Endpoint request timed out"}"#,
            "it answered 504: Endpoint request timed out",
            true,
        ),
        (
            422,
            r#"{"detail":"no such field"}"#,
            "it answered 422: no such field",
            false,
        ),
    ] {
        for binding in BOTH {
            let error = error_of(
                binding,
                false,
                ScriptedReply::Raw(response(status, &[], body)),
            )
            .await;
            let suffix = if is_unknown {
                "; the outcome of the task is unknown"
            } else {
                ""
            };
            let expected = format!("{expected}{suffix}");
            assert_eq!(
                (error.detail, error.is_unknown),
                (expected, is_unknown),
                "{status}"
            );
        }
    }
    for status in [429, 503] {
        let wait = ScriptedReply::Raw(response(status, &[("retry-after", "7")], ""));
        let error = error_of(Binding::JsonRpc, true, wait).await;
        let expected = format!("it answered {status}; it asks to wait 7 s");
        assert_eq!((error.detail, error.is_unknown), (expected, false));
    }
}

#[tokio::test]
async fn a_failure_after_the_message_was_sent_has_an_unknown_outcome() {
    let broken = [
        (no_answer(), "the connection broke before it answered: "),
        (
            ScriptedReply::Raw(vec![
                Action::Write(head(200, &[("content-length", "99")])),
                Action::Write(b"{".to_vec()),
            ]),
            "the connection broke in its answer: ",
        ),
        (
            ScriptedReply::Raw(response(200, &[], "")),
            "its answer is not JSON",
        ),
        (
            ScriptedReply::Raw(response(200, &[("content-type", "text/html")], "<html>")),
            "its answer is not JSON",
        ),
        (
            ScriptedReply::Raw(response(200, &[], &"[".repeat(100_000))),
            "its answer is not JSON",
        ),
        (
            ScriptedReply::Raw(vec![
                Action::Write(head(200, &[])),
                Action::Flood(vec![b' '; 65536]),
            ]),
            "its answer is longer than 16777216 bytes",
        ),
        (
            ScriptedReply::Raw(answer(200, &json!({ "jsonrpc": "2.0", "id": 1 }))),
            "its answer has neither a result nor an error",
        ),
        (
            ScriptedReply::Raw(answer(
                200,
                &json!({ "jsonrpc": "2.0", "id": 1, "result": 7 }),
            )),
            "it sent nothing that lango understands; the",
        ),
    ];
    for (reply, expected) in broken {
        let error = error_of(Binding::JsonRpc, false, reply).await;
        assert!(
            error.is_unknown && error.detail.starts_with(expected),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_message_without_an_answer_has_an_unknown_outcome_after_the_timeout() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |_| {
        ScriptedReply::Raw(vec![Action::Hang])
    })
    .await;
    let timeouts = RemoteTimeouts {
        reply: Duration::from_millis(1500),
        ..timeouts()
    };
    let agent = connect(&settings(&scripted.server.url), &timeouts)
        .await
        .unwrap();
    let error = run_call(&agent, send("x")).await.1.unwrap_err();
    assert_eq!(
        (error.detail.as_str(), error.is_unknown),
        (
            "it did not answer within 1 s; the outcome of the task is unknown",
            true
        )
    );
    assert_eq!(scripted.operations().len(), 1);
}

#[tokio::test]
async fn if_the_server_is_down_the_message_was_not_sent() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, true, |_| no_answer()).await;
        let agent = scripted.agent().await;
        drop(scripted);
        // The listener closes when its task is dropped, a moment after the abort.
        let url: String = agent.interface_url().to_owned();
        let address = url
            .strip_prefix("http://")
            .unwrap()
            .split('/')
            .next()
            .unwrap()
            .to_owned();
        while tokio::net::TcpStream::connect(&address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let error = run_call(&agent, send("x")).await.1.unwrap_err();
        assert!(!error.is_unknown);
        assert!(
            error.detail.starts_with("it cannot be reached: ") && error.detail.contains("refused"),
            "{error}"
        );
        let error = run_call(&agent, resume()).await.1.unwrap_err();
        assert!(error.is_unknown, "{error}");
        agent.cancel(&super::script::thread(Some("t1"))).await;
    }
}

#[tokio::test]
async fn the_error_for_a_refused_token_names_its_setting_and_never_the_token() {
    let echo = r#"{"error":{"message":"bad token s3cret-t0ken"}}"#;
    for (status, binding) in [(401, Binding::JsonRpc), (403, Binding::HttpJson)] {
        let error = error_of(
            binding,
            true,
            ScriptedReply::Raw(response(status, &[], echo)),
        )
        .await;
        let expected = format!(
            "it answered {status}: bad token [secret HELPER_TOKEN]; it does not accept the token, which comes from environment variable `HELPER_TOKEN`"
        );
        assert_eq!((error.detail, error.is_unknown), (expected, false));
    }
    let failed = ScriptedReply::Whole(task("FAILED", "I was given s3cret-t0ken", &[]));
    let error = error_of(Binding::JsonRpc, false, failed).await;
    assert_eq!(
        error.detail,
        "it reports that the task failed: I was given [secret HELPER_TOKEN]"
    );
    // Without a token, the error says where to provide one.
    let server = Server::start(|request| match request.method.as_str() {
        "GET" => answer(
            200,
            &super::script::card(
                &format!("http://{}", request.header("host").unwrap()),
                Binding::JsonRpc,
                false,
            ),
        ),
        _ => response(401, &[], ""),
    })
    .await;
    let without = RemoteSettings {
        token: None,
        ..settings(&server.url)
    };
    let agent = connect(&without, &timeouts()).await.unwrap();
    let error = run_call(&agent, send("x")).await.1.unwrap_err();
    assert_eq!(
        error.detail,
        "it answered 401; it requires a token; provide it in environment variable `HELPER_TOKEN`"
    );
}

#[tokio::test]
async fn a_message_does_not_follow_redirects() {
    let other = Server::start(|_| response(200, &[], "{}")).await;
    for binding in BOTH {
        for status in [301, 302, 307, 308] {
            let location = format!("{}/a2a", other.url);
            let moved = ScriptedReply::Raw(response(status, &[("location", &location)], ""));
            let error = error_of(binding, true, moved).await;
            assert_eq!(
                error.detail,
                format!("it answered {status}: it has moved to `{location}`")
            );
            assert!(!error.is_unknown);
        }
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn polling_continues_when_the_server_is_busy() {
    for binding in BOTH {
        for status in [429, 503, 500] {
            let polls = AtomicUsize::new(0);
            let scripted = Scripted::start(binding, false, move |op| match op {
                Op::Send(_) => ScriptedReply::Whole(task("WORKING", "", &[])),
                Op::Get(_) if polls.fetch_add(1, Ordering::SeqCst) < 3 => {
                    ScriptedReply::Raw(response(status, &[("retry-after", "0")], ""))
                }
                Op::Get(_) => ScriptedReply::Whole(bare_task("COMPLETED", "ok", &[])),
                other => panic!("{other:?}"),
            })
            .await;
            let (_, ended) = run_call(&*scripted.agent().await, send("x")).await;
            assert_eq!(ended.unwrap(), done("ok"));
            assert_eq!(scripted.operations().len(), 5);
        }
    }
}

#[tokio::test]
async fn a_task_that_the_server_does_not_know_has_an_unknown_outcome() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, true, |_| not_found()).await;
        let agent = scripted.agent().await;
        let error = run_call(&agent, resume()).await.1.unwrap_err();
        assert!(error.is_unknown);
        assert!(
            error.detail.starts_with("it no longer knows the task ("),
            "{error}"
        );
        assert_eq!(scripted.operations().len(), 1);
        let nameless = RemoteCall::Resume {
            thread: super::script::thread(None),
        };
        let error = run_call(&agent, nameless).await.1.unwrap_err();
        assert_eq!(
            (error.detail.as_str(), error.is_unknown),
            (
                "it never gave the task an id, so its outcome cannot be determined",
                true
            )
        );
        assert_eq!(scripted.operations().len(), 1);
    }
}

/// The server never answers, so the clock can be paused.
#[tokio::test]
async fn a_cancel_without_an_answer_times_out_quickly() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |_| {
        ScriptedReply::Raw(vec![Action::Hang])
    })
    .await;
    let agent = scripted.agent().await;
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    agent.cancel(&super::script::thread(Some("t1"))).await;
    assert!(
        started.elapsed() < Duration::from_millis(2100),
        "{:?}",
        started.elapsed()
    );
}
