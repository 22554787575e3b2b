//! Group B of the specification, t12, and the promised costs: what the engine guarantees for any model.

use crate::support::{Play, SHAPES, Shape, file_agent, function_names, tree, tree_with};
use lango_core::{EventBody, Limit, Message, ModelReply, Outcome, TurnFault};
use lango_testkit::model::{call, calls, delegate, delegate_and_finish, say};
use serde_json::json;

#[test]
fn b01_hello_costs_one_model_call_and_three_events() {
    for shape in SHAPES {
        let played = Play::scripted(tree(shape), vec![say("Hello!")]).run("hello");
        assert_eq!(played.counts(), (1, 0, 0), "{shape:?}");
        assert_eq!(
            played.kinds(),
            ["user.message", "agent.message", "turn.finished"]
        );
        assert_eq!(played.answer().1, "Hello!");
    }
}

#[test]
fn b02_a_task_that_needs_a_tool_goes_to_its_owner_under_its_exact_name() {
    let script = vec![
        delegate_and_finish("operator", "read a.txt"),
        call("fs_read", json!({})),
        say("It says hi."),
    ];
    let played = Play::scripted(tree(Shape::Specialists), script).run("what does a.txt say?");
    assert_eq!(
        played.answer(),
        ("operator".to_owned(), "It says hi.".to_owned())
    );
    assert_eq!(
        played.counts(),
        (3, 1, 1),
        "a one-tool task with finish costs three model calls"
    );
    assert_eq!(played.tools_run[0].agent, "operator");
}

#[test]
fn a_one_tool_task_costs_two_model_calls_in_single_agent_mode() {
    let script = vec![call("fs_read", json!({})), say("It says hi.")];
    let played = Play::scripted(tree(Shape::Single), script).run("what does a.txt say?");
    assert_eq!(played.counts(), (2, 1, 0));
}

#[test]
fn b03_an_unregistered_name_never_runs_and_never_ends_the_turn() {
    for shape in [Shape::Specialists, Shape::Classic, Shape::ClassicToolLess] {
        for name in [
            "browser_agent",
            "exec",
            "",
            "Operator",
            "lango-orchestrator",
            "user",
        ] {
            let script = vec![delegate(name, "do it"), say("I could not.")];
            let played = Play::scripted(tree(shape), script).run("do it");
            assert!(played.answered());
            assert_eq!(played.counts(), (2, 0, 0), "no round is spent on {name:?}");
            let (result, failed) = played.last_results().remove(0);
            assert!(
                failed && result.contains(file_agent(shape)) && result.contains("planner"),
                "{result}"
            );
            assert!(
                !played
                    .events
                    .iter()
                    .any(|event| matches!(event.body, EventBody::AgentDelegated { .. }))
            );
        }
    }
}

#[test]
fn b04_a_rejection_returns_to_the_orchestrator_and_the_agent_gets_no_more_tasks() {
    let script = vec![
        delegate_and_finish("operator", "plan my day"),
        say(" \n[REJECT] planning is not mine"),
        delegate_and_finish("planner", "plan my day"),
        say("1. Get up."),
    ];
    let played = Play::scripted(tree(Shape::Specialists), script).run("plan my day");
    assert_eq!(
        played.answer(),
        ("planner".to_owned(), "1. Get up.".to_owned())
    );
    let (result, failed) = played.last_results().remove(0);
    assert!(failed && result.contains("planning is not mine"));
    let request = &played.requests[2].1;
    let schema = request.functions[0].parameters.to_string();
    assert!(
        !schema.contains("\"operator\"") && schema.contains("\"planner\""),
        "{schema}"
    );
}

#[test]
fn b04_an_agent_that_rejected_does_not_run_again() {
    let script = vec![
        delegate("operator", "x"),
        say("[REJECT] no"),
        delegate("operator", "x"),
        say("I could not do it."),
    ];
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert_eq!(played.faults(), [TurnFault::RefusedAgent]);
    assert_eq!(
        played.counts(),
        (4, 0, 1),
        "the rejected delegation is a round, the refused one is not"
    );
}

#[test]
fn b04_a_quoted_rejection_is_ordinary_text() {
    let text = "The file says: [REJECT] nothing.";
    let script = vec![
        delegate_and_finish("operator", "read"),
        call("fs_read", json!({})),
        say(text),
    ];
    let played = Play::scripted(tree(Shape::Specialists), script).run("read");
    assert_eq!(played.answer().1, text);
    assert!(!played.kinds().contains(&"agent.rejected"));
}

#[test]
fn b04_a_reply_with_calls_is_not_a_rejection() {
    let reply = ModelReply {
        text: "[REJECT] or not".to_owned(),
        ..call("fs_read", json!({}))
    };
    let script = vec![delegate_and_finish("operator", "read"), reply, say("Done.")];
    let played = Play::scripted(tree(Shape::Specialists), script).run("read");
    assert_eq!(played.answer().1, "Done.");
    assert_eq!(played.tools_run.len(), 1);
}

#[test]
fn b05_the_delegation_limit_is_enforced_in_code() {
    for shape in [Shape::Specialists, Shape::Classic, Shape::ClassicToolLess] {
        for rounds in [1, 3, 5] {
            let agent = file_agent(shape);
            let play = Play::new(
                tree_with(shape, &["fs_read"], &[], rounds),
                move |step, request| {
                    let can_delegate = function_names(request).contains(&"delegate".to_owned());
                    if step.frame.is_root() && can_delegate {
                        delegate(agent, "go on")
                    } else {
                        say("so far so good")
                    }
                },
            );
            let played = play
                .limits(|limits| limits.rounds = rounds)
                .run("never stop");
            assert_eq!(played.counts().2, rounds, "{shape:?}");
            let last = &played.requests.last().unwrap().1;
            assert!(!function_names(last).contains(&"delegate".to_owned()));
            assert_eq!(
                *played.outcome(),
                Outcome::Answered {
                    limit: Some(Limit::Rounds)
                }
            );
        }
    }
}

#[test]
fn b05_rejected_delegations_count_as_rounds() {
    let agents = ["operator", "navigator", "vault"];
    let mut script: Vec<ModelReply> = Vec::new();
    for agent in agents {
        script.extend([delegate(agent, "x"), say("[REJECT] no")]);
    }
    script.push(delegate("planner", "x"));
    script.push(say("I could not."));
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert_eq!(played.counts().2, 3);
    assert!(played.answered());
}

#[test]
fn i14_a_limit_of_five_rounds_is_stated_and_enforced() {
    let tree = tree_with(Shape::Specialists, &["fs_read"], &[], 5);
    assert!(
        tree.root
            .instruction
            .contains("At most 5 delegation rounds")
    );
    let script = (0..20)
        .map(|at| {
            if at % 2 == 0 {
                delegate("operator", "again")
            } else {
                say("ok")
            }
        })
        .collect();
    let played = Play::scripted(tree, script)
        .limits(|limits| limits.rounds = 5)
        .run("x");
    assert_eq!(played.counts().2, 5);
}

#[test]
fn b06_classic_makes_one_simple_call_directly_and_delegates_the_rest() {
    let direct = vec![call("fs_read", json!({})), say("It says hi.")];
    let played = Play::scripted(tree(Shape::Classic), direct).run("read a.txt");
    assert_eq!(played.counts(), (2, 1, 0));
    assert_eq!(played.tools_run[0].agent, "lango-orchestrator");
    let delegated = vec![
        delegate("executor", "many steps"),
        call("fs_read", json!({})),
        say("done"),
        say("All done."),
    ];
    let played = Play::scripted(tree(Shape::Classic), delegated).run("something complex");
    assert_eq!(played.tools_run[0].agent, "executor");
    assert_eq!(played.counts(), (4, 1, 1));
}

#[test]
fn b07_the_single_agent_calls_its_tools_without_delegation() {
    let script = vec![
        call("odd_thing", json!({})),
        call("fs_read", json!({})),
        say("Done."),
    ];
    let played = Play::scripted(tree(Shape::Single), script).run("x");
    assert_eq!(
        played.answer(),
        ("lango-agent".to_owned(), "Done.".to_owned())
    );
    assert_eq!(played.tools_run.len(), 2);
    assert!(
        played
            .requests
            .iter()
            .all(|(_, request)| !function_names(request).contains(&"delegate".to_owned()))
    );
}

#[test]
fn b08_an_unmatched_tool_never_runs_and_the_model_learns_that_no_agent_owns_it() {
    for agent in [None, Some("operator")] {
        let mut script = vec![call("odd_thing", json!({})), say("No agent has it.")];
        if let Some(agent) = agent {
            script.insert(0, delegate(agent, "do the odd thing"));
            script.push(say("No agent has it."));
        }
        let played = Play::scripted(tree(Shape::Specialists), script).run("do the odd thing");
        assert_eq!(played.faults(), [TurnFault::UnmatchedTool]);
        assert!(played.tools_run.is_empty());
        assert_eq!(played.answer().1, "No agent has it.");
        let result = played
            .requests
            .iter()
            .flat_map(|(_, request)| crate::support::results_in(request));
        assert!(
            result
                .into_iter()
                .any(|(text, _)| text.contains("no agent owns"))
        );
    }
}

#[test]
fn b09_if_every_agent_has_rejected_the_orchestrator_answers_itself() {
    let tree = tree_with(Shape::Specialists, &["fs_read"], &[], 3);
    let script = vec![
        calls([
            ("delegate", json!({"agent": "operator", "task": "x"})),
            ("delegate", json!({"agent": "planner", "task": "x"})),
        ]),
        say("[REJECT] not mine"),
        say("[REJECT] nor mine"),
        say("Nobody here can do that."),
    ];
    let played = Play::scripted(tree, script).run("x");
    let (_, last) = played.requests.last().unwrap();
    assert!(last.functions.is_empty());
    assert!(
        matches!(last.messages.last(), Some(Message::Notice { text }) if text.contains("could not be done"))
    );
    assert_eq!(
        played.answer(),
        (
            "lango-orchestrator".to_owned(),
            "Nobody here can do that.".to_owned()
        )
    );
    assert_eq!(played.counts(), (4, 0, 1));
}

#[test]
fn t12_a_sub_agent_is_offered_only_its_own_tools_and_cannot_delegate() {
    for (name, fault) in [
        ("search_web", TurnFault::ForeignTool),
        ("delegate", TurnFault::DelegationClosed),
        ("nothing", TurnFault::UnknownTool),
    ] {
        let script = vec![
            delegate("operator", "x"),
            call(name, json!({"agent": "planner", "task": "x"})),
            say("I could not."),
            say("It could not be done."),
        ];
        let played = Play::scripted(tree(Shape::Specialists), script).run("x");
        assert_eq!(played.faults(), [fault]);
        assert!(played.tools_run.is_empty());
        assert_eq!(played.counts().2, 1);
        assert_eq!(
            function_names(&played.requests[1].1),
            ["exec_shell", "fs_read"]
        );
    }
}

#[test]
fn several_delegations_run_concurrently_and_join() {
    let task = |agent: &str| {
        (
            "delegate",
            json!({"agent": agent, "task": "x", "finish": true}),
        )
    };
    let script = vec![
        calls([task("operator"), task("librarian")]),
        say("one"),
        say("two"),
        say("one and two"),
    ];
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert_eq!(
        played.answer(),
        ("lango-orchestrator".to_owned(), "one and two".to_owned()),
        "finish is for an only call"
    );
    assert_eq!(played.counts(), (4, 0, 1), "both are one round");
    assert_eq!(
        played.last_results(),
        [("one".to_owned(), false), ("two".to_owned(), false)]
    );
}

#[test]
fn a_fifth_delegation_in_one_reply_is_rejected() {
    let task = || ("delegate", json!({"agent": "operator", "task": "x"}));
    let script = vec![calls([task(), task(), task(), task(), task()])];
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert_eq!(played.faults(), [TurnFault::TooManyCalls]);
    assert_eq!(
        played
            .kinds()
            .iter()
            .filter(|kind| **kind == "agent.delegated")
            .count(),
        4
    );
}

#[test]
fn a_remote_agent_follows_the_same_rules() {
    let tree = || tree_with(Shape::Specialists, &["fs_read"], &["translator"], 3);
    let played =
        Play::scripted(tree(), vec![delegate_and_finish("translator", "say hello")]).run("x");
    assert_eq!(
        played.answer(),
        ("translator".to_owned(), "bonjour".to_owned())
    );
    for refusal in [
        Ok("[REJECT] no".to_owned()),
        Ok("  ".to_owned()),
        Err("down".to_owned()),
    ] {
        let script = vec![
            delegate_and_finish("translator", "say hello"),
            say("It could not be done."),
        ];
        let played = Play::scripted(tree(), script)
            .remote(|_| refusal.clone())
            .run("x");
        assert_eq!(played.answer().0, "lango-orchestrator", "finish lapses");
        assert_eq!(played.counts(), (2, 0, 1));
    }
}
