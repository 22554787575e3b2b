//! What a call had printed when it was stopped is kept: in its result, and for the next turn.

use crate::bench::{Bench, Shared, finished, local, log};
use crate::progress::PrintingTool;
use lango_core::{CallStatus, Event, EventBody, Limit, Outcome, OutputSink, SessionId, Trust};
use lango_engine::{CancelToken, TurnReport, TurnUpdate, turn_updates};
use lango_secrets::SecretValue;
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish, say};
use serde_json::json;
use std::sync::Arc;

const PRINTED: &str = "step 1\n[secret KEY]\nstep 2";

/// Creates a bench whose tool prints and never returns.
fn bench() -> Bench {
    let bench = Bench::new(PrintingTool::tools(async |output: OutputSink| {
        output.push("step 1\nkey-QZXJ-7KVW");
        output.push("-KVWQ\nstep 2\n");
        std::future::pending::<()>().await;
    }));
    let secret = SecretValue::new("key-QZXJ-7KVW-KVWQ");
    bench.masks.add("KEY", &secret);
    bench
}

fn model() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::replies([
        delegate_and_finish("operator", "print it"),
        call("exec_print", json!({})),
        say("It printed two steps."),
    ]))
}

/// Runs a turn and cancels it as soon as the last line was shown, if `stops`.
async fn run(bench: &Bench, model: Arc<ScriptedModel>, stops: bool) -> (SessionId, TurnReport) {
    let mut conversation = bench.runner(Shared(model)).start(local());
    let (sender, mut updates) = turn_updates();
    let cancel = CancelToken::new();
    let reader = async {
        let mut shown = String::new();
        while !shown.ends_with("step 2\n") {
            if let Some(TurnUpdate::ToolOutput { text, .. }) = updates.recv().await {
                shown.push_str(&text);
            }
        }
        if stops {
            cancel.cancel();
        }
    };
    let turn = conversation.turn("go", &cancel, &sender);
    let (end, ()) = futures_util::future::join(turn, reader).await;
    (conversation.session().clone(), finished(end.unwrap()))
}

fn result(events: &[Event]) -> (CallStatus, &str, Trust) {
    let result = events.iter().find_map(|event| match &event.body {
        EventBody::ToolReturned {
            status,
            output,
            trust,
            ..
        } => Some((*status, &**output, *trust)),
        _ => None,
    });
    result.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_call_had_printed_is_in_its_result_and_known_to_the_next_turn() {
    let bench = bench();
    let model = model();
    let (session, report) = run(&bench, Arc::clone(&model), true).await;
    assert_eq!(report.outcome, Outcome::Cancelled);
    let stored = format!("stopped by the user\n{PRINTED}");
    assert_eq!(
        result(&log(&bench, &session).await),
        (CallStatus::Unknown, stored.as_str(), Trust::Untrusted)
    );
    let quote = "- operator used exec_print {}: outcome unknown; it had printed:\n\n      step 1\n      [secret KEY]\n      step 2\n";
    assert!(report.answer.unwrap().contains(quote));

    // A process that reads the session from the store.
    let mut conversation = bench
        .runner(Shared(Arc::clone(&model)))
        .open(session)
        .await
        .unwrap();
    crate::bench::turn(&mut conversation, "what did it print?").await;
    let messages = format!("{:?}", model.requests().last().unwrap().messages);
    assert!(
        messages.contains(&format!("{quote:?}").replace('"', "")),
        "{messages}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_call_had_printed_at_the_time_limit_of_the_turn_is_in_its_result() {
    let mut bench = bench();
    bench.limits.turn_ms = 7000;
    let (session, report) = run(&bench, model(), false).await;
    assert_eq!(report.outcome, Outcome::Limited { limit: Limit::Time });
    let stored = format!("stopped: the time limit of the turn has passed\n{PRINTED}");
    assert_eq!(
        result(&log(&bench, &session).await),
        (CallStatus::Unknown, stored.as_str(), Trust::Untrusted)
    );
    assert!(report.answer.unwrap().contains("      step 2\n"));
}

#[tokio::test(start_paused = true)]
async fn what_a_call_had_printed_at_its_own_time_limit_is_in_its_result() {
    let mut bench = bench();
    bench.limits.tool_ms = 7000;
    let (session, report) = run(&bench, model(), false).await;
    assert!(report.is_answered());
    let advice = "its outcome is unknown; do not repeat it, tell the user";
    let stored = format!("stopped after 7 s: {advice}\n{PRINTED}");
    assert_eq!(
        result(&log(&bench, &session).await),
        (CallStatus::Unknown, stored.as_str(), Trust::Untrusted)
    );
}
