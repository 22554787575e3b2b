//! Replies to an agent's question that are lost, or come too late.

use super::script::{
    BOTH, Heard, Op, Said, Scripted, accepted, bare_task, done, hear, not_found, nothing, send_in,
    task, text, thread,
};
use super::support::End;
use lango_a2a::client::Binding;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a reply ends of which nothing is heard, when the task then stands so.
async fn after_a_lost_reply(binding: Binding, streams: bool, state: &'static str) -> Heard {
    let looks = AtomicUsize::new(0);
    let scripted = Scripted::start(binding, streams, move |op| match op {
        Op::Send(_) | Op::Stream(_) => nothing(),
        Op::Get(_) if looks.fetch_add(1, Ordering::SeqCst) == 0 => {
            Said::Whole(bare_task(state, "Which city?", &[]))
        }
        Op::Get(_) => Said::Whole(bare_task("COMPLETED", "", &[("a", "Sunny")])),
        _ => not_found(),
    })
    .await;
    let heard = hear(
        &*scripted.agent().await,
        send_in("Rome", Some(thread(Some("t1")))),
    )
    .await;
    let asked = scripted.asked();
    let sends = asked
        .iter()
        .filter(|op| matches!(op, Op::Send(_) | Op::Stream(_)));
    assert_eq!(sends.count(), 1);
    heard
}

#[tokio::test]
async fn a_reply_that_was_lost_is_found_by_its_task_unless_that_still_asks() {
    for binding in BOTH {
        for streams in [false, true] {
            let (_, ended) = after_a_lost_reply(binding, streams, "WORKING").await;
            assert_eq!(ended.unwrap(), done("Sunny"));
            let (_, ended) = after_a_lost_reply(binding, streams, "COMPLETED").await;
            assert_eq!(ended.unwrap(), done("Which city?"));
            let error = after_a_lost_reply(binding, streams, "INPUT_REQUIRED")
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
async fn a_reply_to_a_task_that_is_over_or_forgotten_becomes_a_task_of_its_own() {
    for binding in BOTH {
        for streams in [false, true] {
            for refusal in [
                not_found(),
                Said::Error(-32004, "UNSUPPORTED_OPERATION", "it is over".to_owned()),
            ] {
                let scripted = Scripted::start(binding, streams, move |op| match op {
                    Op::Send(sent) | Op::Stream(sent) if sent["message"]["taskId"].is_string() => {
                        refusal.clone()
                    }
                    Op::Send(_) => Said::Whole(task("COMPLETED", "", &[("a", "ok")])),
                    Op::Stream(_) => {
                        Said::Stream(vec![task("COMPLETED", "", &[("a", "ok")])], End::Clean)
                    }
                    other => panic!("{other:?}"),
                })
                .await;
                let call = send_in("Rome", Some(thread(Some("old"))));
                let (events, ended) = hear(&*scripted.agent().await, call).await;
                assert_eq!(events, [accepted(), text("ok")]);
                assert_eq!(ended.unwrap(), done("ok"));
                let Some(Op::Send(last) | Op::Stream(last)) = scripted.asked().pop() else {
                    panic!("{:?}", scripted.asked());
                };
                assert_eq!(last["message"]["contextId"], "c1");
            }
        }
    }
}
