//! Agents with their own models: which model is called, what is stored, and whose price and context window apply.

use crate::bench::{Bench, local, log, turn};
use crate::support::{Play, Shape, results_in, tree};
use lango_core::{
    AgentModel, AgentName, EventBody, Limit, ModelInfo, ModelReply, Outcome, Price, Tool, Usage,
};
use lango_testkit::model::{ScriptedModel, call, delegate, delegate_and_finish, say};
use lango_testkit::tool::CountingTool;
use serde_json::json;
use std::sync::Arc;

const PRICE: Price = Price {
    input: 1.0,
    cached: 1.0,
    cache_write: None,
    output: 1.0,
    tier: None,
};

#[tokio::test]
async fn t17_an_agents_own_model_replies_and_the_log_names_it() {
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(CountingTool::new("fs_read"))];
    let mut bench = Bench::new(tools);
    let own = ScriptedModel::replies([call("fs_read", json!({ "path": "a" })), say("It says hi.")]);
    let terms = ModelInfo {
        price: Some(PRICE),
        context_tokens: Some(5_000),
    };
    let own = Arc::new(own.with_name("own/small").with_terms(terms));
    bench.models.insert("operator".into(), own.clone());
    let main = [
        delegate("operator", "read a"),
        delegate_and_finish("planner", "plan"),
        say("A plan."),
    ];
    let runner = bench.runner(ScriptedModel::replies(main));
    let mut conversation = runner.start(local());
    let (report, _) = turn(&mut conversation, "read a, then plan").await;
    assert_eq!(report.answer.as_deref(), Some("A plan."));
    assert_eq!(report.model.as_deref(), Some("test/scripted"));
    assert_eq!(own.requests().len(), 2);
    let events = log(&bench, conversation.session()).await;
    let messages: Vec<(&str, &str)> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::AgentMessage { model, .. } => {
                Some((event.author.as_str(), model.as_deref()?))
            }
            _ => None,
        })
        .collect();
    let expected = [
        ("lango-orchestrator", "test/scripted"),
        ("operator", "own/small"),
        ("operator", "own/small"),
        ("lango-orchestrator", "test/scripted"),
        ("planner", "test/scripted"),
    ];
    assert_eq!(messages, expected);
    let EventBody::UserMessage {
        settings: Some(settings),
        ..
    } = &events[0].body
    else {
        panic!("{:?}", events[0]);
    };
    let stored = AgentModel {
        model: "own/small".into(),
        price: Some(PRICE),
        context_tokens: Some(5_000),
    };
    assert_eq!(
        settings.models,
        [(AgentName::from("operator"), stored)].into()
    );
}

#[tokio::test]
async fn t17_a_failing_model_of_an_agent_is_named_and_the_orchestrator_continues() {
    let mut bench = Bench::new(Vec::new());
    let broken = ScriptedModel::replies([]).with_name("own/broken");
    bench.models.insert("planner".into(), Arc::new(broken));
    let main = [delegate("planner", "plan"), say("No plan today.")];
    let mut conversation = bench.runner(ScriptedModel::replies(main)).start(local());
    let (report, _) = turn(&mut conversation, "plan").await;
    assert_eq!(report.answer.as_deref(), Some("No plan today."));
    assert_eq!(report.outcome, Outcome::Answered { limit: None });
}

fn with_own(play: &mut Play<'_>, price: Option<Price>, context_tokens: Option<u64>) {
    let own = AgentModel {
        model: "own/model".into(),
        price,
        context_tokens,
    };
    play.agent_models.insert("operator".into(), own);
}

fn cheap(reply: ModelReply) -> ModelReply {
    ModelReply {
        usage: Usage {
            input_tokens: 100,
            output_tokens: 10,
            ..Usage::default()
        },
        cost_micros: Some(1),
        ..reply
    }
}

#[test]
fn t17_the_price_of_its_own_model_is_reserved_for_its_calls() {
    let dear = Price {
        input: 1_000_000.0,
        ..PRICE
    };
    for (price, is_asked) in [(Some(PRICE), true), (Some(dear), false), (None, false)] {
        let replies = [delegate("operator", "x"), say("done"), say("all done")];
        let script = replies.map(cheap).to_vec();
        let mut play = Play::scripted(tree(Shape::Specialists), script)
            .limits(|limits| limits.cost_micros = Some(1_000_000));
        play.price = Some(PRICE);
        with_own(&mut play, price, None);
        let played = play.run("x");
        let asked = played
            .requests
            .iter()
            .any(|(step, _)| step.agent == "operator");
        assert_eq!(asked, is_asked, "{price:?}");
        let limit = played.outcome().limit();
        assert_eq!(limit, (!is_asked).then_some(Limit::Cost), "{price:?}");
    }
}

#[test]
fn t17_the_context_window_of_its_own_model_limits_its_requests() {
    for (own, main, is_cut) in [(8_000, 1_000_000, true), (1_000_000, 8_000, false)] {
        let mut script = vec![delegate("operator", "read")];
        script.extend((0..6).map(|at| call("fs_read", json!({ "path": at }))));
        let output = "z".repeat(9_000);
        let mut play = Play::scripted(tree(Shape::Specialists), script)
            .tools(move |_| (lango_core::CallStatus::Ok, output.clone()));
        play.context_tokens = Some(main);
        with_own(&mut play, None, Some(own));
        let played = play.run("read them");
        let mut requests = played.requests.iter().rev();
        let (_, last) = requests.find(|(step, _)| step.agent == "operator").unwrap();
        let cut = results_in(last)
            .iter()
            .any(|(text, _)| text.contains("left out to make room"));
        assert_eq!(cut, is_cut, "{own} of its own, {main} of the others");
    }
}
