//! Token and money budgets: reserved before a call, enforced over the whole tree, and named when they end a turn. Also
//! the context window: requests fit into it, and calls stay with their results.

use crate::support::{Play, PlayedTurn, SHAPES, Shape, check_request, file_agent, tree, tree_with};
use lango_core::{
    Exchange, ExchangeAnswer, Limit, Message, ModelReply, Outcome, Price, RemoteAnswer, Timestamp,
    Usage,
};
use lango_engine::{TurnInput, TurnStep};
use lango_testkit::model::{call, calls, delegate, say};
use serde_json::json;

/// Sets the usage and the cost of a reply.
fn costing(reply: ModelReply, input_tokens: u64, output_tokens: u64) -> ModelReply {
    let usage = Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    };
    ModelReply {
        usage,
        cost_micros: Some(PRICE.cost(&usage)),
        ..reply
    }
}

const PRICE: Price = Price {
    input: 3.0,
    cached: 0.3,
    cache_write: None,
    output: 15.0,
    tier: None,
};

fn spent(played: &PlayedTurn) -> (u64, Option<u64>) {
    match played.events.last().map(|event| &event.body) {
        Some(lango_core::EventBody::TurnFinished {
            usage, cost_micros, ..
        }) => (usage.total(), *cost_micros),
        other => panic!("{other:?} is not an end"),
    }
}

/// Agents that never finish by themselves and whose replies are expensive.
fn endless(shape: Shape) -> Play<'static> {
    let agent = file_agent(shape);
    let mut number = 0;
    Play::new(tree(shape), move |step, request| {
        number += 1;
        let names = crate::support::function_names(request);
        let reply = match names.first().map(String::as_str) {
            None => say("the best I have"),
            Some("delegate") if step.frame.is_root() => {
                let task = ("delegate", json!({ "agent": agent, "task": "go on" }));
                calls([task.clone(), task.clone(), task])
            }
            Some(_) => call("fs_read", json!({ "path": number })),
        };
        costing(reply, 1000, 400)
    })
}

#[test]
fn a_turn_exceeds_its_tokens_by_at_most_one_answer() {
    for shape in SHAPES {
        for most in [1, 1500, 3000, 5000, 10_000, 20_000] {
            let play = endless(shape).limits(|limits| limits.tokens = Some(most));
            let played = play.run("never stop");
            let (tokens, _) = spent(&played);
            assert!(tokens <= most + 1400, "{shape:?}: {tokens} of {most}");
            assert_eq!(
                played.outcome().limit(),
                Some(Limit::Tokens),
                "{shape:?} {most}"
            );
        }
    }
}

#[test]
fn a_turn_exceeds_its_money_by_at_most_one_answer() {
    for shape in SHAPES {
        for most in [10, 5_000, 20_000, 60_000] {
            let mut play = endless(shape).limits(|limits| limits.cost_micros = Some(most));
            play.price = Some(PRICE);
            let played = play.run("never stop");
            let (_, cost) = spent(&played);
            assert!(
                cost.unwrap() <= most + 9_000,
                "{shape:?}: {cost:?} of {most}"
            );
            assert_eq!(
                played.outcome().limit(),
                Some(Limit::Cost),
                "{shape:?} {most}"
            );
        }
    }
}

#[test]
fn a_sufficient_budget_ends_no_turn_and_names_no_limit() {
    let play = Play::scripted(
        tree(Shape::Specialists),
        vec![costing(say("Hello."), 500, 5)],
    );
    let played = play
        .limits(|limits| limits.tokens = Some(50_000))
        .run("hello");
    assert_eq!(*played.outcome(), Outcome::Answered { limit: None });
}

#[test]
fn a_budget_of_zero_allows_no_call() {
    for limit in [Limit::Tokens, Limit::Cost] {
        let mut play =
            Play::scripted(tree(Shape::Specialists), vec![]).limits(|limits| match limit {
                Limit::Tokens => limits.tokens = Some(0),
                _ => limits.cost_micros = Some(0),
            });
        play.price = Some(PRICE);
        let played = play.run("hello");
        assert_eq!(*played.outcome(), Outcome::Limited { limit });
        assert!(played.requests.is_empty());
        assert!(played.answer().1.contains(&format!("{} is 0", limit.key())));
    }
}

#[test]
fn an_unknown_price_is_not_spent() {
    let play = Play::scripted(tree(Shape::Specialists), vec![say("Hello.")]);
    let played = play
        .limits(|limits| limits.cost_micros = Some(1_000_000))
        .run("hello");
    assert_eq!(*played.outcome(), Outcome::Limited { limit: Limit::Cost });
    assert!(played.requests.is_empty());
}

#[test]
fn a_reply_without_a_price_makes_the_sum_unknown() {
    let script = vec![
        costing(delegate("operator", "x"), 10, 10),
        say("done"),
        costing(say("all done"), 10, 10),
    ];
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert_eq!(spent(&played).1, None);
}

fn long_exchange(number: usize) -> Exchange {
    Exchange {
        turn: format!("t_{number}").as_str().into(),
        question: format!("question {number} {}", "x".repeat(900)).into(),
        origin: None,
        attachments: Vec::new(),
        answer: Some(ExchangeAnswer {
            author: "operator".into(),
            text: "y".repeat(900).into(),
            task: None,
            is_remote: false,
            is_notice: false,
            trust: Default::default(),
        }),
        undone: None,
    }
}

#[test]
fn earlier_turns_that_do_not_fit_are_dropped_completely_from_the_oldest_on() {
    let mut play = Play::scripted(tree(Shape::Specialists), vec![say("ok")]);
    play.exchanges = (0..20).map(long_exchange).collect();
    play.context_tokens = Some(16_000);
    let played = play.run("now");
    let request = &played.requests[0].1;
    check_request(request);
    let questions: Vec<&str> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::User { text, .. } => text.split(" x").next(),
            _ => None,
        })
        .collect();
    let expected: Vec<String> = (10..20)
        .map(|number| format!("question {number}"))
        .collect();
    assert_eq!(
        questions[..questions.len() - 1],
        expected,
        "in steps of a few"
    );
    assert_eq!(questions.last(), Some(&"now"));
}

#[test]
fn long_results_are_cut_with_a_note_and_stay_with_their_calls() {
    let script = (0..6)
        .map(|at| call("fs_read", json!({ "path": at })))
        .collect();
    let mut number = 0;
    let mut play = Play::scripted(tree(Shape::Single), script).tools(move |_| {
        number += 1;
        (
            lango_core::CallStatus::Ok,
            format!("{number}{}", "z".repeat(9_000)),
        )
    });
    play.context_tokens = Some(8_000);
    let played = play.run("read them");
    let last = &played.requests.last().unwrap().1;
    check_request(last);
    let results = crate::support::results_in(last);
    assert_eq!(results.len(), 6);
    assert!(
        results[0].0.contains("bytes left out to make room"),
        "the oldest first"
    );
    assert!(!results[5].0.contains("left out"), "the newest is whole");
}

#[test]
fn a_result_that_arrives_during_a_model_call_does_not_revoke_the_call() {
    let tree = tree_with(Shape::Specialists, &["fs_read"], &["translator"], 3);
    let play = Play::scripted(tree, vec![]).limits(|limits| limits.tokens = Some(20_000));
    let (mut turn, _) = play.begin("read and translate");
    let Some(TurnStep::CallModel(root)) = turn.ready().pop() else {
        panic!("the orchestrator is asked first");
    };
    let task = |agent| ("delegate", json!({ "agent": agent, "task": "go on" }));
    let replied = TurnInput::ModelReplied {
        step: root,
        reply: calls([task("operator"), task("translator")]),
        model: "test/scripted".into(),
        inspections: Vec::new(),
    };
    turn.accept(replied, Timestamp(2));
    let under_way = turn.ready();
    let [TurnStep::CallModel(_), TurnStep::CallRemote(remote)] = under_way.as_slice() else {
        panic!("{under_way:?} is not a model call beside a remote call");
    };
    let long_answer = "bonjour ".repeat(10_000);
    let returned = TurnInput::RemoteReturned {
        step: remote.clone(),
        result: Ok(RemoteAnswer::from(long_answer)),
        attachments: Vec::new(),
    };
    turn.accept(returned, Timestamp(3));
    let left: Vec<_> = turn.ready().iter().map(TurnStep::key).collect();
    assert_eq!(left, [under_way[0].key()]);
}
