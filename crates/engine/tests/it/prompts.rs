//! Every prompt that a tree can render: tidy, correct for its tree, without contradictions, short, and equal to its
//! snapshot.

use crate::trees::{
    ALL_TOOLS, CLASSIC, SPECIALISTS, UNKNOWN_TOOLS, built_in, classic_without_direct_tools,
    every_tree, first_request, occurrences, remotes, root_instruction, tree, with_remotes,
};
use lango_engine::{Tree, TreeSettings};
use lango_testkit::tool::specs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Returns every prompt of every tree, with a description of its origin and whether its agent has tools.
fn every_prompt() -> Vec<(String, Arc<Tree>, Arc<str>, bool)> {
    let singles = [
        Tree::single(specs(&[]), &TreeSettings::default()).unwrap(),
        Tree::single(specs(&ALL_TOOLS), &TreeSettings::default()).unwrap(),
    ];
    let singles = singles.into_iter().map(|tree| ("single".to_owned(), tree));
    let mut prompts = Vec::new();
    for (name, tree) in every_tree().into_iter().chain(singles) {
        let tree = Arc::new(tree);
        for agent in std::iter::once(&tree.root)
            .chain(&tree.agents)
            .filter(|agent| !agent.is_remote)
        {
            let label = format!("{} in {name}", agent.name);
            prompts.push((
                label,
                Arc::clone(&tree),
                Arc::clone(&agent.instruction),
                !agent.tools.is_empty(),
            ));
        }
    }
    prompts
}

#[test]
fn prompts_are_tidy() {
    for (label, _, prompt, _) in every_prompt() {
        assert!(
            !prompt.contains("{{") && !prompt.contains("}}"),
            "{label}\n{prompt}"
        );
        assert!(
            !prompt.contains("\n\n\n") && prompt.trim() == &*prompt,
            "{label}\n{prompt}"
        );
        assert!(
            prompt.lines().all(|line| line.trim_end() == line),
            "{label}\n{prompt}"
        );
        assert!(!prompt.is_empty(), "{label}");
    }
}

#[test]
fn prompts_name_only_agents_of_their_tree() {
    let known =
        SPECIALISTS
            .iter()
            .chain(&CLASSIC)
            .chain(&["lango-agent", "lango-orchestrator", "foreman"]);
    let known: Vec<&str> = known
        .chain(&["gardener", "poet", "helper", "weather-station", "almanac"])
        .copied()
        .collect();
    for (label, tree, prompt, _) in every_prompt() {
        for name in known.iter().filter(|name| occurrences(&prompt, name) > 0) {
            assert!(tree.agent(name).is_some(), "`{name}` for {label}\n{prompt}");
        }
    }
}

#[test]
fn prompts_do_not_contradict_themselves_about_tools() {
    let told_to_call = [
        "functions you are offered",
        "your tools",
        "you have tools",
        "tools of your own. direct",
    ];
    for (label, _, prompt, has_tools) in every_prompt() {
        let prompt = prompt.to_lowercase();
        let told_none = prompt.contains("no tools");
        let told_some = told_to_call.iter().any(|words| prompt.contains(words));
        assert_eq!(
            (told_none, told_some),
            (!has_tools, has_tools),
            "{label}\n{prompt}"
        );
    }
}

#[test]
fn prompt_files_are_tidy() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.ends_with('\n') && !text.ends_with("\n\n"),
            "{}",
            path.display()
        );
        assert!(
            text.lines().all(|line| line.trim_end() == line),
            "{}",
            path.display()
        );
        assert!(!text.contains("\n\n\n"), "{}", path.display());
        seen += 1;
    }
    assert!(seen > 10);
}

/// Estimates the tokens of a text, slightly above what a tokenizer with a large vocabulary counts: one for each symbol
/// and line end, one for a word of up to nine letters, and one for every further five letters.
fn tokens_at_most(text: &str) -> usize {
    let pieces = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: usize = pieces
        .map(|word| 1 + word.chars().count().saturating_sub(5) / 5)
        .sum();
    let signs = text
        .chars()
        .filter(|c| !c.is_alphanumeric() && *c != ' ')
        .count();
    words + signs
}

#[test]
fn instructions_are_short() {
    let all = with_remotes(
        &built_in("specialists"),
        &[ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat(),
        vec![],
    );
    let orchestrator = tokens_at_most(&all.root.instruction);
    assert!(orchestrator < 1000, "{orchestrator}");
    for agent in &all.agents {
        let tokens = tokens_at_most(&agent.instruction);
        assert!(tokens < 300, "{}: {tokens}", agent.name);
    }
}

#[test]
fn instructions_match_their_snapshots() {
    let everything = [ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat();
    let orchestrators = [
        ("specialists_with_all_six", tree("specialists", &ALL_TOOLS)),
        (
            "specialists_with_files_only",
            tree("specialists", &["fs_read", "fs_list"]),
        ),
        ("classic_with_tools", tree("classic", &ALL_TOOLS)),
        ("classic_with_none", tree("classic", &[])),
        (
            "classic_without_direct_tools",
            classic_without_direct_tools(&ALL_TOOLS),
        ),
        (
            "specialists_with_remotes_and_unmatched",
            with_remotes(&built_in("specialists"), &everything, remotes()),
        ),
    ];
    for (name, tree) in orchestrators {
        insta::assert_snapshot!(format!("orchestrator_of_{name}"), root_instruction(tree));
    }
    let single = [("with_tools", &ALL_TOOLS[..]), ("without_tools", &[])];
    for (name, tools) in single {
        insta::assert_snapshot!(
            format!("single_agent_{name}"),
            root_instruction(Tree::single(specs(tools), &TreeSettings::default()).unwrap())
        );
    }
}

#[test]
fn instructions_of_sub_agents_match_their_snapshots() {
    for topology in ["specialists", "classic"] {
        for agent in &tree(topology, &[ALL_TOOLS.as_slice(), &UNKNOWN_TOOLS].concat()).agents {
            insta::assert_snapshot!(format!("{topology}_{}", agent.name), agent.instruction);
        }
    }
}

#[test]
fn the_delegate_function_matches_its_snapshot() {
    let request = first_request(with_remotes(
        &built_in("specialists"),
        &ALL_TOOLS,
        remotes(),
    ));
    let delegate = sorted(serde_json::to_value(&request.functions[0]).unwrap());
    insta::assert_snapshot!(
        "delegate_function",
        serde_json::to_string_pretty(&delegate).unwrap()
    );
}

/// Sorts the keys of JSON, independent of how serde_json was built.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields: BTreeMap<String, Value> = map
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            Value::Object(fields.into_iter().collect())
        }
        other => other,
    }
}
