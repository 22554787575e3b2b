//! The cost of lango's prompts, in tokens of `o200k_base`. `cargo test -p lango-engine --test it prompt_cost --
//! --nocapture` prints the table of docs/performance.md.

use crate::support::{Play, PlayedTurn, Shape, tree_with};
use lango_core::{Message, ModelRequest};
use lango_testkit::model::{call, calls, delegate_and_finish, say};
use serde_json::json;
use tiktoken_rs::o200k_base_singleton;

/// A tool for each of the five agents with tools, so that all six agents exist.
const SIX_AGENTS: [&str; 5] = [
    "fs_list",
    "browser_open",
    "secrets_read",
    "search_web",
    "memory_recall",
];

fn tokens(text: &str) -> usize {
    o200k_base_singleton()
        .encode_with_special_tokens(text)
        .len()
}

/// Returns the tokens of a request, without the few that a provider adds for each message.
fn tokens_of(request: &ModelRequest) -> usize {
    let functions = request.functions.iter().map(|function| {
        tokens(&function.name)
            + tokens(&function.description)
            + tokens(&function.parameters.to_string())
    });
    let messages = request.messages.iter().map(|message| match message {
        Message::User { text, .. } | Message::Notice { text } => tokens(text),
        Message::Assistant { text, calls, .. } => {
            let calls = calls
                .iter()
                .map(|call| tokens(&call.name) + tokens(&call.arguments));
            tokens(text) + calls.sum::<usize>()
        }
        Message::Result { text, .. } => tokens(text),
    });
    tokens(&request.instruction) + functions.sum::<usize>() + messages.sum::<usize>()
}

fn play(script: Vec<lango_core::ModelReply>, question: &str) -> PlayedTurn {
    Play::scripted(tree_with(Shape::Specialists, &SIX_AGENTS, &[], 3), script).run(question)
}

#[test]
fn instructions_stay_short() {
    let tree = tree_with(Shape::Specialists, &SIX_AGENTS, &[], 3);
    assert_eq!(tree.agents.len(), 6);
    let root = tokens(&tree.root.instruction);
    println!("instruction of {}: {root} tokens", tree.root.name);
    assert!(root < 1000, "{root}");
    for agent in &tree.agents {
        let own = tokens(&agent.instruction);
        println!("instruction of {}: {own} tokens", agent.name);
        assert!(own < 300, "{}: {own}", agent.name);
    }
}

#[test]
fn the_tokens_of_three_kinds_of_turns_are_printed() {
    let both = [
        (
            "delegate",
            json!({ "agent": "operator", "task": "list the files" }),
        ),
        (
            "delegate",
            json!({ "agent": "chronicler", "task": "remember that the editor is helix" }),
        ),
    ];
    let turns = [
        ("hello", play(vec![say("Hello!")], "hello"), 1),
        (
            "one tool",
            play(
                vec![
                    delegate_and_finish("operator", "list the files"),
                    call("fs_list", json!({})),
                    say("Two files."),
                ],
                "what files are here?",
            ),
            3,
        ),
        (
            "two agents",
            play(
                vec![
                    calls(both),
                    call("fs_list", json!({})),
                    say("Two files."),
                    call("memory_recall", json!({})),
                    say("Kept."),
                    say("Two files, and I will remember your editor."),
                ],
                "what files are here, and remember that my editor is helix",
            ),
            6,
        ),
    ];
    for (name, played, calls) in &turns {
        let sent: usize = played
            .requests
            .iter()
            .map(|(_, request)| tokens_of(request))
            .sum();
        println!(
            "{name}: {} model calls, {sent} tokens sent",
            played.counts().0
        );
        assert_eq!(played.counts().0, *calls);
        assert!(sent < 1600 * *calls as usize, "{name}: {sent}");
    }
}

#[test]
fn the_stable_part_of_a_request_stays_the_same_between_turns() {
    let first = play(vec![say("Hello!")], "hello");
    let second = play(vec![say("Bye!")], "something else");
    let stable = |played: &PlayedTurn| {
        let request = &played.requests[0].1;
        (
            request.instruction.clone(),
            serde_json::to_string(&request.functions).unwrap(),
        )
    };
    assert_eq!(stable(&first), stable(&second));
}
