//! A resumed turn follows the current folder, agents, tools and rules. A turn that cannot continue is closed, and its
//! effects are reported.

use crate::bench::{Bench, local, log, turn};
use crate::resume::{
    about_to_run, answer, bench_with_log, finished, results, resume, tools, whole_turn,
};
use crate::support::rule;
use lango_core::{
    ApprovalAnswer, ApprovalQuestion, CallStatus, Effect, Event, EventBody, Outcome, Risk, Tool,
};
use lango_engine::{ApprovalRules, CancelToken, RuleAction, RunnerError, TurnEnd, turn_updates};
use lango_testkit::model::{ScriptedModel, calls, delegate, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_turn_of_another_folder_or_with_missing_agents_stays_unfinished_until_it_is_closed() {
    let whole = whole_turn(Effect::NonIdempotent).await;
    for (folder, with_tools) in [("/elsewhere", true), ("/work", false)] {
        let (tool, tools) = tools(Effect::NonIdempotent);
        let kept = if with_tools { tools } else { Vec::new() };
        let (bench, id) = bench_with_log(kept, about_to_run(&whole)).await;
        let bench = Bench { folder, ..bench };
        let runner = bench.runner(ScriptedModel::replies([]));
        let mut conversation = runner.open(id.clone()).await.unwrap();
        let before = log(&bench, &id).await;
        let (sender, _shown) = turn_updates();
        let stop = CancelToken::new();
        let resumed = conversation.resume(&stop, &sender).await.unwrap_err();
        let next = conversation.turn("next", &stop, &sender).await.unwrap_err();
        for error in [resumed, next] {
            assert!(matches!(
                error,
                RunnerError::InterruptedInOtherFolder { .. } | RunnerError::AgentMissing { .. }
            ));
        }
        assert_eq!(log(&bench, &id).await, before);
        let closed = conversation.close(&sender).await.unwrap();
        let report = finished(closed.expect("there is something to close"));
        assert_eq!(report.outcome, Outcome::Interrupted);
        assert_eq!(tool.runs(), 0);
        assert_eq!(results(&log(&bench, &id).await)[0].0, CallStatus::Unknown);
        assert!(conversation.close(&sender).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn the_user_is_asked_about_a_call_that_only_the_log_calls_repeatable() {
    for claimed in [Effect::Pure, Effect::Idempotent] {
        let whole = whole_turn(claimed).await;
        let (tool, tools) = tools(Effect::NonIdempotent);
        let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
        let runner = bench.runner(ScriptedModel::replies([]));
        let mut conversation = runner.open(id).await.unwrap();
        let TurnEnd::Waiting(waiting) = resume(&mut conversation).await else {
            panic!("it has to be asked about");
        };
        assert_eq!(
            waiting[0].request.question,
            ApprovalQuestion::UnknownOutcome
        );
        assert_eq!(tool.runs(), 0);
    }
}

#[tokio::test]
async fn a_call_that_a_rule_now_denies_is_not_repeated_and_stays_unknown() {
    for effect in [Effect::Pure, Effect::NonIdempotent] {
        let whole = whole_turn(effect).await;
        let (tool, tools) = tools(effect);
        let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
        let bench = Bench {
            rules: ApprovalRules::new(vec![rule(RuleAction::Deny, "fs_do")]),
            ..bench
        };
        let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
        let mut conversation = runner.open(id.clone()).await.unwrap();
        let TurnEnd::Waiting(waiting) = resume(&mut conversation).await else {
            panic!("it has to be asked about");
        };
        finished(answer(&mut conversation, &waiting[0], ApprovalAnswer::Retry).await);
        assert_eq!(tool.runs(), 0);
        let results = results(&log(&bench, &id).await);
        assert_eq!(results[0].0, CallStatus::Unknown);
        assert!(results[0].1.contains("forbids it"), "{results:?}");
    }
}

#[tokio::test]
async fn a_repeatable_call_that_a_rule_now_asks_about_does_not_run_before_an_answer() {
    let whole = whole_turn(Effect::Idempotent).await;
    let (tool, tools) = tools(Effect::Idempotent);
    let (bench, id) = bench_with_log(tools, about_to_run(&whole)).await;
    let bench = Bench {
        rules: ApprovalRules::new(vec![rule(RuleAction::Ask, "fs_do")]),
        ..bench
    };
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let mut conversation = runner.open(id).await.unwrap();
    let TurnEnd::Waiting(waiting) = resume(&mut conversation).await else {
        panic!("it has to be asked about");
    };
    assert_eq!(tool.runs(), 0);
    finished(answer(&mut conversation, &waiting[0], ApprovalAnswer::Retry).await);
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn a_stored_call_behind_an_unknown_outcome_does_not_run_after_its_rule_was_deleted() {
    let command = || {
        let tool = CountingTool::new("exec")
            .with_effect(Effect::NonIdempotent)
            .with_risk(Risk::Dangerous);
        let tool = Arc::new(tool);
        (Arc::clone(&tool), vec![tool as Arc<dyn Tool>])
    };
    let allowed = Bench {
        rules: ApprovalRules::new(vec![rule(RuleAction::Allow, "exec")]),
        ..Bench::new(command().1)
    };
    let both = calls([
        ("exec", json!({ "command": "make" })),
        ("exec", json!({ "command": "make install" })),
    ]);
    let script = [delegate("operator", "x"), both, say("one"), say("two")];
    let mut conversation = allowed
        .runner(ScriptedModel::replies(script))
        .start(local());
    turn(&mut conversation, "x").await;
    let whole = log(&allowed, conversation.session()).await;
    let is_result = |event: &Event| matches!(event.body, EventBody::ToolReturned { .. });
    let first_result = whole.iter().position(is_result).unwrap();

    let (tool, tools) = command();
    let (bench, id) = bench_with_log(tools, &whole[..first_result]).await;
    let runner = bench.runner(ScriptedModel::replies([say("one"), say("two")]));
    let mut conversation = runner.open(id.clone()).await.unwrap();
    let TurnEnd::Waiting(waiting) = resume(&mut conversation).await else {
        panic!("it has to be asked about");
    };
    assert_eq!(waiting.len(), 1);
    finished(answer(&mut conversation, &waiting[0], ApprovalAnswer::Skip).await);
    assert_eq!(tool.runs(), 0);
    let results = results(&log(&bench, &id).await);
    let denied = results
        .iter()
        .find(|(status, _)| *status == CallStatus::Denied);
    let (_, reason) = denied.expect("the second call is denied");
    assert!(reason.contains("call again to ask the user"), "{results:?}");
}

#[tokio::test]
async fn the_next_turn_sees_what_a_stopped_one_did_and_what_is_unknown() {
    let whole = whole_turn(Effect::NonIdempotent).await;
    let is_result = |event: &Event| matches!(event.body, EventBody::ToolReturned { .. });
    let after = whole.iter().position(is_result).unwrap() + 1;
    for (events, expected) in [
        (about_to_run(&whole), "outcome unknown"),
        (&whole[..after], "operator used fs_do {}: done"),
    ] {
        let (bench, id) = bench_with_log(tools(Effect::NonIdempotent).1, events).await;
        let model = ScriptedModel::from_fn(move |request| {
            let told = format!("{:?}", request.messages);
            assert!(told.contains(expected), "{told}");
            say("I know")
        });
        let mut conversation = bench.runner(model).open(id).await.unwrap();
        let (sender, _shown) = turn_updates();
        let closed = conversation.close(&sender).await.unwrap();
        let report = finished(closed.expect("there is something to close"));
        assert!(
            report
                .answer
                .is_some_and(|answer| answer.contains(expected))
        );
        let (report, _) = turn(&mut conversation, "go on").await;
        assert_eq!(report.answer.as_deref(), Some("I know"));
    }
}
