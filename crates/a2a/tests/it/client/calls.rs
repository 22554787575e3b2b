//! Successful calls, over both bindings, with and without streaming.

use super::script::{
    BOTH, Op, Scripted, ScriptedReply, accepted, bare_task, chunk, done, resume, run_call, send,
    send_in, settings, task, text, thread, timeouts, update,
};
use super::support::End;
use lango_a2a::client::{Binding, connect};
use lango_core::{RemoteAgent, RemoteAnswer, RemoteEvent, RemoteThread};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn a_task_is_sent_polled_and_answered() {
    for binding in BOTH {
        let polls = AtomicUsize::new(0);
        let scripted = Scripted::start(binding, false, move |op| match op {
            Op::Send(_) => ScriptedReply::Whole(task("SUBMITTED", "", &[])),
            Op::Get(_) if polls.fetch_add(1, Ordering::SeqCst) < 3 => {
                ScriptedReply::Whole(bare_task("WORKING", "thinking", &[]))
            }
            Op::Get(_) => ScriptedReply::Whole(bare_task("COMPLETED", "", &[("a", "42")])),
            other => panic!("{other:?}"),
        })
        .await;
        let (events, end) = run_call(&*scripted.agent().await, send("6 * 7?")).await;
        assert_eq!(events, [accepted(), text("42")], "{binding:?}");
        assert_eq!(end.unwrap(), done("42"));
        let operations = scripted.operations();
        assert_eq!(operations[1..], vec![Op::Get("t1".to_owned()); 4]);
    }
}

#[tokio::test]
async fn requests_follow_the_protocol_and_a_retried_call_sends_the_same_message() {
    for binding in BOTH {
        for streams in [false, true] {
            let scripted = Scripted::start(binding, streams, |op| match op {
                Op::Send(_) => ScriptedReply::Whole(task("COMPLETED", "", &[("a", "x")])),
                Op::Stream(_) => {
                    ScriptedReply::Stream(vec![task("COMPLETED", "", &[("a", "x")])], End::Clean)
                }
                other => panic!("{other:?}"),
            })
            .await;
            let agent = scripted.agent().await;
            // From a server that names a task, but no context.
            let nameless = RemoteThread {
                context: "".into(),
                task: None,
            };
            for call in [
                send("hello"),
                send("hello"),
                send_in("more", Some(thread(None))),
                send_in("nameless", Some(nameless.clone())),
            ] {
                assert_eq!(run_call(&agent, call).await.1.unwrap(), done("x"));
            }
            let operations = scripted.operations();
            let sent: Vec<&Value> = operations
                .iter()
                .map(|op| match (op, streams) {
                    (Op::Send(sent), false) | (Op::Stream(sent), true) => sent,
                    other => panic!("{other:?}"),
                })
                .collect();
            let id = sent[0]["message"]["messageId"].as_str().unwrap();
            assert_eq!(
                *sent[0],
                json!({
                    "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "hello" }] },
                    "configuration": {
                        "acceptedOutputModes": [
                            "text/plain", "text/markdown", "application/json", "text/html", "application/pdf",
                            "image/png", "image/jpeg", "image/gif", "image/webp",
                        ],
                        "returnImmediately": true,
                    },
                })
            );
            assert_eq!(sent[0], sent[1]);
            assert_ne!(sent[2]["message"]["messageId"], id);
            assert_eq!(sent[2]["message"]["contextId"], "c1");
            assert!(sent[2]["message"]["taskId"].is_null());
            assert!(sent[3]["message"]["contextId"].is_null());
        }
    }
}

#[tokio::test]
async fn a_stream_is_shown_as_it_arrives() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, true, |op| match op {
            Op::Stream(_) => ScriptedReply::Stream(
                vec![
                    task("SUBMITTED", "", &[]),
                    update("WORKING", "let me see"),
                    chunk("a", "Oh ", false),
                    chunk("a", "hello", true),
                    update("COMPLETED", ""),
                ],
                End::Silent,
            ),
            other => panic!("{other:?}"),
        })
        .await;
        let (events, end) = run_call(&*scripted.agent().await, send("hi")).await;
        assert_eq!(
            events,
            [accepted(), text("Oh "), text("hello")],
            "{binding:?}"
        );
        assert_eq!(end.unwrap(), done("Oh hello"));
        assert_eq!(scripted.operations().len(), 1);
    }
}

#[tokio::test]
async fn a_bare_message_is_an_answer_without_a_task() {
    let message = json!({ "message": { "messageId": "m", "contextId": "c1", "role": "ROLE_AGENT",
        "parts": [{ "text": "Hello, " }, { "text": "you" }] } });
    for binding in BOTH {
        for streams in [false, true] {
            let message = message.clone();
            let scripted = Scripted::start(binding, streams, move |op| match op {
                Op::Stream(_) => ScriptedReply::Stream(vec![message.clone()], End::Clean),
                _ => ScriptedReply::Whole(message.clone()),
            })
            .await;
            let (events, end) = run_call(&*scripted.agent().await, send("hi")).await;
            assert_eq!(events, []);
            assert_eq!(end.unwrap(), done("Hello, you"));
        }
    }
}

#[tokio::test]
async fn a_reply_to_a_question_continues_its_task() {
    for binding in BOTH {
        for streams in [false, true] {
            let scripted = Scripted::start(binding, streams, |op| {
                let (Op::Send(sent) | Op::Stream(sent)) = op else {
                    panic!("{op:?}");
                };
                let is_reply = sent["message"]["taskId"] == "t1";
                match (op, is_reply) {
                    (Op::Stream(_), false) => ScriptedReply::Stream(
                        vec![
                            task("WORKING", "", &[]),
                            update("INPUT_REQUIRED", "Which city?"),
                        ],
                        End::Silent,
                    ),
                    // The status from before the reply comes first. It is not the answer to the reply.
                    (Op::Stream(_), true) => ScriptedReply::Stream(
                        vec![
                            task("INPUT_REQUIRED", "Which city?", &[]),
                            update("WORKING", ""),
                            chunk("a", "Sunny", false),
                            update("COMPLETED", ""),
                        ],
                        End::Clean,
                    ),
                    (_, false) => ScriptedReply::Whole(task("INPUT_REQUIRED", "Which city?", &[])),
                    (_, true) => ScriptedReply::Whole(task("COMPLETED", "", &[("a", "Sunny")])),
                }
            })
            .await;
            let agent = scripted.agent().await;
            let (events, end) = run_call(&agent, send("weather?")).await;
            assert_eq!(events, [accepted()]);
            let question = end.unwrap();
            let expected = RemoteAnswer {
                thread: Some(thread(Some("t1"))),
                ..RemoteAnswer::from("Which city?".to_owned())
            };
            assert_eq!(question, expected, "{binding:?} {streams}");
            let (events, end) = run_call(&agent, send_in("Rome", question.thread)).await;
            assert_eq!(events, [accepted(), text("Sunny")]);
            assert_eq!(end.unwrap(), done("Sunny"));
            let (Op::Send(reply) | Op::Stream(reply)) = &scripted.operations()[1] else {
                panic!("{:?}", scripted.operations());
            };
            assert_eq!(reply["message"]["taskId"], "t1");
            assert_eq!(reply["message"]["contextId"], "c1");
            assert_eq!(reply["configuration"]["returnImmediately"], false);
        }
    }
}

#[tokio::test]
async fn after_a_restart_a_task_is_polled_and_subscribed_to() {
    for binding in BOTH {
        for streams in [false, true] {
            let polls = AtomicUsize::new(0);
            let scripted = Scripted::start(binding, streams, move |op| match op {
                Op::Get(_) if polls.fetch_add(1, Ordering::SeqCst) == 0 => {
                    ScriptedReply::Whole(bare_task("WORKING", "", &[("a", "Oh ")]))
                }
                Op::Get(_) => {
                    ScriptedReply::Whole(bare_task("COMPLETED", "", &[("a", "Oh hello")]))
                }
                Op::Subscribe(_) => ScriptedReply::Stream(
                    vec![
                        task("WORKING", "", &[("a", "Oh ")]),
                        chunk("a", "hello", true),
                        update("COMPLETED", ""),
                    ],
                    End::Clean,
                ),
                other => panic!("{other:?}"),
            })
            .await;
            let (events, end) = run_call(&*scripted.agent().await, resume()).await;
            assert_eq!(
                events,
                [text("Oh "), text("hello")],
                "{binding:?} {streams}"
            );
            assert_eq!(end.unwrap(), done("Oh hello"));
            let second = if streams {
                Op::Subscribe("t1".to_owned())
            } else {
                Op::Get("t1".to_owned())
            };
            assert_eq!(scripted.operations(), [Op::Get("t1".to_owned()), second]);
        }
    }
}

#[tokio::test]
async fn resuming_a_task_that_has_ended_or_asks_returns_its_answer_immediately() {
    for (state, message, expected) in [
        ("COMPLETED", "all done", done("all done")),
        (
            "INPUT_REQUIRED",
            "Which?",
            RemoteAnswer {
                thread: Some(thread(Some("t1"))),
                ..RemoteAnswer::from("Which?".to_owned())
            },
        ),
        ("REJECTED", "not mine", done("[REJECT] not mine")),
    ] {
        let scripted = Scripted::start(Binding::JsonRpc, true, move |_| {
            ScriptedReply::Whole(bare_task(state, message, &[]))
        })
        .await;
        let (events, end) = run_call(&*scripted.agent().await, resume()).await;
        assert_eq!(events, []);
        assert_eq!(end.unwrap(), expected);
        assert_eq!(scripted.operations().len(), 1);
    }
}

#[tokio::test]
async fn a_task_is_cancelled_by_its_id() {
    for binding in BOTH {
        let scripted = Scripted::start(binding, true, |op| match op {
            Op::Cancel(_) => ScriptedReply::Whole(bare_task("CANCELED", "", &[])),
            other => panic!("{other:?}"),
        })
        .await;
        let agent = scripted.agent().await;
        agent.cancel(&thread(Some("t1"))).await;
        agent.cancel(&thread(None)).await;
        assert_eq!(scripted.operations(), [Op::Cancel("t1".to_owned())]);
    }
}

#[tokio::test]
async fn a_host_can_be_given_by_name() {
    let scripted = Scripted::start(Binding::JsonRpc, true, |_| {
        ScriptedReply::Stream(vec![task("COMPLETED", "", &[("a", "ok")])], End::Clean)
    })
    .await;
    let by_name = scripted.server.url.replace("127.0.0.1", "localhost");
    let agent = connect(&settings(&by_name), &timeouts()).await.unwrap();
    assert!(agent.interface_url().starts_with("http://localhost:"));
    assert_eq!(run_call(&agent, send("x")).await.1.unwrap(), done("ok"));
}

#[tokio::test]
async fn a_tenant_and_an_unusual_task_id_are_encoded_in_the_url() {
    use super::support::{Server, json as answer};
    for binding in BOTH {
        let server = Server::start(move |request| {
            if request.path.ends_with(".json") {
                let url = format!("http://{}", request.header("host").unwrap());
                let mut card = super::script::card(&url, binding, false);
                card["supportedInterfaces"][0]["tenant"] = json!("te nant");
                return answer(200, &card);
            }
            let task = json!({ "id": "a/b?c", "contextId": "c1", "status": { "state": "TASK_STATE_WORKING" } });
            let mut ended = task.clone();
            ended["status"] = super::script::status("COMPLETED", "ok");
            let is_send = request.path.ends_with("message:send") || request.body["method"] == "SendMessage";
            let reply = if is_send { json!({ "task": task }) } else { ended };
            super::script::deliver(binding, ScriptedReply::Whole(reply))
        })
        .await;
        let agent = connect(&settings(&server.url), &timeouts()).await.unwrap();
        let (events, end) = run_call(&agent, send("hi")).await;
        assert!(
            matches!(&events[0], RemoteEvent::Accepted(thread) if thread.task.as_deref() == Some("a/b?c"))
        );
        assert_eq!(end.unwrap().text, "ok");
        let requests = server.requests();
        match binding {
            Binding::JsonRpc => {
                assert_eq!(requests[1].body["params"]["tenant"], "te nant");
                assert_eq!(
                    requests[2].body["params"],
                    json!({ "id": "a/b?c", "tenant": "te nant" })
                );
            }
            Binding::HttpJson => {
                assert_eq!(requests[1].path, "/a2a/te%20nant/message:send");
                assert_eq!(requests[1].body["tenant"], "te nant");
                assert_eq!(
                    requests[1].header("content-type"),
                    Some("application/a2a+json")
                );
                assert_eq!(requests[2].path, "/a2a/te%20nant/tasks/a%2Fb%3Fc");
            }
        }
    }
}
