//! Resuming a turn whose process is gone: what is repeated, what the user is asked, and what is preserved.

use crate::bench::{Bench, local, log, turn};
use lango_core::{
    AnswerSource, ApprovalAnswer, ApprovalQuestion, CallStatus, Effect, Event, EventBody,
    NewSession, Outcome, PendingApproval, SessionId, SessionStore, Timestamp, Tool, TurnFault,
};
use lango_engine::{CancelToken, Conversation, RunnerError, TurnEnd, TurnReport, turn_updates};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, call, delegate, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

/// The complete log of a turn in which the operator calls a tool once.
pub(crate) async fn whole_turn(effect: Effect) -> Vec<Event> {
    let bench = Bench::new(tools(effect).1);
    let script = [
        delegate("operator", "x"),
        call("fs_do", json!({})),
        say("one"),
        say("two"),
    ];
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    turn(&mut conversation, "x").await;
    log(&bench, conversation.session()).await
}

pub(crate) fn tools(effect: Effect) -> (Arc<CountingTool>, Vec<Arc<dyn Tool>>) {
    let tool = Arc::new(CountingTool::new("fs_do").with_effect(effect));
    (Arc::clone(&tool), vec![tool])
}

/// A bench whose store has these events, and no process that runs the turn.
pub(crate) async fn bench_with_log(
    tools: Vec<Arc<dyn Tool>>,
    events: &[Event],
) -> (Bench, SessionId) {
    let store: Arc<dyn SessionStore> = Arc::new(Store::in_memory());
    let id = events[0].session.clone();
    let new = NewSession {
        id: id.clone(),
        user: local(),
        created: Timestamp(0),
    };
    store.create(new).await.unwrap();
    store.append(events.to_vec().into()).await.unwrap();
    let bench = Bench {
        store,
        ..Bench::new(tools)
    };
    (bench, id)
}

pub(crate) async fn resume(conversation: &mut Conversation) -> TurnEnd {
    let (sender, _shown) = turn_updates();
    let end = conversation
        .resume(&CancelToken::new(), &sender)
        .await
        .unwrap();
    end.expect("there is something to go on with")
}

pub(crate) async fn answer(
    conversation: &mut Conversation,
    waiting: &PendingApproval,
    answer: ApprovalAnswer,
) -> TurnEnd {
    let (sender, _shown) = turn_updates();
    let (request, by) = (&waiting.request.id, AnswerSource::Person);
    conversation
        .answer(request, answer, by, &CancelToken::new(), &sender)
        .await
        .unwrap()
}

pub(crate) fn finished(end: TurnEnd) -> TurnReport {
    end.finished().expect("it has an outcome")
}

/// Returns the events up to the moment before the tool runs.
pub(crate) fn about_to_run(whole: &[Event]) -> &[Event] {
    let is_call = |event: &Event| matches!(event.body, EventBody::ToolCalled { .. });
    let at = whole.iter().position(is_call).unwrap();
    &whole[..=at]
}

pub(crate) fn results(events: &[Event]) -> Vec<(CallStatus, String)> {
    let result = |event: &Event| match &event.body {
        EventBody::ToolReturned { status, output, .. } => Some((*status, output.to_string())),
        _ => None,
    };
    events.iter().filter_map(result).collect()
}

#[tokio::test]
async fn a_turn_that_was_interrupted_anywhere_continues_to_its_outcome_and_loses_nothing() {
    let whole = whole_turn(Effect::Pure).await;
    for cut in 1..whole.len() {
        let (bench, id) = bench_with_log(tools(Effect::Pure).1, &whole[..cut]).await;
        let runner = bench.runner(ScriptedModel::from_fn(|_| say("done")));
        let mut conversation = runner.open(id.clone()).await.unwrap();
        let (report, _) = turn(&mut conversation, "still there?").await;
        assert_eq!(report.answer.as_deref(), Some("done"));
        assert_eq!(conversation.turns(), 2);
        let events = log(&bench, &id).await;
        assert_eq!(
            events[..cut],
            whole[..cut],
            "nothing that was stored is lost"
        );
        let outcomes: Vec<_> = events
            .iter()
            .filter(|event| matches!(event.body, EventBody::TurnFinished { .. }))
            .map(|event| event.turn.clone())
            .collect();
        assert_eq!(
            outcomes,
            [whole[0].turn.clone(), report.turn],
            "cut at {cut}"
        );
    }
}

#[tokio::test]
async fn opening_an_interrupted_session_changes_nothing() {
    let whole = whole_turn(Effect::Pure).await;
    let (bench, id) = bench_with_log(tools(Effect::Pure).1, &whole[..3]).await;
    let runner = bench.runner(ScriptedModel::replies([]));
    assert!(runner.open(id.clone()).await.unwrap().is_interrupted());
    assert_eq!(log(&bench, &id).await, whole[..3]);
}

#[tokio::test]
async fn pure_and_idempotent_calls_run_again_after_a_crash() {
    for effect in [Effect::Pure, Effect::Idempotent] {
        let whole = whole_turn(effect).await;
        let (tool, tools) = tools(effect);
        let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
        let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
        let mut conversation = runner.open(id.clone()).await.unwrap();
        let report = finished(resume(&mut conversation).await);
        assert_eq!(report.answer.as_deref(), Some("two"));
        assert_eq!((tool.runs(), report.tool_calls), (1, 1));
        assert!(resumes_to_end(&mut conversation).await);
    }
}

async fn resumes_to_end(conversation: &mut Conversation) -> bool {
    let (sender, _shown) = turn_updates();
    let end = conversation.resume(&CancelToken::new(), &sender).await;
    matches!(end, Ok(None))
}

#[tokio::test]
async fn the_user_is_asked_about_a_call_with_effects_and_it_is_not_repeated_automatically() {
    let whole = whole_turn(Effect::NonIdempotent).await;
    let answers = [
        (
            ApprovalAnswer::Retry,
            1,
            CallStatus::Ok,
            "fs_do ran with {}",
        ),
        (
            ApprovalAnswer::Skip,
            0,
            CallStatus::Unknown,
            "the outcome is unknown",
        ),
        (
            ApprovalAnswer::No { reason: None },
            0,
            CallStatus::Unknown,
            "the outcome is unknown",
        ),
        (
            ApprovalAnswer::Happened {
                text: "it was sent".into(),
            },
            0,
            CallStatus::Ok,
            "the user reports what happened: it was sent",
        ),
    ];
    for (said, runs, status, expected) in answers {
        let (tool, tools) = tools(Effect::NonIdempotent);
        let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
        let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
        let mut conversation = runner.open(id.clone()).await.unwrap();
        let TurnEnd::Waiting(waiting) = resume(&mut conversation).await else {
            panic!("it has to be asked about");
        };
        assert_eq!(waiting.len(), 1);
        assert_eq!(
            (waiting[0].request.question, tool.runs()),
            (ApprovalQuestion::UnknownOutcome, 0)
        );
        // Crashing again asks the same question, and only once.
        let mut again = runner.open(id.clone()).await.unwrap();
        assert!(!again.is_interrupted());
        assert_eq!(again.waiting(), waiting);
        let report = finished(answer(&mut again, &waiting[0], said).await);
        assert_eq!(report.answer.as_deref(), Some("two"));
        assert_eq!(tool.runs(), runs);
        let results = results(&log(&bench, &id).await);
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].0, status);
        assert!(results[0].1.contains(expected), "{results:?}");
    }
}

#[tokio::test]
async fn the_user_is_asked_again_about_an_interrupted_retry() {
    let whole = whole_turn(Effect::NonIdempotent).await;
    let (tool, tools) = tools(Effect::NonIdempotent);
    let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let mut conversation = runner.open(id.clone()).await.unwrap();
    let TurnEnd::Waiting(waiting) = resume(&mut conversation).await else {
        panic!("it has to be asked about");
    };
    answer(&mut conversation, &waiting[0], ApprovalAnswer::Retry).await;
    let events = log(&bench, &id).await;
    let is_result = |event: &Event| matches!(event.body, EventBody::ToolReturned { .. });
    let cut = events.iter().position(is_result).unwrap();
    let (bench, id) = bench_with_log(bench.tools.clone(), &events[..cut]).await;
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let mut conversation = runner.open(id).await.unwrap();
    let TurnEnd::Waiting(again) = resume(&mut conversation).await else {
        panic!("it has to be asked about");
    };
    let (sender, _shown) = turn_updates();
    let (old, by, stop) = (
        &waiting[0].request.id,
        AnswerSource::Person,
        CancelToken::new(),
    );
    let late = conversation.answer(old, ApprovalAnswer::Skip, by, &stop, &sender);
    assert!(
        matches!(late.await, Err(RunnerError::NotPending { .. })),
        "an answer to the first question is none to the second"
    );
    assert_eq!(tool.runs(), 1);
    finished(answer(&mut conversation, &again[0], ApprovalAnswer::Skip).await);
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn an_approval_is_not_a_valid_answer_about_an_unknown_outcome() {
    let whole = whole_turn(Effect::NonIdempotent).await;
    let (bench, id) = bench_with_log(tools(Effect::NonIdempotent).1, about_to_run(&whole)).await;
    let runner = bench.runner(ScriptedModel::replies([]));
    let mut conversation = runner.open(id.clone()).await.unwrap();
    let TurnEnd::Waiting(waiting) = resume(&mut conversation).await else {
        panic!("it has to be asked about");
    };
    let before = log(&bench, &id).await;
    let (sender, _shown) = turn_updates();
    let request = &waiting[0].request.id;
    let (by, stop) = (AnswerSource::Person, CancelToken::new());
    let said = conversation.answer(request, ApprovalAnswer::Once, by, &stop, &sender);
    assert!(matches!(said.await, Err(RunnerError::WrongAnswer { .. })));
    assert_eq!(log(&bench, &id).await, before);
}

#[tokio::test]
async fn cancelling_a_turn_with_an_unknown_call_leaves_it_unknown() {
    let whole = whole_turn(Effect::NonIdempotent).await;
    let (tool, tools) = tools(Effect::NonIdempotent);
    let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
    let runner = bench.runner(ScriptedModel::replies([]));
    let mut conversation = runner.open(id.clone()).await.unwrap();
    resume(&mut conversation).await;
    let (sender, _shown) = turn_updates();
    let report = finished(conversation.cancel_waiting(&sender).await.unwrap());
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert_eq!(results(&log(&bench, &id).await)[0].0, CallStatus::Unknown);
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn counters_and_limits_survive_a_crash_and_running_calls_are_charged() {
    let whole = whole_turn(Effect::Pure).await;
    let is_result = |event: &Event| matches!(event.body, EventBody::ToolReturned { .. });
    let cut = whole.iter().position(is_result).unwrap() + 1;
    let (bench, id) = bench_with_log(tools(Effect::Pure).1, &whole[..cut]).await;
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let mut conversation = runner.open(id).await.unwrap();
    let report = finished(resume(&mut conversation).await);
    // Two before and two after; the one that was running is charged, but not reported.
    assert_eq!(
        (report.model_calls, report.tool_calls, report.rounds),
        (4, 1, 1)
    );
}

#[tokio::test]
async fn a_lost_model_call_counts_towards_the_limit_but_not_the_last_one() {
    let mut whole = whole_turn(Effect::Pure).await;
    for (limit, tools_are_offered) in [(1, false), (2, false), (3, true)] {
        let EventBody::UserMessage { settings, .. } = &mut whole[0].body else {
            panic!("a turn begins with a question");
        };
        settings.as_mut().unwrap().limits.model_calls = limit;
        let (bench, id) = bench_with_log(tools(Effect::Pure).1, &whole[..1]).await;
        let model = ScriptedModel::from_fn(move |request| {
            assert_eq!(!request.functions.is_empty(), tools_are_offered, "{limit}");
            say("done")
        });
        let mut conversation = bench.runner(model).open(id).await.unwrap();
        let report = finished(resume(&mut conversation).await);
        assert_eq!(report.answer.as_deref(), Some("done"));
    }
}

#[tokio::test]
async fn a_turn_that_crashes_its_process_every_time_is_abandoned() {
    let mut events = whole_turn(Effect::Pure).await[..1].to_vec();
    let mut resumed = 0;
    let outcome = loop {
        let (bench, id) = bench_with_log(tools(Effect::Pure).1, &events).await;
        let runner = bench.runner(ScriptedModel::from_fn(|_| say("done")));
        let mut conversation = runner.open(id.clone()).await.unwrap();
        let report = finished(resume(&mut conversation).await);
        let stored = log(&bench, &id).await;
        // The process ends right after it resumed the turn.
        let is_taken_up = |event: &&Event| {
            let body = &event.body;
            matches!(
                body,
                EventBody::TurnCorrected {
                    fault: TurnFault::Interrupted,
                    ..
                }
            )
        };
        assert!(
            stored[events.len()..]
                .iter()
                .any(|event| is_taken_up(&event))
        );
        events = stored[..events.len() + 1].to_vec();
        resumed += 1;
        if report.outcome != (Outcome::Answered { limit: None }) {
            break report.outcome;
        }
        assert!(resumed < 20, "it is never given up");
    };
    assert_eq!((outcome, resumed), (Outcome::Interrupted, 6));
}

async fn once(conversation: &mut Conversation, question: &str) -> TurnEnd {
    let (sender, _shown) = turn_updates();
    let end = conversation
        .turn_once(
            "t_once".into(),
            question,
            &CancelToken::new(),
            &sender,
            None,
        )
        .await;
    end.unwrap()
}

#[tokio::test]
async fn a_turn_that_is_requested_again_by_its_id_is_not_run_twice() {
    let bench = Bench::new(vec![]);
    let session = SessionId::from("s_once");
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    // Both found no session.
    let mut first = runner.start_as(local(), session.clone());
    let mut second = runner.start_as(local(), session.clone());
    let (one, again) = tokio::join!(once(&mut first, "x"), once(&mut second, "x"));
    let (one, again) = (finished(one), finished(again));
    assert_eq!(one.answer.as_deref(), Some("one"));
    assert_eq!((one.answer, one.outcome), (again.answer, again.outcome));
    let events = log(&bench, &session).await;
    let is_question = |event: &&Event| matches!(event.body, EventBody::UserMessage { .. });
    assert_eq!(events.iter().filter(is_question).count(), 1);
    // Another id is another turn.
    let (report, _) = turn(&mut second, "y").await;
    assert_eq!(report.answer.as_deref(), Some("two"));
}

#[tokio::test]
async fn a_current_conversation_returns_the_outcome_of_a_turn_that_another_process_ran_in_the_meantime()
 {
    let bench = Bench::new(vec![]);
    let replies = [say("hello"), say("one"), say("two")];
    let runner = bench.runner(ScriptedModel::replies(replies));
    let mut here = runner.start(local());
    turn(&mut here, "hi").await;
    let mut other = runner.open(here.session().clone()).await.unwrap();
    let other_end = finished(once(&mut other, "x").await);
    assert!(here.is_current(), "it does not know of the other turn");
    let end = finished(once(&mut here, "x").await);
    assert_eq!(end.answer.as_deref(), Some("one"));
    assert_eq!(end.answer, other_end.answer);
    let events = log(&bench, here.session()).await;
    let is_question = |event: &&Event| matches!(event.body, EventBody::UserMessage { .. });
    assert_eq!(events.iter().filter(is_question).count(), 2);
}

#[tokio::test]
async fn an_interrupted_turn_that_is_requested_again_is_resumed() {
    let whole = whole_turn(Effect::Pure).await;
    let mut cut = about_to_run(&whole).to_vec();
    for event in &mut cut {
        event.turn = "t_once".into();
    }
    let (tool, all) = tools(Effect::Pure);
    let (bench, session) = bench_with_log(all, &cut).await;
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let mut conversation = runner.open(session.clone()).await.unwrap();
    let report = finished(once(&mut conversation, "x").await);
    assert_eq!(report.answer.as_deref(), Some("two"));
    assert_eq!(tool.runs(), 1);
    let events = log(&bench, &session).await;
    let is_question = |event: &&Event| matches!(event.body, EventBody::UserMessage { .. });
    assert_eq!(events.iter().filter(is_question).count(), 1);
}

#[tokio::test]
async fn an_interrupted_turn_can_be_cancelled_and_nothing_of_it_runs() {
    for effect in [Effect::Pure, Effect::NonIdempotent] {
        let whole = whole_turn(effect).await;
        let cut = about_to_run(&whole);
        let (tool, all) = tools(effect);
        let (bench, session) = bench_with_log(all, cut).await;
        let runner = bench.runner(ScriptedModel::replies([]));
        let mut conversation = runner.open(session.clone()).await.unwrap();
        let (sender, _shown) = turn_updates();
        let other = conversation.cancel_turn(&"t_other".into(), &sender).await;
        assert!(matches!(other, Err(RunnerError::NothingPending)));
        let end = conversation.cancel_turn(&cut[0].turn, &sender).await;
        assert_eq!(finished(end.unwrap()).outcome, Outcome::Cancelled);
        assert_eq!(tool.runs(), 0);
        let again = conversation.cancel_turn(&cut[0].turn, &sender).await;
        assert!(matches!(again, Err(RunnerError::NothingPending)));
    }
}

#[tokio::test]
async fn a_session_is_free_unless_its_lease_has_an_owner() {
    let bench = Bench::new(vec![]);
    let runner = bench.runner(ScriptedModel::replies([]));
    let session = SessionId::from("s_1");
    assert!(runner.is_free(&session).await.unwrap());
    let held = bench
        .store
        .acquire(&session, lango_core::BusyPolicy::Refuse);
    let held = held.await.unwrap();
    assert!(!runner.is_free(&session).await.unwrap());
    drop(held);
    assert!(runner.is_free(&session).await.unwrap());
}

#[tokio::test]
async fn cancelling_a_turn_that_waits_for_an_interrupted_one_does_not_cancel_that_one() {
    let whole = whole_turn(Effect::Pure).await;
    let cut = about_to_run(&whole);
    for is_stopped_before in [true, false] {
        let stuck = Arc::new(CountingTool::new("fs_do").never_returning());
        let (bench, session) = bench_with_log(vec![Arc::clone(&stuck) as _], cut).await;
        let runner = bench.runner(ScriptedModel::replies([]));
        let mut conversation = runner.open(session.clone()).await.unwrap();
        let (sender, _shown) = turn_updates();
        let stop = CancelToken::new();
        if is_stopped_before {
            stop.cancel();
        }
        let next = conversation.turn_once("t_next".into(), "y", &stop, &sender, None);
        let (next, ()) = tokio::join!(next, async {
            while !is_stopped_before && stuck.runs() == 0 {
                tokio::task::yield_now().await;
            }
            stop.cancel();
        });
        assert!(
            matches!(next, Err(RunnerError::CancelledWhileQueued)),
            "{next:?}"
        );
        let events = log(&bench, &session).await;
        assert!(events.iter().all(|event| event.turn == cut[0].turn));
        let is_end = |event: &&Event| matches!(event.body, EventBody::TurnFinished { .. });
        assert_eq!(events.iter().filter(is_end).count(), 0);
        // The next client resumes it.
        let (bench, _) = bench_with_log(tools(Effect::Pure).1, &events).await;
        let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
        let mut conversation = runner.open(session).await.unwrap();
        let report = finished(resume(&mut conversation).await);
        assert_eq!(report.answer.as_deref(), Some("two"));
    }
}
