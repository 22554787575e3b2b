//! Streams that break, wherever they break: a known task is asked for, nothing is sent twice.

use super::script::{
    BOTH, Op, Said, Scripted, accepted, bare_task, card, chunk, deliver, done, hear, patience,
    send, settings, task, text, update,
};
use super::support::{Act, End, Server, head, json as answer, response, sse};
use lango_a2a::client::{A2aAgent, Binding, Patience, connect};
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

/// What the task looks like after so many frames.
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
    let asked = scripted.asked();
    asked
        .iter()
        .filter(|op| matches!(op, Op::Send(_) | Op::Stream(_)))
        .count()
}

/// The text that is left on the screen after all events.
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
async fn a_stream_that_breaks_between_any_two_frames_is_taken_up_again() {
    for binding in BOTH {
        for end in [End::Cut, End::Clean] {
            for cut in 1..=5 {
                let scripted = Scripted::start(binding, true, move |op| match op {
                    Op::Stream(_) => Said::Stream(frames()[..cut].to_vec(), end),
                    Op::Get(_) => Said::Whole(snapshot_after(cut)),
                    Op::Subscribe(_) => {
                        let mut rest = vec![serde_json::json!({ "task": snapshot_after(cut) })];
                        rest.extend_from_slice(&frames()[cut..]);
                        Said::Stream(rest, End::Clean)
                    }
                    other => panic!("{other:?}"),
                })
                .await;
                let (events, end) = hear(&*scripted.agent().await, send("count")).await;
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
async fn a_stream_that_breaks_before_the_task_has_a_name_is_unknown_and_not_sent_again() {
    for binding in BOTH {
        for end in [End::Cut, End::Clean] {
            let scripted = Scripted::start(binding, true, move |_| Said::Stream(vec![], end)).await;
            let (events, ended) = hear(&*scripted.agent().await, send("count")).await;
            assert_eq!(events, []);
            let error = ended.unwrap_err();
            assert!(error.is_unknown);
            assert!(
                error
                    .detail
                    .ends_with("; what becomes of the task is not known"),
                "{error}"
            );
            assert_eq!(scripted.asked().len(), 1);
        }
    }
}

/// Every byte of the answer, head included.
#[tokio::test]
async fn wherever_the_bytes_are_cut_it_is_the_answer_or_unknown() {
    let wrap = |frame: &Value| {
        serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": frame }).to_string()
    };
    let all: Vec<String> = frames().iter().map(wrap).collect();
    let bytes: Vec<u8> = sse(&all, End::Clean)
        .into_iter()
        .flat_map(|act| match act {
            Act::Write(bytes) => bytes,
            other => panic!("{other:?}"),
        })
        .collect();
    let length = bytes.len();
    let cut = Arc::new(AtomicUsize::new(0));
    let until = Arc::clone(&cut);
    let scripted = Scripted::start(Binding::JsonRpc, true, move |op| match op {
        Op::Stream(_) => Said::Raw(vec![Act::Write(
            bytes[..until.load(Ordering::SeqCst)].to_vec(),
        )]),
        Op::Get(_) => Said::Whole(snapshot_after(6)),
        other => panic!("{other:?}"),
    })
    .await;
    let agent = scripted.agent().await;
    let (mut unknown, mut answered) = (0, 0);
    for place in (0..length).step_by(3) {
        cut.store(place, Ordering::SeqCst);
        let (events, ended) = hear(&agent, send("count")).await;
        match ended {
            Ok(answer) => {
                assert_eq!(answer, done("one two three"));
                assert_eq!(left_on_screen(&events), "one two three");
                answered += 1;
            }
            Err(error) => {
                assert!(error.is_unknown, "{place}: {error}");
                assert_eq!(
                    answered, 0,
                    "once the task is known it stays so; {place}: {error}"
                );
                unknown += 1;
            }
        }
    }
    assert!(unknown > 10 && answered > 100, "{unknown} {answered}");
    assert_eq!(sends(&scripted), unknown + answered);
}

async fn hasty(scripted: &Scripted, idle: Duration) -> Arc<A2aAgent> {
    let patience = Patience { idle, ..patience() };
    connect(&settings(&scripted.server.url), &patience)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_silent_stream_is_left_and_the_task_asked_for() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |op| match op {
        Op::Stream(_) => Said::Stream(frames()[..4].to_vec(), End::Silent),
        Op::Get(_) => Said::Whole(snapshot_after(6)),
        other => panic!("{other:?}"),
    })
    .await;
    let agent = hasty(&scripted, Duration::from_millis(300)).await;
    let (events, ended) = hear(&agent, send("count")).await;
    assert_eq!(left_on_screen(&events), "one two three");
    assert_eq!(ended.unwrap(), done("one two three"));
}

#[tokio::test]
async fn a_server_whose_streams_cannot_be_joined_is_polled() {
    for binding in BOTH {
        let looks = AtomicUsize::new(0);
        let scripted = Scripted::start(binding, true, move |op| match op {
            Op::Stream(_) => Said::Stream(frames()[..4].to_vec(), End::Cut),
            Op::Subscribe(_) => Said::Error(-32004, "UNSUPPORTED_OPERATION", "no".to_owned()),
            Op::Get(_) => Said::Whole(snapshot_after(
                if looks.fetch_add(1, Ordering::SeqCst) < 9 {
                    4
                } else {
                    6
                },
            )),
            other => panic!("{other:?}"),
        })
        .await;
        let (_, ended) = hear(&*scripted.agent().await, send("count")).await;
        assert_eq!(ended.unwrap(), done("one two three"), "{binding:?}");
        let asked = scripted.asked();
        let joins = asked
            .iter()
            .filter(|op| matches!(op, Op::Subscribe(_)))
            .count();
        assert_eq!((joins, sends(&scripted)), (5, 1));
    }
}

#[tokio::test]
async fn a_task_that_cannot_be_asked_for_any_more_is_unknown() {
    for (said, expected) in [
        (
            super::script::not_found(),
            "it does not know the task any more (",
        ),
        (
            super::script::nothing(),
            "what became of the task cannot be learnt: the connection broke",
        ),
        (
            Said::Raw(response(500, &[], "")),
            "what became of the task cannot be learnt: it answered 500",
        ),
        (
            Said::Raw(response(403, &[], "")),
            "what became of the task cannot be learnt: it answered 403; it does not accept the token",
        ),
        (
            Said::Raw(response(200, &[], "?")),
            "what became of the task cannot be learnt: its answer is not JSON",
        ),
    ] {
        let scripted = Scripted::start(Binding::HttpJson, true, move |op| match op {
            Op::Stream(_) => Said::Stream(frames()[..4].to_vec(), End::Cut),
            Op::Get(_) => said.clone(),
            other => panic!("{other:?}"),
        })
        .await;
        let (events, ended) = hear(&*scripted.agent().await, send("count")).await;
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
        assert!(scripted.asked().len() <= 8);
    }
}

#[tokio::test]
async fn an_error_in_a_stream_is_told_unless_the_task_says_more() {
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
            Op::Stream(_) => Said::Raw(sse(&all, End::Clean)),
            Op::Get(_) => Said::Whole(bare_task(state, "so it is", &[])),
            other => panic!("{other:?}"),
        })
        .await;
        hear(&*scripted.agent().await, send("count")).await.1
    };
    let error = broken("WORKING").await.unwrap_err();
    assert_eq!(
        (error.detail.as_str(), error.is_unknown),
        ("it answered with error -32603: a bug", true)
    );
    let error = broken("FAILED").await.unwrap_err();
    assert_eq!(
        (error.detail.as_str(), error.is_unknown),
        ("it says that the task failed: so it is", false)
    );
}

#[tokio::test]
async fn streams_and_frames_without_end_are_given_up() {
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
        (comment, "its stream has no end, and was given up"),
        (vec![b'x'; 65536], "it does not know the task any more"),
    ] {
        let scripted = Scripted::start(Binding::JsonRpc, true, move |op| match op {
            Op::Stream(_) => Said::Raw(vec![Act::Write(start()), Act::Flood(flood.clone())]),
            _ => super::script::not_found(),
        })
        .await;
        let error = hear(&*scripted.agent().await, send("count"))
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
async fn a_server_that_answers_in_the_other_way_is_understood() {
    for binding in BOTH {
        for streams in [false, true] {
            let scripted = Scripted::start(binding, streams, |op| match op {
                Op::Stream(_) => Said::Whole(task("COMPLETED", "", &[("a", "ok")])),
                Op::Send(_) => {
                    Said::Stream(vec![task("COMPLETED", "", &[("a", "ok")])], End::Clean)
                }
                other => panic!("{other:?}"),
            })
            .await;
            let (_, ended) = hear(&*scripted.agent().await, send("x")).await;
            assert_eq!(ended.unwrap(), done("ok"), "{binding:?} {streams}");
        }
        let scripted = Scripted::start(binding, true, |op| match op {
            Op::Stream(_) => Said::Error(-32004, "UNSUPPORTED_OPERATION", "no streams".to_owned()),
            Op::Send(_) => Said::Whole(task("COMPLETED", "", &[("a", "ok")])),
            other => panic!("{other:?}"),
        })
        .await;
        let (_, ended) = hear(&*scripted.agent().await, send("x")).await;
        assert_eq!(ended.unwrap(), done("ok"));
        let [Op::Stream(first), Op::Send(second)] = &scripted.asked()[..] else {
            panic!("{:?}", scripted.asked());
        };
        assert_eq!(
            first["message"]["messageId"],
            second["message"]["messageId"]
        );
    }
}

#[tokio::test]
async fn old_content_types_and_methods_are_tried_after_a_refusal() {
    let server = Server::start(|seen| {
        let url = format!("http://{}", seen.header("host").unwrap());
        let said = |value| deliver(Binding::HttpJson, value);
        match (seen.method.as_str(), seen.path.as_str()) {
            ("GET", "/.well-known/agent-card.json") => {
                answer(200, &card(&url, Binding::HttpJson, true))
            }
            ("POST", "/a2a/message:stream")
                if seen.header("content-type") != Some("application/json") =>
            {
                response(415, &[], "")
            }
            ("POST", "/a2a/message:stream") => said(Said::Stream(frames()[..3].to_vec(), End::Cut)),
            ("GET", "/a2a/tasks/t1") => said(Said::Whole(snapshot_after(3))),
            ("POST", "/a2a/tasks/t1:subscribe") => {
                said(Said::Stream(frames()[3..].to_vec(), End::Clean))
            }
            _ => response(405, &[], ""),
        }
    })
    .await;
    let agent = connect(&settings(&server.url), &patience()).await.unwrap();
    let (_, ended) = hear(&agent, send("count")).await;
    assert_eq!(ended.unwrap(), done("one two three"));
}

#[tokio::test]
async fn hanging_up_stops_listening_and_nothing_else() {
    use futures_util::StreamExt;
    use lango_core::RemoteAgent;
    let scripted = Scripted::start(Binding::JsonRpc, true, |op| match op {
        Op::Stream(_) => Said::Stream(frames()[..3].to_vec(), End::Silent),
        Op::Get(_) => Said::Whole(snapshot_after(6)),
        other => panic!("{other:?}"),
    })
    .await;
    let agent = scripted.agent().await;
    let mut stream = agent.call(send("count"));
    let Some(Ok(RemoteEvent::Accepted(thread))) = stream.next().await else {
        panic!("it is accepted");
    };
    drop(stream);
    let (_, ended) = hear(&agent, RemoteCall::GoOn { thread }).await;
    assert_eq!(ended.unwrap(), done("one two three"));
    assert!(
        !scripted
            .asked()
            .iter()
            .any(|op| matches!(op, Op::Cancel(_)))
    );
}
