//! Inspections of calls: a guarded target needs approval each time, and an approval covers only one content.

use crate::approvals::{answer, ask, in_session, one_write, waiting};
use crate::bench::{Bench, finished, local, log};
use crate::support::rule;
use lango_core::{
    ApprovalAnswer, CallStatus, Effect, EventBody, GuardedTarget, Inspection, Risk, RuleSubject,
    SiteAccess, Tool,
};
use lango_engine::{ApprovalRule, ApprovalRules, RuleAction};
use lango_testkit::clock_and_ids::CountingIds;
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

fn bench(inspection: Inspection) -> (Bench, Arc<CountingTool>) {
    let tool = CountingTool::new("fs_write")
        .with_effect(Effect::NonIdempotent)
        .with_risk(Risk::Moderate)
        .with_subject(RuleSubject::Path)
        .with_inspection(inspection);
    let tool = Arc::new(tool);
    let bench = Bench::new(vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    (bench, tool)
}

fn guarded() -> Inspection {
    let target = GuardedTarget {
        path: ".vscode/x".into(),
        reason: "`.vscode` configures other programs".into(),
    };
    Inspection {
        guarded: Some(target),
        ..Inspection::default()
    }
}

fn content(digest: &str) -> Inspection {
    Inspection {
        content: Some(digest.into()),
        ..Inspection::default()
    }
}

fn matching(action: RuleAction, pattern: &str) -> ApprovalRule {
    ApprovalRule {
        matching: Some(pattern.to_owned()),
        ..rule(action, "fs_write")
    }
}

#[tokio::test]
async fn a_guarded_target_needs_approval_each_time_unless_a_rule_names_exactly_that_path() {
    let cases = [
        (vec![], false),
        (vec![rule(RuleAction::Allow, "fs_*")], false),
        (vec![rule(RuleAction::Allow, "fs_write")], false),
        (vec![matching(RuleAction::Allow, "*")], false),
        (vec![matching(RuleAction::Allow, ".vscode/*")], false),
        // The path as written, which leads to the guarded one.
        (vec![matching(RuleAction::Allow, "link/x")], false),
        (vec![matching(RuleAction::Allow, ".vscode/x")], true),
        (
            vec![
                matching(RuleAction::Allow, ".vscode/x"),
                matching(RuleAction::Ask, "link/x"),
            ],
            false,
        ),
    ];
    for (rules, runs) in cases {
        let shown = format!("{rules:?}");
        let (mut bench, tool) = bench(guarded());
        bench.rules = ApprovalRules::new(rules);
        let model = ScriptedModel::replies(one_write("link/x"));
        let mut conversation = bench.runner(model).start(local());
        let end = ask(&mut conversation, "write").await;
        if runs {
            finished(end);
            assert_eq!(tool.runs(), 1, "{shown}");
            continue;
        }
        let waiting = waiting(end);
        let request = &waiting[0].request;
        assert!(
            request.reason.contains("configures other programs"),
            "{request:?}"
        );
        assert_eq!((&request.pattern, &request.inspection), (&None, &guarded()));
        finished(answer(&mut conversation, in_session("*")).await);
        assert_eq!(tool.runs(), 1, "{shown}");
        let grants = bench.store.grants(conversation.session(), "/work").await;
        assert_eq!(grants.unwrap(), [], "{shown}");
        // The inspection is stored with the call, for the tool that runs it.
        let log = log(&bench, conversation.session()).await;
        let stored = log.iter().find_map(|event| match &event.body {
            EventBody::ToolCalled { inspection, .. } => Some(inspection.clone()),
            _ => None,
        });
        assert_eq!(stored, Some(guarded()), "{shown}");
    }
}

#[tokio::test]
async fn a_user_only_call_needs_approval_regardless_of_rules_and_grants() {
    let user_only = Inspection {
        user_only: Some("a secret gets a binding".into()),
        ..guarded()
    };
    for rules in [
        vec![],
        vec![rule(RuleAction::Allow, "*")],
        vec![rule(RuleAction::Allow, "fs_write")],
        vec![matching(RuleAction::Allow, "*")],
        vec![matching(RuleAction::Allow, "link/x")],
        vec![matching(RuleAction::Allow, ".vscode/x")],
    ] {
        let shown = format!("{rules:?}");
        let (mut bench, tool) = bench(user_only.clone());
        bench.rules = ApprovalRules::new(rules);
        let replies = one_write("link/x").into_iter().chain(one_write("link/x"));
        let model = ScriptedModel::replies(replies);
        let mut conversation = bench.runner(model).start(local());
        for runs in [0, 1] {
            let asked = waiting(ask(&mut conversation, "write").await);
            let request = &asked[0].request;
            assert_eq!(&*request.reason, "a secret gets a binding", "{shown}");
            assert_eq!((tool.runs(), &request.pattern), (runs, &None), "{shown}");
            finished(answer(&mut conversation, in_session("*")).await);
        }
        let grants = bench.store.grants(conversation.session(), "/work").await;
        assert_eq!(grants.unwrap(), [], "{shown}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_work_is_denied_without_asking() {
    let refused = Inspection {
        user_only: Some("a program sees a secret".into()),
        refused: Some("the secret `A` has expired".into()),
        ..Inspection::default()
    };
    for rules in [vec![], vec![rule(RuleAction::Allow, "*")]] {
        let (mut bench, tool) = bench(refused.clone());
        bench.rules = ApprovalRules::new(rules);
        let model = ScriptedModel::replies(one_write("a"));
        let mut conversation = bench.runner(model).start(local());
        finished(ask(&mut conversation, "write").await);
        assert_eq!(tool.runs(), 0);
        let log = log(&bench, conversation.session()).await;
        let returned = log.iter().find_map(|event| match &event.body {
            EventBody::ToolReturned { status, output, .. } => Some((*status, output.to_string())),
            _ => None,
        });
        let output = "not run: the secret `A` has expired".to_owned();
        assert_eq!(returned, Some((CallStatus::Error, output)));
    }
}

#[tokio::test]
async fn a_rule_that_denies_a_guarded_path_also_denies_paths_that_lead_there() {
    let (mut bench, tool) = bench(guarded());
    bench.rules = ApprovalRules::new(vec![matching(RuleAction::Deny, ".vscode/*")]);
    let model = ScriptedModel::replies(one_write("link/x"));
    let mut conversation = bench.runner(model).start(local());
    finished(ask(&mut conversation, "write").await);
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn an_approval_of_one_content_does_not_cover_another() {
    let run = || call("fs_write", json!({ "script": "a.sh" }));
    let replies = || [delegate_and_finish("operator", "run"), run(), say("Done.")];
    let (mut bench, tool) = bench(content("1a"));
    bench.ids = Some(Arc::new(CountingIds::default()));
    let model = ScriptedModel::replies(replies().into_iter().chain(replies()));
    let mut conversation = bench.runner(model).start(local());
    let asked = waiting(ask(&mut conversation, "1").await);
    let pattern = asked[0].request.pattern.clone().unwrap();
    assert!(pattern.ends_with(" sha256:1a"), "{pattern}");
    finished(answer(&mut conversation, ApprovalAnswer::Session { pattern }).await);
    finished(ask(&mut conversation, "2").await);
    assert_eq!(tool.runs(), 2, "granted");

    let session = conversation.session().clone();
    let changed = CountingTool::new("fs_write")
        .with_effect(Effect::NonIdempotent)
        .with_risk(Risk::Moderate)
        .with_inspection(content("2b"));
    bench.tools = vec![Arc::new(changed)];
    let runner = bench.runner(ScriptedModel::replies(replies()));
    let mut conversation = runner.open(session).await.unwrap();
    let again = waiting(ask(&mut conversation, "3").await);
    assert_ne!(again[0].request.digest, asked[0].request.digest);
}

fn for_person() -> Inspection {
    Inspection {
        user_only: Some("it pays somebody".into()),
        ..Inspection::default()
    }
}

#[tokio::test]
async fn no_rule_and_no_earlier_answer_allows_a_user_only_call() {
    let cases = [
        vec![],
        vec![rule(RuleAction::Allow, "*")],
        vec![rule(RuleAction::Allow, "fs_write")],
        vec![matching(RuleAction::Allow, "link/x")],
        vec![
            matching(RuleAction::Allow, "*"),
            rule(RuleAction::Ask, "fs_*"),
        ],
    ];
    for rules in cases {
        let shown = format!("{rules:?}");
        let (mut bench, tool) = bench(for_person());
        bench.rules = ApprovalRules::new(rules);
        let replies = one_write("link/x").into_iter().chain(one_write("link/x"));
        let model = ScriptedModel::replies(replies);
        let mut conversation = bench.runner(model).start(local());
        let asked = waiting(ask(&mut conversation, "write").await);
        let request = &asked[0].request;
        assert_eq!(
            (&*request.reason, &request.pattern),
            ("it pays somebody", &None),
            "{shown}"
        );
        finished(answer(&mut conversation, in_session("*")).await);
        assert_eq!(tool.runs(), 1, "{shown}");
        let grants = bench.store.grants(conversation.session(), "/work").await;
        assert_eq!(grants.unwrap(), [], "{shown}");
        // The same call needs approval again.
        assert_eq!(
            waiting(ask(&mut conversation, "again").await).len(),
            1,
            "{shown}"
        );
        assert_eq!(tool.runs(), 1, "{shown}");
    }
}

#[tokio::test]
async fn a_user_only_call_needs_approval_even_if_it_is_safe_and_at_a_known_site() {
    let inspection = Inspection {
        site: Some(SiteAccess {
            host: "example.com".into(),
            url: None,
            is_known: true,
            summary: "pay".into(),
        }),
        ..for_person()
    };
    let tool = CountingTool::new("fs_write")
        .with_risk(Risk::Safe)
        .with_subject(RuleSubject::Site)
        .with_inspection(inspection);
    let tool = Arc::new(tool);
    let bench = Bench::new(vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    let model = ScriptedModel::replies(one_write("x"));
    let mut conversation = bench.runner(model).start(local());
    waiting(ask(&mut conversation, "pay").await);
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn a_rule_that_denies_wins_over_the_user() {
    let (mut bench, tool) = bench(for_person());
    bench.rules = ApprovalRules::new(vec![rule(RuleAction::Deny, "fs_*")]);
    let model = ScriptedModel::replies(one_write("x"));
    let mut conversation = bench.runner(model).start(local());
    finished(ask(&mut conversation, "write").await);
    assert_eq!(tool.runs(), 0);
}
