//! Refusals and broken connections: what is said of them, and whether the task may have been done.

use super::script::{
    BOTH, Op, Said, Scripted, bare_task, done, go_on, hear, not_found, nothing, patience, send,
    settings, task,
};
use super::support::{Act, Server, head, json as answer, response};
use lango_a2a::client::{Binding, Patience, RemoteSettings, connect};
use lango_core::{RemoteAgent, RemoteCall, RemoteError};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How a call ends whose message is answered so; it is sent once.
async fn error_of(binding: Binding, streams: bool, said: Said) -> RemoteError {
    let scripted = Scripted::start(binding, streams, move |_| said.clone()).await;
    let (_, ended) = hear(&*scripted.agent().await, send("x")).await;
    assert_eq!(scripted.asked().len(), 1);
    ended.unwrap_err()
}

#[tokio::test]
async fn refusals_are_told_in_the_agents_words_and_leave_nothing_open() {
    for binding in BOTH {
        for streams in [false, true] {
            let said = Said::Error(
                -32005,
                "CONTENT_TYPE_NOT_SUPPORTED",
                "no\u{1b}[0m\ntext here".to_owned(),
            );
            let error = error_of(binding, streams, said).await;
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
async fn statuses_say_whether_the_task_may_have_been_done() {
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
            let error = error_of(binding, false, Said::Raw(response(status, &[], body))).await;
            let open = if is_unknown {
                "; what becomes of the task is not known"
            } else {
                ""
            };
            let expected = format!("{expected}{open}");
            assert_eq!(
                (error.detail, error.is_unknown),
                (expected, is_unknown),
                "{status}"
            );
        }
    }
    for status in [429, 503] {
        let wait = Said::Raw(response(status, &[("retry-after", "7")], ""));
        let error = error_of(Binding::JsonRpc, true, wait).await;
        let expected = format!("it answered {status}; it asks to wait 7 s");
        assert_eq!((error.detail, error.is_unknown), (expected, false));
    }
}

#[tokio::test]
async fn what_breaks_after_the_message_left_is_unknown() {
    let broken = [
        (nothing(), "the connection broke before it answered: "),
        (
            Said::Raw(vec![
                Act::Write(head(200, &[("content-length", "99")])),
                Act::Write(b"{".to_vec()),
            ]),
            "the connection broke in its answer: ",
        ),
        (Said::Raw(response(200, &[], "")), "its answer is not JSON"),
        (
            Said::Raw(response(200, &[("content-type", "text/html")], "<html>")),
            "its answer is not JSON",
        ),
        (
            Said::Raw(response(200, &[], &"[".repeat(100_000))),
            "its answer is not JSON",
        ),
        (
            Said::Raw(vec![
                Act::Write(head(200, &[])),
                Act::Flood(vec![b' '; 65536]),
            ]),
            "its answer is longer than 16777216 bytes",
        ),
        (
            Said::Raw(answer(200, &json!({ "jsonrpc": "2.0", "id": 1 }))),
            "its answer has neither a result nor an error",
        ),
        (
            Said::Raw(answer(
                200,
                &json!({ "jsonrpc": "2.0", "id": 1, "result": 7 }),
            )),
            "it said nothing that lango understands; what",
        ),
    ];
    for (said, expected) in broken {
        let error = error_of(Binding::JsonRpc, false, said).await;
        assert!(
            error.is_unknown && error.detail.starts_with(expected),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_message_that_is_never_answered_is_unknown_after_the_patience_for_it() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |_| Said::Raw(vec![Act::Hang])).await;
    let patience = Patience {
        reply: Duration::from_millis(1500),
        ..patience()
    };
    let agent = connect(&settings(&scripted.server.url), &patience)
        .await
        .unwrap();
    let error = hear(&agent, send("x")).await.1.unwrap_err();
    assert_eq!(
        (error.detail.as_str(), error.is_unknown),
        (
            "it did not answer within 1 s; what becomes of the task is not known",
            true
        )
    );
    assert_eq!(scripted.asked().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_gone_got_nothing() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, true, |_| nothing()).await;
        let agent = scripted.agent().await;
        drop(scripted);
        // The listener goes when its task is dropped, a moment after it was told to.
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
        let error = hear(&agent, send("x")).await.1.unwrap_err();
        assert!(!error.is_unknown);
        assert!(
            error.detail.starts_with("it cannot be reached: ") && error.detail.contains("refused"),
            "{error}"
        );
        let error = hear(&agent, go_on()).await.1.unwrap_err();
        assert!(error.is_unknown, "{error}");
        agent.cancel(&super::script::thread(Some("t1"))).await;
    }
}

#[tokio::test]
async fn a_refused_token_names_its_setting_and_is_never_repeated() {
    let echo = r#"{"error":{"message":"bad token s3cret-t0ken"}}"#;
    for (status, binding) in [(401, Binding::JsonRpc), (403, Binding::HttpJson)] {
        let error = error_of(binding, true, Said::Raw(response(status, &[], echo))).await;
        let expected = format!(
            "it answered {status}: bad token [secret HELPER_TOKEN]; it does not accept the token, which comes from environment variable `HELPER_TOKEN`"
        );
        assert_eq!((error.detail, error.is_unknown), (expected, false));
    }
    let failed = Said::Whole(task("FAILED", "I was given s3cret-t0ken", &[]));
    let error = error_of(Binding::JsonRpc, false, failed).await;
    assert_eq!(
        error.detail,
        "it says that the task failed: I was given [secret HELPER_TOKEN]"
    );
    // Without one, it is said what gives one.
    let server = Server::start(|seen| match seen.method.as_str() {
        "GET" => answer(
            200,
            &super::script::card(
                &format!("http://{}", seen.header("host").unwrap()),
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
    let agent = connect(&without, &patience()).await.unwrap();
    let error = hear(&agent, send("x")).await.1.unwrap_err();
    assert_eq!(
        error.detail,
        "it answered 401; it wants a token; environment variable `HELPER_TOKEN` gives it"
    );
}

#[tokio::test]
async fn a_message_follows_no_redirect() {
    let other = Server::start(|_| response(200, &[], "{}")).await;
    for binding in BOTH {
        for status in [301, 302, 307, 308] {
            let location = format!("{}/a2a", other.url);
            let moved = Said::Raw(response(status, &[("location", &location)], ""));
            let error = error_of(binding, true, moved).await;
            assert_eq!(
                error.detail,
                format!("it answered {status}: it has moved to `{location}`")
            );
            assert!(!error.is_unknown);
        }
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_that_is_safe() {
    for binding in BOTH {
        for status in [429, 503, 500] {
            let looks = AtomicUsize::new(0);
            let scripted = Scripted::start(binding, false, move |op| match op {
                Op::Send(_) => Said::Whole(task("WORKING", "", &[])),
                Op::Get(_) if looks.fetch_add(1, Ordering::SeqCst) < 3 => {
                    Said::Raw(response(status, &[("retry-after", "0")], ""))
                }
                Op::Get(_) => Said::Whole(bare_task("COMPLETED", "ok", &[])),
                other => panic!("{other:?}"),
            })
            .await;
            let (_, ended) = hear(&*scripted.agent().await, send("x")).await;
            assert_eq!(ended.unwrap(), done("ok"));
            assert_eq!(scripted.asked().len(), 5);
        }
    }
}

#[tokio::test]
async fn a_task_that_nobody_knows_is_unknown() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, true, |_| not_found()).await;
        let agent = scripted.agent().await;
        let error = hear(&agent, go_on()).await.1.unwrap_err();
        assert!(error.is_unknown);
        assert!(
            error
                .detail
                .starts_with("it does not know the task any more ("),
            "{error}"
        );
        assert_eq!(scripted.asked().len(), 1);
        let nameless = RemoteCall::GoOn {
            thread: super::script::thread(None),
        };
        let error = hear(&agent, nameless).await.1.unwrap_err();
        assert_eq!(
            (error.detail.as_str(), error.is_unknown),
            (
                "it never named the task, so nobody can ask what became of it",
                true
            )
        );
        assert_eq!(scripted.asked().len(), 1);
    }
}

/// Nothing here ever answers, so the clock is ours.
#[tokio::test]
async fn a_cancel_that_nobody_hears_is_not_waited_for_long() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |_| Said::Raw(vec![Act::Hang])).await;
    let agent = scripted.agent().await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    agent.cancel(&super::script::thread(Some("t1"))).await;
    assert!(
        began.elapsed() < Duration::from_millis(2100),
        "{:?}",
        began.elapsed()
    );
}
