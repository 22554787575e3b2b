//! Calls that contact a site: known URLs run, others need approval, and grants are for hosts.

use crate::approvals::{answer, ask, in_session, waiting};
use crate::bench::{Bench, finished, local};
use crate::support::rule;
use lango_core::{ApprovalAnswer, GuardedTarget, Inspection, RuleSubject, SiteAccess, Tool};
use lango_engine::{ApprovalRule, ApprovalRules, RuleAction};
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

const URL: &str = "https://shop.example/cart";

fn site(url: Option<&str>, is_known: bool) -> Inspection {
    let site = SiteAccess {
        host: "shop.example".into(),
        url: url.map(Into::into),
        is_known,
        summary: "open the cart".into(),
    };
    Inspection {
        site: Some(site),
        ..Inspection::default()
    }
}

fn tool(name: &str, inspection: Inspection) -> Arc<CountingTool> {
    let tool = CountingTool::new(name).with_subject(RuleSubject::Site);
    Arc::new(tool.with_inspection(inspection))
}

fn replies(name: &str) -> Vec<lango_core::ModelReply> {
    let arguments = json!({ "x": 1 });
    vec![
        delegate_and_finish("navigator", "do it"),
        call(name, arguments),
        say("Done."),
    ]
}

fn matching(action: RuleAction, pattern: &str) -> ApprovalRule {
    ApprovalRule {
        matching: Some(pattern.to_owned()),
        ..rule(action, "browser_*")
    }
}

/// Whether one call runs without approval.
async fn runs(inspection: Inspection, rules: Vec<ApprovalRule>, question: &str) -> bool {
    let tool = tool("browser_navigate", inspection);
    let mut bench = Bench::new(vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    bench.rules = ApprovalRules::new(rules);
    let model = ScriptedModel::replies(replies("browser_navigate"));
    let mut conversation = bench.runner(model).start(local());
    ask(&mut conversation, question).await;
    tool.runs() == 1
}

#[tokio::test]
async fn a_url_runs_without_approval_if_it_is_a_link_or_the_users_but_an_action_never_does() {
    let (known, made_up) = (site(Some(URL), true), site(Some(URL), false));
    assert!(runs(known.clone(), vec![], "buy it").await);
    assert!(!runs(made_up.clone(), vec![], "buy it").await);
    assert!(runs(made_up.clone(), vec![], &format!("look at {URL}, please")).await);
    assert!(!runs(made_up.clone(), vec![], &format!("look at {URL}?x=1")).await);
    let act = site(None, false);
    assert!(!runs(act.clone(), vec![], "shop.example").await);
    let allow = |pattern| vec![matching(RuleAction::Allow, pattern)];
    assert!(runs(act.clone(), allow("shop.example"), "buy").await);
    assert!(runs(made_up.clone(), allow("*.example"), "buy").await);
    assert!(!runs(act, allow("example"), "buy").await);
    for pattern in ["shop.example", "*.example", "*.shop.example"] {
        let deny = vec![matching(RuleAction::Deny, pattern)];
        assert!(!runs(known.clone(), deny, "buy").await, "{pattern}");
    }
}

#[tokio::test]
async fn a_grant_is_for_a_host_and_one_for_acting_covers_opening_but_not_the_reverse() {
    let navigate = tool("browser_navigate", site(Some(URL), false));
    let act = tool("browser_act", site(None, false));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&navigate) as _, Arc::clone(&act) as _];
    let bench = Bench::new(tools);
    let steps = [
        "browser_navigate",
        "browser_act",
        "browser_act",
        "browser_navigate",
    ];
    let model = ScriptedModel::replies(steps.into_iter().flat_map(replies));
    let mut conversation = bench.runner(model).start(local());
    let asked = waiting(ask(&mut conversation, "1").await);
    assert_eq!(asked[0].request.pattern.as_deref(), Some("shop.example"));
    assert!(asked[0].request.reason.contains("open the cart"));
    finished(answer(&mut conversation, in_session("shop.example")).await);
    // The grant for opening does not cover the action, and a grant for everything covers nothing.
    waiting(ask(&mut conversation, "2").await);
    finished(answer(&mut conversation, in_session("*")).await);
    waiting(ask(&mut conversation, "3").await);
    finished(answer(&mut conversation, in_session("*.shop.example")).await);
    finished(ask(&mut conversation, "4").await);
    assert_eq!((navigate.runs(), act.runs()), (2, 2));
}

#[tokio::test]
async fn a_grant_for_acting_on_a_host_covers_opening_its_urls() {
    let navigate = tool("browser_navigate", site(Some(URL), false));
    let act = tool("browser_act", site(None, false));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&navigate) as _, Arc::clone(&act) as _];
    let bench = Bench::new(tools);
    let steps = ["browser_act", "browser_navigate"];
    let model = ScriptedModel::replies(steps.into_iter().flat_map(replies));
    let mut conversation = bench.runner(model).start(local());
    waiting(ask(&mut conversation, "1").await);
    finished(answer(&mut conversation, in_session("shop.example")).await);
    finished(ask(&mut conversation, "2").await);
    assert_eq!((navigate.runs(), act.runs()), (1, 1));
}

#[tokio::test]
async fn a_sensitive_file_needs_approval_even_if_the_site_is_allowed() {
    let act = site(None, false);
    let allow = || vec![matching(RuleAction::Allow, "shop.example")];
    assert!(runs(act.clone(), allow(), "buy").await);
    let upload = Inspection {
        guarded: Some(GuardedTarget {
            path: ".env".into(),
            reason: "\".env\" would be uploaded to `shop.example`".into(),
        }),
        ..act
    };
    assert!(!runs(upload.clone(), allow(), "buy").await);
    let act = tool("browser_act", upload);
    let bench = Bench::new(vec![Arc::clone(&act) as Arc<dyn Tool>]);
    let model = ScriptedModel::replies(["browser_act"; 2].into_iter().flat_map(replies));
    let mut conversation = bench.runner(model).start(local());
    for _ in 0..2 {
        let asked = waiting(ask(&mut conversation, "again").await);
        assert_eq!(asked[0].request.pattern, None, "no grant is offered");
        assert!(asked[0].request.reason.contains("shop.example"));
        finished(answer(&mut conversation, ApprovalAnswer::Once).await);
    }
    assert_eq!(act.runs(), 2);
}
