//! Broken streams: the client polls a task whose id it knows, and sends nothing twice.

use super::script::{
    BOTH, Op, Scripted, ScriptedReply, accepted, bare_task, card, chunk, deliver, done, run_call,
    send, settings, task, text, timeouts, update,
};
use super::support::{Action, End, Server, head, json as answer, response, sse};
use lango_a2a::client::{A2aAgent, Binding, RemoteTimeouts, connect};
use lango_core::{RemoteCall, RemoteEvent};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn frames() -> Vec<Value> {
    vec![
        task("SUBMITTED", "", &[]),
        update("WORKING", "on it"),
        chunk("a", "one ", false),
        chunk("a", "two ", true),
        chunk("a", "three", true),
        update("COMPLETED", ""),
    ]
}

/// Returns the task after this many frames.
fn snapshot_after(count: usize) -> Value {
    let text = [
        "",
        "",
        "",
        "one ",
        "one two ",
        "one two three",
        "one two three",
    ][count];
    let state = match count {
        0 | 1 => "SUBMITTED",
        6 => "COMPLETED",
        _ => "WORKING",
    };
    let artifacts = if text.is_empty() {
        vec![]
    } else {
        vec![("a", text)]
    };
    bare_task(state, "", &artifacts)
}

fn sends(scripted: &Scripted) -> usize {
    let operations = scripted.operations();
    operations
        .iter()
        .filter(|op| matches!(op, Op::Send(_) | Op::Stream(_)))
        .count()
}

/// Returns the text that is on the screen after all events.
fn left_on_screen(events: &[RemoteEvent]) -> String {
    let mut screen = String::new();
    for event in events {
        match event {
            RemoteEvent::Text(more) => screen.push_str(more),
            RemoteEvent::Withdrawn => screen.clear(),
            RemoteEvent::Accepted(_) | RemoteEvent::Answer(_) => {}
        }
    }
    screen
}

#[tokio::test]
async fn a_stream_that_breaks_between_any_two_frames_is_resumed() {
    for binding in BOTH {
        for end in [End::Cut, End::Clean] {
            for cut in 1..=5 {
                let scripted = Scripted::start(binding, true, move |op| match op {
                    Op::Stream(_) => ScriptedReply::Stream(frames()[..cut].to_vec(), end),
                    Op::Get(_) => ScriptedReply::Whole(snapshot_after(cut)),
                    Op::Subscribe(_) => {
                        let mut rest = vec![serde_json::json!({ "task": snapshot_after(cut) })];
                        rest.extend_from_slice(&frames()[cut..]);
                        ScriptedReply::Stream(rest, End::Clean)
                    }
                    other => panic!("{other:?}"),
                })
                .await;
                let (events, end) = run_call(&*scripted.agent().await, send("count")).await;
                assert_eq!(events[0], accepted());
                assert!(
                    !events.contains(&RemoteEvent::Withdrawn),
                    "{binding:?} {cut} {events:?}"
                );
                assert_eq!(left_on_screen(&events), "one two three");
                assert_eq!(end.unwrap(), done("one two three"));
                assert_eq!(sends(&scripted), 1);
            }
        }
    }
}

#[tokio::test]
async fn if_a_stream_breaks_before_the_task_has_an_id_the_outcome_is_unknown() {
    for binding in BOTH {
        for end in [End::Cut, End::Clean] {
            let scripted =
                Scripted::start(binding, true, move |_| ScriptedReply::Stream(vec![], end)).await;
            let (events, ended) = run_call(&*scripted.agent().await, send("count")).await;
            assert_eq!(events, []);
            let error = ended.unwrap_err();
            assert!(error.is_unknown);
            assert!(
                error
                    .detail
                    .ends_with("; the outcome of the task is unknown"),
                "{error}"
            );
            assert_eq!(scripted.operations().len(), 1);
        }
    }
}

/// Truncates the answer at every third byte, including the headers.
#[tokio::test]
async fn a_truncated_answer_gives_the_full_answer_or_an_unknown_outcome() {
    let wrap = |frame: &Value| {
        serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": frame }).to_string()
    };
    let all: Vec<String> = frames().iter().map(wrap).collect();
    let bytes: Vec<u8> = sse(&all, End::Clean)
        .into_iter()
        .flat_map(|act| match act {
            Action::Write(bytes) => bytes,
            other => panic!("{other:?}"),
        })
        .collect();
    let length = bytes.len();
    let cut = Arc::new(AtomicUsize::new(0));
    let until = Arc::clone(&cut);
    let scripted = Scripted::start(Binding::JsonRpc, true, move |op| match op {
        Op::Stream(_) => ScriptedReply::Raw(vec![Action::Write(
            bytes[..until.load(Ordering::SeqCst)].to_vec(),
        )]),
        Op::Get(_) => ScriptedReply::Whole(snapshot_after(6)),
        other => panic!("{other:?}"),
    })
    .await;
    let agent = scripted.agent().await;
    let (mut unknown, mut answered) = (0, 0);
    for position in (0..length).step_by(3) {
        cut.store(position, Ordering::SeqCst);
        let (events, ended) = run_call(&agent, send("count")).await;
        match ended {
            Ok(answer) => {
                assert_eq!(answer, done("one two three"));
                assert_eq!(left_on_screen(&events), "one two three");
                answered += 1;
            }
            Err(error) => {
                assert!(error.is_unknown, "{position}: {error}");
                assert_eq!(
                    answered, 0,
                    "once the task is known, it stays known; {position}: {error}"
                );
                unknown += 1;
            }
        }
    }
    assert!(unknown > 10 && answered > 100, "{unknown} {answered}");
    assert_eq!(sends(&scripted), unknown + answered);
}

async fn agent_with_idle_timeout(scripted: &Scripted, idle: Duration) -> Arc<A2aAgent> {
    let timeouts = RemoteTimeouts { idle, ..timeouts() };
    connect(&settings(&scripted.server.url), &timeouts)
        .await
        .unwrap()
}

#[tokio::test]
async fn if_a_stream_is_silent_the_task_is_polled() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |op| match op {
        Op::Stream(_) => ScriptedReply::Stream(frames()[..4].to_vec(), End::Silent),
        Op::Get(_) => ScriptedReply::Whole(snapshot_after(6)),
        other => panic!("{other:?}"),
    })
    .await;
    let agent = agent_with_idle_timeout(&scripted, Duration::from_millis(300)).await;
    let (events, ended) = run_call(&agent, send("count")).await;
    assert_eq!(left_on_screen(&events), "one two three");
    assert_eq!(ended.unwrap(), done("one two three"));
}

#[tokio::test]
async fn a_server_without_subscriptions_is_polled() {
    for binding in BOTH {
        let polls = AtomicUsize::new(0);
        let scripted = Scripted::start(binding, true, move |op| match op {
            Op::Stream(_) => ScriptedReply::Stream(frames()[..4].to_vec(), End::Cut),
            Op::Subscribe(_) => {
                ScriptedReply::Error(-32004, "UNSUPPORTED_OPERATION", "no".to_owned())
            }
            Op::Get(_) => ScriptedReply::Whole(snapshot_after(
                if polls.fetch_add(1, Ordering::SeqCst) < 9 {
                    4
                } else {
                    6
                },
            )),
            other => panic!("{other:?}"),
        })
        .await;
        let (_, ended) = run_call(&*scripted.agent().await, send("count")).await;
        assert_eq!(ended.unwrap(), done("one two three"), "{binding:?}");
        let operations = scripted.operations();
        let subscriptions = operations
            .iter()
            .filter(|op| matches!(op, Op::Subscribe(_)))
            .count();
        assert_eq!((subscriptions, sends(&scripted)), (5, 1));
    }
}

#[tokio::test]
async fn if_a_task_cannot_be_polled_any_more_its_outcome_is_unknown() {
    for (reply, expected) in [
        (super::script::not_found(), "it no longer knows the task ("),
        (
            super::script::no_answer(),
            "the outcome of the task cannot be determined: the connection broke",
        ),
        (
            ScriptedReply::Raw(response(500, &[], "")),
            "the outcome of the task cannot be determined: it answered 500",
        ),
        (
            ScriptedReply::Raw(response(403, &[], "")),
            "the outcome of the task cannot be determined: it answered 403; it does not accept the token",
        ),
        (
            ScriptedReply::Raw(response(200, &[], "?")),
            "the outcome of the task cannot be determined: its answer is not JSON",
        ),
    ] {
        let scripted = Scripted::start(Binding::HttpJson, true, move |op| match op {
            Op::Stream(_) => ScriptedReply::Stream(frames()[..4].to_vec(), End::Cut),
            Op::Get(_) => reply.clone(),
            other => panic!("{other:?}"),
        })
        .await;
        let (events, ended) = run_call(&*scripted.agent().await, send("count")).await;
        assert_eq!(
            events,
            [
                accepted(),
                text("one "),
                text("two "),
                RemoteEvent::Withdrawn
            ]
        );
        let error = ended.unwrap_err();
        assert!(
            error.is_unknown && error.detail.starts_with(expected),
            "{error}"
        );
        assert!(scripted.operations().len() <= 8);
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_reported_unless_the_task_has_ended() {
    let broken = |state: &'static str| async move {
        let wrong = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": "a\nbug" } });
        let mut all: Vec<String> = frames()[..3]
            .iter()
            .map(|frame| {
                serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": frame }).to_string()
            })
            .collect();
        all.push(wrong.to_string());
        let scripted = Scripted::start(Binding::JsonRpc, true, move |op| match op {
            Op::Stream(_) => ScriptedReply::Raw(sse(&all, End::Clean)),
            Op::Get(_) => ScriptedReply::Whole(bare_task(state, "so it is", &[])),
            other => panic!("{other:?}"),
        })
        .await;
        run_call(&*scripted.agent().await, send("count")).await.1
    };
    let error = broken("WORKING").await.unwrap_err();
    assert_eq!(
        (error.detail.as_str(), error.is_unknown),
        ("it answered with error -32603: a bug", true)
    );
    let error = broken("FAILED").await.unwrap_err();
    assert_eq!(
        (error.detail.as_str(), error.is_unknown),
        ("it reports that the task failed: so it is", false)
    );
}

#[tokio::test]
async fn endless_streams_and_events_end_the_call() {
    let start = || {
        let headers = [
            ("content-type", "text/event-stream"),
            ("connection", "close"),
        ];
        let first = serde_json::json!({ "result": task("WORKING", "", &[]) });
        let frame = format!("data: {first}\n\n");
        [head(200, &headers), frame.into_bytes()].concat()
    };
    let comment = [vec![b':'; 65535], b"\n".to_vec()].concat();
    for (flood, expected) in [
        (
            comment,
            "its stream is longer than 64 MiB, so lango stopped reading it",
        ),
        (vec![b'x'; 65536], "it no longer knows the task"),
    ] {
        let scripted = Scripted::start(Binding::JsonRpc, true, move |op| match op {
            Op::Stream(_) => {
                ScriptedReply::Raw(vec![Action::Write(start()), Action::Flood(flood.clone())])
            }
            _ => super::script::not_found(),
        })
        .await;
        let error = run_call(&*scripted.agent().await, send("count"))
            .await
            .1
            .unwrap_err();
        assert!(
            error.is_unknown && error.detail.starts_with(expected),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_may_stream_or_not_regardless_of_the_request() {
    for binding in BOTH {
        for streams in [false, true] {
            let scripted = Scripted::start(binding, streams, |op| match op {
                Op::Stream(_) => ScriptedReply::Whole(task("COMPLETED", "", &[("a", "ok")])),
                Op::Send(_) => {
                    ScriptedReply::Stream(vec![task("COMPLETED", "", &[("a", "ok")])], End::Clean)
                }
                other => panic!("{other:?}"),
            })
            .await;
            let (_, ended) = run_call(&*scripted.agent().await, send("x")).await;
            assert_eq!(ended.unwrap(), done("ok"), "{binding:?} {streams}");
        }
        let scripted = Scripted::start(binding, true, |op| match op {
            Op::Stream(_) => {
                ScriptedReply::Error(-32004, "UNSUPPORTED_OPERATION", "no streams".to_owned())
            }
            Op::Send(_) => ScriptedReply::Whole(task("COMPLETED", "", &[("a", "ok")])),
            other => panic!("{other:?}"),
        })
        .await;
        let (_, ended) = run_call(&*scripted.agent().await, send("x")).await;
        assert_eq!(ended.unwrap(), done("ok"));
        let [Op::Stream(first), Op::Send(second)] = &scripted.operations()[..] else {
            panic!("{:?}", scripted.operations());
        };
        assert_eq!(
            first["message"]["messageId"],
            second["message"]["messageId"]
        );
    }
}

#[tokio::test]
async fn old_content_types_and_methods_are_tried_after_a_refusal() {
    let server = Server::start(|request| {
        let url = format!("http://{}", request.header("host").unwrap());
        let reply = |value| deliver(Binding::HttpJson, value);
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/.well-known/agent-card.json") => {
                answer(200, &card(&url, Binding::HttpJson, true))
            }
            ("POST", "/a2a/message:stream")
                if request.header("content-type") != Some("application/json") =>
            {
                response(415, &[], "")
            }
            ("POST", "/a2a/message:stream") => {
                reply(ScriptedReply::Stream(frames()[..3].to_vec(), End::Cut))
            }
            ("GET", "/a2a/tasks/t1") => reply(ScriptedReply::Whole(snapshot_after(3))),
            ("POST", "/a2a/tasks/t1:subscribe") => {
                reply(ScriptedReply::Stream(frames()[3..].to_vec(), End::Clean))
            }
            _ => response(405, &[], ""),
        }
    })
    .await;
    let agent = connect(&settings(&server.url), &timeouts()).await.unwrap();
    let (_, ended) = run_call(&agent, send("count")).await;
    assert_eq!(ended.unwrap(), done("one two three"));
}

#[tokio::test]
async fn dropping_a_call_does_not_cancel_the_task() {
    use futures_util::StreamExt;
    use lango_core::RemoteAgent;
    let scripted = Scripted::start(Binding::JsonRpc, true, |op| match op {
        Op::Stream(_) => ScriptedReply::Stream(frames()[..3].to_vec(), End::Silent),
        Op::Get(_) => ScriptedReply::Whole(snapshot_after(6)),
        other => panic!("{other:?}"),
    })
    .await;
    let agent = scripted.agent().await;
    let mut stream = agent.call(send("count"));
    let Some(Ok(RemoteEvent::Accepted(thread))) = stream.next().await else {
        panic!("it is accepted");
    };
    drop(stream);
    let (_, ended) = run_call(&agent, RemoteCall::Resume { thread }).await;
    assert_eq!(ended.unwrap(), done("one two three"));
    assert!(
        !scripted
            .operations()
            .iter()
            .any(|op| matches!(op, Op::Cancel(_)))
    );
}
