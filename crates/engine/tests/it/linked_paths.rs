//! Rules for paths that lead through symbolic links, as an inspection reports them.

use crate::approvals::{answer, ask, in_session, one_write, waiting};
use crate::bench::{Bench, finished, local, log};
use crate::support::rule;
use lango_core::{
    ApprovalAnswer, CallStatus, Effect, EventBody, FileEdit, Inspection, PathResolution,
    PermissionMode, Risk, RuleSubject, Tool,
};
use lango_engine::{ApprovalRule, ApprovalRules, ModeSwitch, RuleAction, TurnEnd};
use lango_testkit::model::{ScriptedModel, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use std::sync::Arc;

/// The path `pub/key`, where `pub` is a link to `mid`, and that is a link to `secrets`.
fn linked() -> Inspection {
    Inspection {
        path: Some(PathResolution {
            target: "secrets/key".into(),
            links: vec!["pub/key".into(), "mid/key".into()],
        }),
        ..Inspection::default()
    }
}

/// An absolute path with another name of the workspace.
fn other_spelling() -> Inspection {
    Inspection {
        path: Some(PathResolution {
            target: "secrets/key".into(),
            links: Vec::new(),
        }),
        ..Inspection::default()
    }
}

fn matching(action: RuleAction, pattern: &str) -> ApprovalRule {
    ApprovalRule {
        matching: Some(pattern.to_owned()),
        ..rule(action, "fs_write")
    }
}

fn bench(
    inspection: Inspection,
    risk: Risk,
    rules: Vec<ApprovalRule>,
) -> (Bench, Arc<CountingTool>) {
    let tool = CountingTool::new("fs_write")
        .with_effect(Effect::Idempotent)
        .with_risk(risk)
        .with_subject(RuleSubject::Path)
        .with_inspection(inspection);
    let tool = Arc::new(tool);
    let mut bench = Bench::new(vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    bench.rules = ApprovalRules::new(rules);
    (bench, tool)
}

/// Returns whether the call is denied, runs, or needs approval.
async fn decision(
    inspection: Inspection,
    path: &str,
    risk: Risk,
    rules: Vec<ApprovalRule>,
) -> &'static str {
    let (bench, tool) = bench(inspection, risk, rules);
    let model = ScriptedModel::replies(one_write(path));
    let mut conversation = bench.runner(model).start(local());
    let end = ask(&mut conversation, "write").await;
    if matches!(end, TurnEnd::Waiting { .. }) {
        return "asks";
    }
    let log = log(&bench, conversation.session()).await;
    let is_denied = log.iter().any(|event| {
        matches!(
            &event.body,
            EventBody::ToolReturned {
                status: CallStatus::Denied,
                ..
            }
        )
    });
    match (is_denied, tool.runs()) {
        (true, 0) => "denied",
        (false, 1) => "runs",
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_rule_that_denies_or_asks_matches_every_path_that_links_lead_to() {
    for pattern in ["secrets/*", "secrets/key", "*/key", "mid/*", "pub/*"] {
        let deny = vec![matching(RuleAction::Deny, pattern)];
        let denied = decision(linked(), "pub/key", Risk::Safe, deny).await;
        assert_eq!(denied, "denied", "{pattern}");
    }
    let ask = vec![
        matching(RuleAction::Allow, "*"),
        matching(RuleAction::Ask, "secrets/*"),
    ];
    assert_eq!(decision(linked(), "pub/key", Risk::Safe, ask).await, "asks");
    let other = vec![matching(RuleAction::Deny, "other/*")];
    assert_eq!(
        decision(linked(), "pub/key", Risk::Safe, other).await,
        "runs"
    );
    let deny = vec![matching(RuleAction::Deny, "secrets/*")];
    let denied = decision(other_spelling(), "/alias/secrets/key", Risk::Safe, deny).await;
    assert_eq!(denied, "denied");
}

#[tokio::test]
async fn a_rule_that_allows_must_also_match_the_path_that_links_lead_to() {
    for (pattern, decided) in [
        ("pub/*", "asks"),
        ("pub/key", "asks"),
        ("secrets/*", "asks"),
        ("*/key", "runs"),
        ("*", "runs"),
    ] {
        let allow = vec![matching(RuleAction::Allow, pattern)];
        let found = decision(linked(), "pub/key", Risk::Moderate, allow).await;
        assert_eq!(found, decided, "{pattern}");
    }
    // The user named the folder in the configuration, so its name is no link of an agent.
    let allow = vec![matching(RuleAction::Allow, "/alias/*")];
    let found = decision(
        other_spelling(),
        "/alias/secrets/key",
        Risk::Moderate,
        allow,
    )
    .await;
    assert_eq!(found, "runs");
}

#[tokio::test]
async fn an_answer_about_a_linked_path_covers_no_later_call() {
    let (bench, tool) = bench(linked(), Risk::Moderate, Vec::new());
    let mut replies = one_write("pub/key").to_vec();
    replies.extend([
        delegate_and_finish("operator", "write"),
        replies[1].clone(),
        say("Written."),
    ]);
    let mut conversation = bench.runner(ScriptedModel::replies(replies)).start(local());
    let asked = waiting(ask(&mut conversation, "write").await);
    assert_eq!(asked[0].request.pattern, None);
    finished(answer(&mut conversation, in_session("*")).await);
    let grants = bench.store.grants(conversation.session(), "/work").await;
    assert_eq!(grants.unwrap(), []);
    waiting(ask(&mut conversation, "write").await);
    finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    assert_eq!(tool.runs(), 2);
}

#[tokio::test]
async fn accepted_edits_include_an_ordinary_file_behind_links() {
    let inspection = Inspection {
        edit: Some(Box::new(FileEdit::default())),
        ..linked()
    };
    let (mut bench, tool) = bench(inspection, Risk::Moderate, Vec::new());
    bench.mode = ModeSwitch::new(PermissionMode::AcceptEdits);
    let model = ScriptedModel::replies(one_write("pub/key"));
    let mut conversation = bench.runner(model).start(local());
    finished(ask(&mut conversation, "write").await);
    assert_eq!(tool.runs(), 1);
}
