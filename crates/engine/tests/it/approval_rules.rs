//! Which approval rule wins, and how waiting time is counted.

use crate::approvals::{answer, ask, in_session, kinds, one_write, waiting, writing_bench};
use crate::bench::{finished, local};
use crate::support::{Shape, rule, start, tree_with};
use crate::trees::ManualTurn;
use lango_core::{AnswerSource, ApprovalAnswer, Timestamp};
use lango_engine::{ApprovalRule, ApprovalRules, RuleAction, Turn, TurnInput, TurnStep};
use lango_testkit::model::{ScriptedModel, call, calls};
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn rules_allow_ask_and_deny_and_denying_wins() {
    let rules = |rules: Vec<ApprovalRule>| ApprovalRules::new(rules);
    let particular = |action, pattern: &str| ApprovalRule {
        matching: Some(pattern.to_owned()),
        ..rule(action, "fs_write")
    };
    let cases: Vec<(ApprovalRules, Value, Option<usize>)> = vec![
        (
            rules(vec![rule(RuleAction::Allow, "fs_*")]),
            json!("a"),
            Some(1),
        ),
        (
            rules(vec![
                rule(RuleAction::Allow, "fs_write"),
                rule(RuleAction::Deny, "*"),
            ]),
            json!("a"),
            Some(0),
        ),
        (
            rules(vec![
                rule(RuleAction::Allow, "*"),
                rule(RuleAction::Ask, "fs_write"),
            ]),
            json!("a"),
            None,
        ),
        (
            rules(vec![
                rule(RuleAction::Ask, "*"),
                rule(RuleAction::Allow, "fs_write"),
            ]),
            json!("a"),
            Some(1),
        ),
        (
            rules(vec![
                rule(RuleAction::Ask, "fs_write"),
                particular(RuleAction::Allow, r#"{"path":"notes/*"}"#),
            ]),
            json!("notes/a"),
            Some(1),
        ),
        (
            rules(vec![
                rule(RuleAction::Allow, "fs_write"),
                particular(RuleAction::Deny, "*secret*"),
            ]),
            json!("a/secret"),
            Some(0),
        ),
        (
            rules(vec![
                rule(RuleAction::Allow, "fs_write"),
                rule(RuleAction::AskEachTime, "fs_write"),
            ]),
            json!("a"),
            None,
        ),
        (
            rules(vec![ApprovalRule {
                agent: Some("librarian".to_owned()),
                ..rule(RuleAction::Allow, "fs_write")
            }]),
            json!("a"),
            None,
        ),
    ];
    for (rules, path, runs) in cases {
        let (mut bench, tool) = writing_bench();
        let shown = format!("{rules:?}");
        bench.rules = rules;
        let script = one_write(path.as_str().unwrap());
        let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
        let end = ask(&mut conversation, "write").await;
        match runs {
            Some(runs) => {
                finished(end);
                assert_eq!(tool.runs(), runs, "{shown}");
            }
            None => assert_eq!((waiting(end).len(), tool.runs()), (1, 0), "{shown}"),
        }
    }
}

#[tokio::test]
async fn a_call_that_needs_approval_each_time_creates_no_grant() {
    let (mut bench, tool) = writing_bench();
    bench.rules = ApprovalRules::new(vec![rule(RuleAction::AskEachTime, "fs_*")]);
    let script = one_write("a").into_iter().chain(one_write("a"));
    let mut conversation = bench.runner(ScriptedModel::replies(script)).start(local());
    let asked = waiting(ask(&mut conversation, "1").await);
    assert_eq!(asked[0].request.pattern, None);
    finished(answer(&mut conversation, in_session("*")).await);
    waiting(ask(&mut conversation, "2").await);
    assert_eq!(tool.runs(), 1);
    let granted = bench.store.grants(conversation.session(), "/work").await;
    assert_eq!(granted.unwrap(), [], "nor kept");
}

#[test]
fn waiting_for_an_approval_is_not_active_time() {
    let tree = tree_with(Shape::Single, &["payment_send"], &[], 3);
    let mut driven = ManualTurn::begin(&tree, "pay");
    let step = driven.model_step();
    let reply = call("payment_send", json!({}));
    let model = "test/scripted".into();
    let inspections = Vec::new();
    let input = TurnInput::ModelReplied {
        step,
        reply,
        model,
        inspections,
    };
    driven.turn.accept(input, Timestamp(1_001));
    assert!(driven.turn.is_parked());
    let input = TurnInput::Answered {
        request: driven.turn.waiting()[0].request.id.clone(),
        answer: ApprovalAnswer::Once,
        by: AnswerSource::Person,
    };
    driven.turn.accept(input, Timestamp(9_000_000));
    assert_eq!(
        (driven.turn.active_ms(), driven.turn.is_parked()),
        (1_000, false)
    );
    driven.turn.accept(
        TurnInput::Cancelled {
            partial: Vec::new(),
            printed: Vec::new(),
        },
        Timestamp(9_000_500),
    );
    assert_eq!(driven.turn.active_ms(), 1_500);
}

#[test]
fn steps_that_ran_beside_a_pending_call_are_repeated_if_that_is_safe() {
    let tree = tree_with(Shape::Single, &["payment_send", "fs_read"], &[], 3);
    let mut driven = ManualTurn::begin(&tree, "both");
    driven.reply(calls([("fs_read", json!({})), ("payment_send", json!({}))]));
    let before = driven.turn.waiting();
    let mut again = Turn::replay(Arc::clone(&tree), start(Vec::new()), &driven.events);
    assert_eq!((again.waiting(), again.is_parked()), (before, false));
    let events = again.accept(TurnInput::Resumed, Timestamp(5));
    assert_eq!(
        kinds(&events),
        ["turn.corrected"],
        "what can be repeated is"
    );
    let ready = again.ready();
    assert!(matches!(ready.as_slice(), [TurnStep::CallTool(step)] if step.tool == "fs_read"));
}
