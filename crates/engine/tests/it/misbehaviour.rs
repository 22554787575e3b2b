//! How the engine handles misbehaving models: every row of the table, in both topologies and in single-agent mode. No
//! turn is lost, no limit is exceeded, and nothing costs more than three additional model calls.

use crate::support::{Play, PlayedTurn, SHAPES, Shape, file_agent, tree};
use lango_core::{CallStatus, Limit, ModelReply, Outcome, TurnFault};
use lango_testkit::model::{call, calls, delegate, delegate_and_finish, raw_call, say};
use serde_json::json;

/// Runs a script for the agent that owns the file tools.
fn at_the_file_agent(shape: Shape, script: Vec<ModelReply>) -> PlayedTurn {
    at_the_file_agent_with(shape, script, |play| play)
}

fn at_the_file_agent_with<'a>(
    shape: Shape,
    mut script: Vec<ModelReply>,
    change: impl FnOnce(Play<'a>) -> Play<'a>,
) -> PlayedTurn {
    if matches!(shape, Shape::Specialists | Shape::ClassicToolLess) {
        script.insert(0, delegate_and_finish(file_agent(shape), "the task"));
    }
    change(Play::scripted(tree(shape), script)).run("the task")
}

fn raw(name: &str, arguments: &str) -> ModelReply {
    ModelReply {
        calls: vec![raw_call("c", name, arguments)],
        ..say("")
    }
}

#[test]
fn an_unknown_agent_named_twice_withdraws_delegation() {
    for shape in [Shape::Specialists, Shape::Classic, Shape::ClassicToolLess] {
        let script = vec![
            delegate("navi", "x"),
            delegate("oper", "x"),
            delegate("vau", "x"),
            say("I could not."),
        ];
        let played = Play::scripted(tree(shape), script).run("x");
        assert_eq!(played.counts(), (4, 0, 0));
        assert!(
            played.requests[2].1.functions.is_empty(),
            "the third request offers nothing"
        );
        assert_eq!(
            played.faults(),
            [
                TurnFault::UnknownAgent,
                TurnFault::UnknownAgent,
                TurnFault::CallsNotOffered,
                TurnFault::EmptyReply
            ]
        );
        assert!(played.answered());
    }
}

#[test]
fn a_tool_less_orchestrator_that_calls_an_owned_tool_delegates_to_its_owner() {
    for shape in [Shape::Specialists, Shape::ClassicToolLess] {
        let script = vec![
            raw("fs_read", r#"{"path":"a"}"#),
            call("fs_read", json!({"path": "a"})),
            say("hi"),
            say("It says hi."),
        ];
        let played = Play::scripted(tree(shape), script).run("read a");
        assert_eq!(played.tools_run[0].agent, file_agent(shape));
        assert_eq!(
            played.answer(),
            ("lango-orchestrator".to_owned(), "It says hi.".to_owned())
        );
        assert_eq!(
            played.last_results(),
            [("hi".to_owned(), false)],
            "the result answers the original call"
        );
        assert_eq!(played.counts(), (4, 1, 1));
    }
}

#[test]
fn an_orchestrator_that_calls_an_unknown_tool_gets_an_error_result() {
    for shape in SHAPES {
        let played = Play::scripted(
            tree(shape),
            vec![call("no_such_tool", json!({})), say("I cannot.")],
        )
        .run("x");
        assert_eq!(played.faults(), [TurnFault::UnknownTool]);
        assert_eq!(played.counts(), (2, 0, 0));
    }
}

#[test]
fn arguments_that_do_not_parse_are_never_repaired_or_run() {
    for shape in SHAPES {
        for arguments in ["{\"path\": \"/tmp/a", "[1,", "null x", "{'a': 1}"] {
            let played =
                at_the_file_agent(shape, vec![raw("fs_read", arguments), say("I could not.")]);
            assert_eq!(
                played.faults(),
                [TurnFault::BadArguments],
                "{shape:?} {arguments}"
            );
            assert!(played.tools_run.is_empty() && played.answered());
            let (_, request) = played.requests.last().unwrap();
            let (result, _) = crate::support::results_in(request).remove(0);
            assert!(result.contains("line 1 column"), "says where: {result}");
        }
    }
}

#[test]
fn the_error_about_invalid_arguments_names_the_field() {
    use lango_core::ToolSpec;
    use lango_engine::Tree;
    use std::sync::Arc;
    let schema = json!({
        "type": "object", "required": ["path"], "additionalProperties": false,
        "properties": { "path": { "type": "string" }, "lines": { "type": "integer" } }
    });
    let spec = ToolSpec {
        parameters: schema.into(),
        ..lango_testkit::tool::spec("fs_read")
    };
    let tree = Arc::new(
        Tree::single(vec![Arc::new(spec)], &lango_engine::TreeSettings::default()).unwrap(),
    );
    for (arguments, named) in [
        (json!({}), "path"),
        (json!({"path": 1}), "path"),
        (json!({"path": "a", "lines": "x"}), "lines"),
        (json!({"path": "a", "no": 1}), "no"),
        (json!([1]), "array"),
    ] {
        let played = Play::scripted(
            Arc::clone(&tree),
            vec![call("fs_read", arguments.clone()), say("no")],
        )
        .run("x");
        assert_eq!(played.faults(), [TurnFault::BadArguments]);
        let (result, _) = played.last_results().remove(0);
        assert!(
            result.contains(named) || result.contains("object"),
            "{arguments} → {result}"
        );
        assert!(played.tools_run.is_empty());
    }
}

#[test]
fn a_delegation_without_agent_or_task_is_an_error_result() {
    for arguments in [
        "{}",
        r#"{"agent":"operator"}"#,
        r#"{"agent":"operator","task":"  "}"#,
        r#"{"agent":1,"task":"x"}"#,
        "",
        "{\"agent\":\"oper",
    ] {
        let played = Play::scripted(
            tree(Shape::Specialists),
            vec![raw("delegate", arguments), say("I could not.")],
        )
        .run("x");
        assert_eq!(played.faults(), [TurnFault::BadArguments], "{arguments}");
        assert_eq!(played.counts(), (2, 0, 0));
    }
}

#[test]
fn three_replies_in_a_row_with_calls_that_cannot_run_make_the_agent_finish() {
    for shape in SHAPES {
        let wrong = || call("no_such_tool", json!({}));
        let played = at_the_file_agent(shape, vec![wrong(), wrong(), wrong(), say("I could not.")]);
        assert!(played.answered(), "{shape:?}");
        assert_eq!(played.faults().len(), 3);
        assert!(played.requests.last().unwrap().1.functions.is_empty());
    }
}

#[test]
fn the_same_call_with_the_same_result_is_stopped_the_third_time() {
    for shape in SHAPES {
        let again = || call("fs_read", json!({"path": "a"}));
        let played = at_the_file_agent(
            shape,
            vec![again(), again(), again(), again(), say("Enough.")],
        );
        assert_eq!(played.tools_run.len(), 3, "{shape:?}");
        assert!(played.faults().contains(&TurnFault::Repetition));
        assert!(played.answered());
    }
}

#[test]
fn two_alternating_calls_with_the_same_results_are_stopped_too() {
    for shape in SHAPES {
        let one = || call("fs_read", json!({"path": "a"}));
        let two = || call("exec_shell", json!({}));
        let played = at_the_file_agent(
            shape,
            vec![one(), two(), one(), two(), one(), say("Enough.")],
        );
        assert_eq!(played.tools_run.len(), 4, "{shape:?}");
        assert!(played.answered());
    }
}

#[test]
fn a_call_whose_result_changes_is_not_stopped() {
    for shape in SHAPES {
        let again = || call("fs_read", json!({"path": "a"}));
        let mut look = 0;
        let script = vec![again(), again(), again(), again(), again(), say("Ready.")];
        let played = at_the_file_agent_with(shape, script, |play| {
            play.tools(move |_| {
                look += 1;
                (CallStatus::Ok, format!("{look} %"))
            })
        });
        assert_eq!(played.tools_run.len(), 5, "{shape:?}");
        assert_eq!(played.faults(), []);
    }
}

#[test]
fn an_agent_with_an_empty_reply_is_asked_once_more_and_then_the_turn_summarizes_what_was_done() {
    for shape in SHAPES {
        let played = Play::scripted(tree(shape), vec![say(" "), say("Now.")]).run("x");
        assert_eq!(
            (played.answer().1.as_str(), played.counts().0),
            ("Now.", 2),
            "{shape:?}"
        );

        let played =
            Play::scripted(tree(shape), vec![say(""), say("\n"), say("too late")]).run("x");
        assert!(
            matches!(played.outcome(), Outcome::Failed { .. }),
            "an empty answer is not a success"
        );
        assert!(played.answer().1.contains("no answer"));
        assert_eq!(played.counts().0, 2);
    }
}

#[test]
fn a_sub_agent_with_empty_replies_returns_to_the_orchestrator() {
    let script = vec![
        delegate_and_finish("operator", "x"),
        say(""),
        say(""),
        say("The operator said nothing."),
    ];
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert_eq!(
        played.answer(),
        (
            "lango-orchestrator".to_owned(),
            "The operator said nothing.".to_owned()
        )
    );
    assert_eq!(played.counts().0, 4);
}

#[test]
fn if_the_orchestrator_stops_replying_the_finished_work_is_in_the_answer() {
    let script = vec![delegate("operator", "x"), say("42 files"), say(""), say("")];
    let played = Play::scripted(tree(Shape::Specialists), script).run("x");
    assert!(played.answer().1.contains("42 files"));
}

#[test]
fn a_rejection_by_the_answering_agent_is_never_the_answer() {
    for shape in SHAPES {
        let played = Play::scripted(
            tree(shape),
            vec![say("[REJECT] no"), say("I cannot do that.")],
        )
        .run("x");
        assert_eq!(played.answer().1, "I cannot do that.", "{shape:?}");
        let played =
            Play::scripted(tree(shape), vec![say("[REJECT] no"), say("[REJECT] no")]).run("x");
        assert!(!played.answer().1.contains("REJECT"));
        assert!(matches!(played.outcome(), Outcome::Failed { .. }));
    }
}

#[test]
fn the_last_model_call_offers_nothing_and_asks_for_the_best_answer() {
    for shape in SHAPES {
        for most in 1..=6 {
            let agent = file_agent(shape);
            let play = Play::new(tree(shape), move |step, request| {
                let names = crate::support::function_names(request);
                match names.first().map(String::as_str) {
                    None => say("the best I have"),
                    Some("delegate") if step.frame.is_root() => delegate(agent, "go on"),
                    Some(_) => call("fs_read", json!({"path": request.messages.len()})),
                }
            });
            let played = play
                .limits(|limits| (limits.model_calls, limits.rounds) = (most, 100))
                .run("never stop");
            assert_eq!(played.counts().0, most, "{shape:?}");
            assert_eq!(
                *played.outcome(),
                Outcome::Answered {
                    limit: Some(Limit::ModelCalls)
                }
            );
            assert!(played.requests.last().unwrap().1.functions.is_empty());
            assert!(
                played.requests.last().unwrap().0.frame.is_root(),
                "reserved for the agent that answers the user"
            );
        }
    }
}

#[test]
fn a_limit_of_zero_calls_makes_no_call_and_says_so() {
    for shape in SHAPES {
        let played = Play::scripted(tree(shape), vec![])
            .limits(|limits| limits.model_calls = 0)
            .run("x");
        assert_eq!(
            *played.outcome(),
            Outcome::Limited {
                limit: Limit::ModelCalls
            }
        );
        assert!(played.answer().1.contains("agent.maxModelCalls is 0"));
        assert!(played.requests.is_empty());
    }
}

#[test]
fn the_tool_call_limit_applies_to_the_whole_tree_and_is_named() {
    for shape in SHAPES {
        let many: Vec<_> = (0..10).map(|at| ("fs_read", json!({"path": at}))).collect();
        let script = vec![calls(many), say("Partly done.")];
        let played = at_the_file_agent_with(shape, script, |play| {
            play.limits(|limits| limits.tool_calls = 4)
        });
        assert_eq!(played.tools_run.len(), 4, "{shape:?}");
        assert_eq!(
            *played.outcome(),
            Outcome::Answered {
                limit: Some(Limit::ToolCalls)
            }
        );
    }
}

#[test]
fn empty_or_repeated_call_ids_are_replaced() {
    for ids in [["", ""], ["a", "a"], ["call_1", ""]] {
        let calls = ids.map(|id| raw_call(id, "fs_read", "{}")).to_vec();
        let reply = || ModelReply {
            calls: calls.clone(),
            ..say("")
        };
        let played = Play::scripted(
            tree(Shape::Single),
            vec![reply(), say("half"), reply(), say("done")],
        )
        .run("x");
        assert!(played.answered());
        let mut seen: Vec<_> = played
            .tools_run
            .iter()
            .map(|step| step.call.clone())
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), played.tools_run.len());
    }
}

#[test]
fn an_absurd_number_of_calls_is_truncated() {
    let many: Vec<_> = (0..10_000)
        .map(|at| ("fs_read", json!({"path": at})))
        .collect();
    let played = Play::scripted(tree(Shape::Single), vec![calls(many), say("Done.")]).run("x");
    assert_eq!(played.tools_run.len(), 32);
    assert_eq!(played.faults(), [TurnFault::TooManyCalls]);
}

#[test]
fn calls_of_a_reply_that_was_cut_off_never_run() {
    for shape in SHAPES {
        let cut = ModelReply {
            stop: lango_core::StopReason::OutputLimit,
            ..raw("fs_read", "")
        };
        let played = at_the_file_agent(shape, vec![cut, say("I could not.")]);
        assert!(played.tools_run.is_empty(), "{shape:?}");
        assert_eq!(played.faults(), [TurnFault::BadArguments]);
        assert!(played.answered());
    }
}

#[test]
fn an_answer_that_was_cut_off_says_so() {
    let cut = ModelReply {
        stop: lango_core::StopReason::OutputLimit,
        ..say("The first half")
    };
    let played = Play::scripted(tree(Shape::Single), vec![cut]).run("x");
    assert!(played.answer().1.starts_with("The first half\n\n["));
    assert!(played.answer().1.contains("cut off"));
}

#[test]
fn arguments_that_are_nested_too_deeply_are_rejected() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    let played = at_the_file_agent(Shape::Single, vec![raw("fs_read", &deep), say("no")]);
    assert_eq!(played.faults(), [TurnFault::BadArguments]);
    assert!(played.tools_run.is_empty());
}
