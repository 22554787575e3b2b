//! Replies to an agent's question that are lost or arrive too late.

use super::script::{
    BOTH, CallTrace, Op, Scripted, ScriptedReply, accepted, bare_task, done, no_answer, not_found,
    run_call, send_in, task, text, thread,
};
use super::support::End;
use lango_a2a::client::Binding;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a reply that gets no answer, when the task is in this state afterwards.
async fn lose_reply(binding: Binding, streams: bool, state: &'static str) -> CallTrace {
    let polls = AtomicUsize::new(0);
    let scripted = Scripted::start(binding, streams, move |op| match op {
        Op::Send(_) | Op::Stream(_) => no_answer(),
        Op::Get(_) if polls.fetch_add(1, Ordering::SeqCst) == 0 => {
            ScriptedReply::Whole(bare_task(state, "Which city?", &[]))
        }
        Op::Get(_) => ScriptedReply::Whole(bare_task("COMPLETED", "", &[("a", "Sunny")])),
        _ => not_found(),
    })
    .await;
    let trace = run_call(
        &*scripted.agent().await,
        send_in("Rome", Some(thread(Some("t1")))),
    )
    .await;
    let operations = scripted.operations();
    let sends = operations
        .iter()
        .filter(|op| matches!(op, Op::Send(_) | Op::Stream(_)));
    assert_eq!(sends.count(), 1);
    trace
}

#[tokio::test]
async fn a_lost_reply_is_recovered_through_its_task_unless_the_task_still_asks() {
    for binding in BOTH {
        for streams in [false, true] {
            let (_, ended) = lose_reply(binding, streams, "WORKING").await;
            assert_eq!(ended.unwrap(), done("Sunny"));
            let (_, ended) = lose_reply(binding, streams, "COMPLETED").await;
            assert_eq!(ended.unwrap(), done("Which city?"));
            let error = lose_reply(binding, streams, "INPUT_REQUIRED")
                .await
                .1
                .unwrap_err();
            assert!(error.is_unknown, "{error}");
            assert!(
                error
                    .detail
                    .starts_with("the connection broke before it answered"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_reply_to_a_task_that_has_ended_or_was_deleted_starts_a_new_task() {
    for binding in BOTH {
        for streams in [false, true] {
            for refusal in [
                not_found(),
                ScriptedReply::Error(-32004, "UNSUPPORTED_OPERATION", "it is over".to_owned()),
            ] {
                let scripted = Scripted::start(binding, streams, move |op| match op {
                    Op::Send(sent) | Op::Stream(sent) if sent["message"]["taskId"].is_string() => {
                        refusal.clone()
                    }
                    Op::Send(_) => ScriptedReply::Whole(task("COMPLETED", "", &[("a", "ok")])),
                    Op::Stream(_) => ScriptedReply::Stream(
                        vec![task("COMPLETED", "", &[("a", "ok")])],
                        End::Clean,
                    ),
                    other => panic!("{other:?}"),
                })
                .await;
                let call = send_in("Rome", Some(thread(Some("old"))));
                let (events, ended) = run_call(&*scripted.agent().await, call).await;
                assert_eq!(events, [accepted(), text("ok")]);
                assert_eq!(ended.unwrap(), done("ok"));
                let Some(Op::Send(last) | Op::Stream(last)) = scripted.operations().pop() else {
                    panic!("{:?}", scripted.operations());
                };
                assert_eq!(last["message"]["contextId"], "c1");
            }
        }
    }
}
