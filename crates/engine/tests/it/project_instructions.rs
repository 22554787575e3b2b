//! Project instructions in the tree: which agents get them, their trust label, and the rendered prompts.

use crate::support::{Play, Shape, tree};
use crate::trees::{ALL_TOOLS, built_in};
use lango_core::{Message, Trust, TurnEnvironment, TurnSettings};
use lango_engine::{ProjectInstructions, Topology, Tree, TreeSettings};
use lango_testkit::model::say;
use lango_testkit::tool::specs;
use serde_json::json;
use std::sync::Arc;

fn settings() -> TreeSettings {
    TreeSettings {
        project_instructions: Some(ProjectInstructions {
            text: "# Style\n\nUse tabs. {{name}} stays as it is.\n".into(),
            trust: Trust::Untrusted,
        }),
        ..TreeSettings::default()
    }
}

fn trees(topology: &Topology) -> [Tree; 2] {
    [TreeSettings::default(), settings()]
        .map(|settings| Tree::multi(topology, specs(&ALL_TOOLS), Vec::new(), &settings).unwrap())
}

#[test]
fn only_agents_with_the_field_get_the_instructions_and_their_label() {
    for (name, instructed) in [
        ("specialists", ["operator", "planner"]),
        ("classic", ["executor", "planner"]),
    ] {
        let [without, with] = trees(&built_in(name));
        assert_ne!(without.digest, with.digest);
        assert_eq!(without.root.instruction, with.root.instruction);
        assert_eq!(without.root.trust, with.root.trust);
        for (before, agent) in without.agents.iter().zip(&with.agents) {
            let is_told = instructed.contains(&agent.name.as_str());
            assert_eq!(agent.instruction.contains("Use tabs."), is_told);
            assert!(!before.instruction.contains("AGENTS.md"));
            let label = if is_told {
                Trust::Untrusted
            } else {
                before.trust
            };
            assert_eq!(agent.trust, label, "{}", agent.name);
        }
    }
    let single = Tree::single(specs(&ALL_TOOLS), &settings()).unwrap();
    assert!(single.root.instruction.contains("Use tabs."));
    assert_eq!(single.root.trust, Trust::Untrusted);
}

#[test]
fn instructions_with_project_instructions_match_their_snapshots() {
    let [_, with] = trees(&built_in("specialists"));
    let operator = &with.sub_agent("operator").unwrap().instruction;
    insta::assert_snapshot!("operator_with_project", operator);
    let single = Tree::single(specs(&ALL_TOOLS), &settings()).unwrap();
    insta::assert_snapshot!("single_agent_with_project", single.root.instruction);
}

#[test]
fn everything_below_a_question_matches_its_snapshot() {
    let settings = TurnSettings {
        folder: Some("/work".into()),
        memory: Some("<memory>\nlikes rum\n</memory>".into()),
        environment: Some(TurnEnvironment {
            date: "Monday, 2026-11-16".into(),
            utc_offset: "UTC+01:00".into(),
            os: "Linux".into(),
        }),
        answer_schema: Some(Arc::new(json!({ "required": ["n"] }))),
        ..TurnSettings::default()
    };
    let replies = vec![say("{}"), say(r#"{"n": 1}"#)];
    let played = Play::scripted(tree(Shape::Specialists), replies)
        .settings(settings)
        .run("how many?");
    let sent = played.requests[1]
        .1
        .messages
        .iter()
        .map(|message| match message {
            Message::User { text, .. } => format!("[user]\n{text}"),
            Message::Assistant { text, .. } => format!("[assistant]\n{text}"),
            Message::Notice { text } => format!("[notice]\n{text}"),
            Message::Result { text, .. } => format!("[result]\n{text}"),
        });
    let sent: Vec<String> = sent.collect();
    insta::assert_snapshot!("question_with_all_below_it", sent.join("\n\n"));
}
