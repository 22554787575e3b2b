//! A turn in a copy of the database, which may have continued in the original: the user is asked before anything is
//! repeated.

use crate::bench::{Bench, finished, log};
use crate::resume::{about_to_run, answer, bench_with_log, resume, tools, whole_turn};
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalQuestion, Effect, EventBody, Outcome, PendingApproval,
};
use lango_engine::{Conversation, InterruptedTurnPolicy, TurnEnd, turn_updates};
use lango_testkit::model::{ScriptedModel, say};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[track_caller]
fn question(end: TurnEnd) -> PendingApproval {
    match end {
        TurnEnd::Waiting(waiting) if waiting.len() == 1 => waiting[0].clone(),
        end => panic!("one question is expected: {end:?}"),
    }
}

/// Interrupts a turn of a copied database at every point of its log, and returns the question about it.
async fn asked_at_every_point(
    effect: Effect,
) -> Vec<(Bench, Conversation, PendingApproval, Arc<AtomicUsize>)> {
    let whole = whole_turn(effect).await;
    let mut all = Vec::new();
    for length in 1..whole.len() - 1 {
        let (tool, tools) = tools(effect);
        let (bench, id) = bench_with_log(tools, &whole[..length]).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let model = ScriptedModel::from_fn(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            say("done")
        });
        let runner = bench.runner(model);
        let runner = runner.with_interrupted(InterruptedTurnPolicy::Ask);
        let mut conversation = runner.open(id).await.unwrap();
        let asked = question(resume(&mut conversation).await);
        assert_eq!(
            (asked.request.question, tool.runs()),
            (ApprovalQuestion::ContinueTurn, 0)
        );
        assert_eq!(
            calls.load(Ordering::Relaxed),
            0,
            "a model was called after event {length}"
        );
        all.push((bench, conversation, asked, calls));
    }
    all
}

#[tokio::test]
async fn nothing_of_a_copied_turn_is_repeated_before_the_user_is_asked() {
    for effect in [Effect::Pure, Effect::NonIdempotent] {
        for (bench, conversation, asked, _) in asked_at_every_point(effect).await {
            // Opening it again asks the same question, and only once.
            let runner = bench.runner(ScriptedModel::replies([]));
            let mut again = runner.open(conversation.session().clone()).await.unwrap();
            assert!(!again.is_interrupted());
            assert_eq!(question(resume(&mut again).await), asked);
        }
    }
}

#[tokio::test]
async fn a_copied_turn_that_the_user_ends_is_interrupted_without_a_model_call() {
    for (bench, mut conversation, asked, calls) in asked_at_every_point(Effect::NonIdempotent).await
    {
        let report = finished(answer(&mut conversation, &asked, ApprovalAnswer::Skip).await);
        assert_eq!(report.outcome, Outcome::Interrupted);
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        let events = log(&bench, conversation.session()).await;
        let is_answer = |by: &AnswerSource| *by == AnswerSource::Person;
        assert!(events.iter().any(|event| {
            matches!(&event.body, EventBody::ApprovalAnswered { by, .. } if is_answer(by))
        }));
    }
}

#[tokio::test]
async fn a_continued_copied_turn_still_asks_about_the_call_that_had_started() {
    let whole = whole_turn(Effect::NonIdempotent).await;
    let (tool, tools) = tools(Effect::NonIdempotent);
    let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let runner = runner.with_interrupted(InterruptedTurnPolicy::Ask);
    let mut conversation = runner.open(id).await.unwrap();
    let asked = question(resume(&mut conversation).await);
    let asked = question(answer(&mut conversation, &asked, ApprovalAnswer::Retry).await);
    assert_eq!(
        (asked.request.question, tool.runs()),
        (ApprovalQuestion::UnknownOutcome, 0)
    );
    let report = finished(answer(&mut conversation, &asked, ApprovalAnswer::Retry).await);
    assert_eq!((report.answer.as_deref(), tool.runs()), (Some("two"), 1));
}

#[tokio::test]
async fn closing_a_copied_turn_denies_the_question_about_it() {
    for (_bench, mut conversation, _, calls) in asked_at_every_point(Effect::NonIdempotent).await {
        let (updates, _) = turn_updates();
        let closed = conversation.close(&updates).await.unwrap().unwrap();
        assert_eq!(finished(closed).outcome, Outcome::Interrupted);
        assert!(conversation.waiting().is_empty());
        assert_eq!(calls.load(Ordering::Relaxed), 0);
    }
}
