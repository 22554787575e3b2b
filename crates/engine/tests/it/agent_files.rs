//! Agents as markdown files: parsing, error messages, and their position in a topology.

use lango_core::{AgentName, ReasoningEffort, ToolSpec};
use lango_engine::{
    AgentFile, AgentSpec, GENERAL_ACTIONS, PrefixSpec, Topology, Tree, TreeSettings, partition,
};
use lango_testkit::tool::specs;
use proptest::prelude::*;
use std::sync::Arc;

fn parse(stem: &str, text: &str) -> AgentFile {
    AgentFile::parse(stem, text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Returns the problems of a file, each as `line: detail`.
fn problems(stem: &str, bytes: impl AsRef<[u8]>) -> Vec<String> {
    let problems = AgentFile::parse(stem, bytes.as_ref()).unwrap_err();
    let shown = problems.iter().map(|p| format!("{}: {}", p.line, p.detail));
    shown.collect()
}

fn prefix(prefix: &str, capability: &str) -> PrefixSpec {
    PrefixSpec {
        prefix: prefix.to_owned(),
        capability: capability.to_owned(),
    }
}

const RESEARCHER: &str = "\
---
name: researcher
description: >
  Looks things up
  with care.
prefixes:
  - search_web
  - { prefix: news_, capability: news reading }
  - odd_
keywords: [news, \"look: up\"]
accepts: a question
returns: an answer with its source
cannot: anything else
model: openai/gpt-5-mini
temperature: 0.2
reasoning_effort: low
max_output_tokens: 4000
project_instructions: true
---

# How

Name *every* source.
";

#[test]
fn t15_a_file_can_set_every_field_of_a_spec() {
    let file = parse("researcher", RESEARCHER);
    assert_eq!((file.name_line, file.model_line), (2, Some(14)));
    let expected = AgentSpec {
        name: AgentName::from("researcher"),
        role: "Looks things up with care".to_owned(),
        prefixes: vec![
            prefix("search_web", "information search"),
            prefix("news_", "news reading"),
            prefix("odd_", GENERAL_ACTIONS),
        ],
        keywords: vec!["news".to_owned(), "look: up".to_owned()],
        accepts: "a question".to_owned(),
        returns: "an answer with its source".to_owned(),
        cannot: "anything else".to_owned(),
        always_include: false,
        instruction: "# How\n\nName *every* source.".to_owned(),
        model: Some("openai/gpt-5-mini".to_owned()),
        temperature: Some(0.2),
        reasoning_effort: Some(ReasoningEffort::Low),
        max_output_tokens: Some(4000),
        project_instructions: true,
        trust: lango_core::Trust::Trusted,
    };
    assert_eq!(file.spec, expected);
}

#[test]
fn t15_a_file_needs_only_a_description() {
    let file = parse(
        "poet",
        "---\r\ndescription: Writes verse.\r\n---\r\nRhyme.\r\n",
    );
    assert_eq!(file.spec.role, "Writes verse");
    assert_eq!(file.spec.instruction, "Rhyme.");
    assert!(
        file.spec.always_include,
        "without prefixes it is there for its words"
    );
    assert_eq!((file.name_line, file.model_line), (1, None));
    let file = parse("clerk", "---\ndescription: Files\nprefixes: [fs_]\n---");
    assert!(
        !file.spec.always_include,
        "with prefixes it is there for its tools"
    );
    let never = "---\ndescription: Verse\nalways_include: false\n---\nRhyme.";
    assert!(!parse("poet", never).spec.always_include);
}

#[test]
fn t15_fields_that_a_file_omits_are_omitted_from_the_instructions() {
    let poet = parse("poet", "---\ndescription: Writes verse\n---\nRhyme always.").spec;
    let topology = Topology::built_in("specialists").unwrap();
    let tree = tree(&topology.with_agents(vec![poet]).unwrap(), &["fs_read"]);
    let own = &tree.sub_agent("poet").unwrap().instruction;
    assert!(own.contains("Writes verse.\n\nThe first message"), "{own}");
    assert!(own.ends_with("\nRhyme always."), "{own}");
    let root = &tree.root.instruction;
    let entry = root.split("### ").find(|entry| entry.starts_with("poet"));
    let entry = entry.unwrap_or_else(|| panic!("no poet in {root}"));
    let fields: Vec<&str> = entry
        .lines()
        .filter(|line| line.starts_with("- "))
        .collect();
    assert_eq!(fields, ["- role: Writes verse"], "{entry}");
}

#[test]
fn t16_each_problem_has_its_line_its_field_and_a_fix() {
    let with = |lines: &str| format!("---\ndescription: Does it\n{lines}\n---\nWords.\n");
    for (text, expected) in [
        (
            with("keyword: [a]"),
            "3: unknown field `keyword`; did you mean `keywords`?",
        ),
        (
            with("Always-Include: true"),
            "3: unknown field `Always-Include`; did you mean `always_include`?",
        ),
        (
            with("colour: red"),
            "3: unknown field `colour`; the fields are name, description, prefixes, keywords, accepts, returns, cannot, always_include, model, temperature, reasoning_effort, max_output_tokens, project_instructions",
        ),
        (
            with("temperature: warm"),
            "3: `temperature` must be a number from 0 to 2, found `warm`",
        ),
        (
            with("temperature: 2.5"),
            "3: `temperature` is 2.5; it must be from 0 to 2",
        ),
        (
            with("max_output_tokens: 0"),
            "3: `max_output_tokens` is 0; it must be from 1 to 1000000",
        ),
        (
            with("max_output_tokens: 1e3"),
            "3: `max_output_tokens` must be a whole number from 1 to 1000000, found `1e3`",
        ),
        (
            with("reasoning_effort: huge"),
            "3: `reasoning_effort` must be `none`, `minimal`, `low`, `medium` or `high`, found `huge`",
        ),
        (
            with("reasoning_effort: [low]"),
            "3: `reasoning_effort` must be `none`, `minimal`, `low`, `medium` or `high`, found a list",
        ),
        (
            with("keywords: a, b"),
            "3: `keywords` must be a list, such as `[invoice, receipt]`, found a text",
        ),
        (
            with("keywords:\n  - a\n  - [b]"),
            "5: `keywords` must be a text, found a list",
        ),
        (
            with("prefixes: fs_"),
            "3: `prefixes` must be a list, such as `[search_, rag_]`, found a text",
        ),
        (
            with("prefixes:\n  - fs_*"),
            "4: `fs_*` in `prefixes` cannot be the start of a tool's name: use letters, digits, `-`, `_` and `.`, and no `*`",
        ),
        (
            with("prefixes: ['']"),
            "3: `` in `prefixes` cannot be the start of a tool's name: use letters, digits, `-`, `_` and `.`, and no `*`",
        ),
        (
            with("prefixes:\n  - { prefx: fs_ }"),
            "4: `prefixes` has an unknown field `prefx`; did you mean `prefix`?",
        ),
        (
            with("prefixes:\n  - { capability: x }"),
            "4: one of `prefixes` has no `prefix`; write `{ prefix: search_, capability: … }`",
        ),
        (
            with("prefixes:\n  - { prefix: a_, prefix: b_ }"),
            "4: `prefix` occurs twice in one of `prefixes`; remove one",
        ),
        (
            with("always_include: yes"),
            "3: `always_include` must be `true` or `false`, found `yes`",
        ),
        (
            with("always_include: 'true'"),
            "3: `always_include` must be `true` or `false`, found the text `\"true\"`",
        ),
        (
            with("always_include: [true]"),
            "3: `always_include` must be `true` or `false`, found a list",
        ),
        (
            with("accepts: { a: b }"),
            "3: `accepts` must be a text, found a map",
        ),
        (
            with("model:"),
            "3: `model` must be a provider and a model, such as `openai/gpt-6.1-terra`, found ``",
        ),
        (
            with("cannot: a\n\ncannot: b"),
            "5: the field `cannot` occurs twice, first in line 3; remove one",
        ),
        (
            with("name: other"),
            "3: `name` is `other`, but the file is `agent.md`; make them the same, or leave `name` out",
        ),
        (
            with(&format!("accepts: {}", "x".repeat(1025))),
            "3: `accepts` has 1025 characters; at most 1024 are allowed; put more into the body",
        ),
        (
            with(&format!("keywords: [{}]", "x, ".repeat(65))),
            "3: `keywords` has 65 items; at most 64 are allowed",
        ),
        (
            "---\nname: agent\n---\nWords.".to_owned(),
            "1: the field `description` is missing; say in a sentence what the agent is for",
        ),
        (
            "---\ndescription: .\n---\nWords.".to_owned(),
            "2: `description` is empty; say in a sentence what the agent is for",
        ),
        (
            "---\ndescription: [x]\n---\nWords.".to_owned(),
            "2: `description` must be a text, found a list",
        ),
        (
            "---\ndescription: Does it\n---\n\n".to_owned(),
            "4: there are neither `prefixes` nor an instruction below the front matter; write there what the agent should do, or give it tools",
        ),
        (
            "# Agent\n".to_owned(),
            "1: it does not start with a `---` line; put the front matter there",
        ),
        (
            String::new(),
            "1: it does not start with a `---` line; put the front matter there",
        ),
        (
            "---\ndescription: x\n".to_owned(),
            "1: its front matter is not closed by a `---` line within 64 KiB",
        ),
        (
            "---\nname: agent\ndescription: a: b\n---\n".to_owned(),
            "3: its front matter is not YAML: mapping values are not allowed in this context; quote a text that contains a colon",
        ),
        (
            "---\njust words\n---\n".to_owned(),
            "2: its front matter is not a list of fields `name: text`",
        ),
        (
            with("accepts: &a b"),
            "3: its front matter has an anchor (`&name`); quote a text that starts like this",
        ),
    ] {
        assert_eq!(problems("agent", &text), [expected], "{text}");
    }
    let bytes = b"---\ndescription: \xff\n---\n";
    let expected = "2: it is not UTF-8 text: byte 18 of the file is wrong; save it as UTF-8";
    assert_eq!(problems("agent", bytes), [expected]);
    let large = with("") + &"x".repeat(64 * 1024);
    assert!(problems("agent", large)[0].starts_with("1: the file is larger than 64 KiB; "));
}

#[test]
fn t16_all_problems_are_reported_together_from_top_to_bottom() {
    let text = "---\nalways_include: perhaps\nkeyword: x\nprefixes: [a_, {}]\nmodel: a b\n---\n";
    let lines: Vec<String> = problems("two words", text);
    let starts = [
        "1: `two words` cannot be an agent's name: use up to 64 letters, digits, `-` and `_`; rename the file",
        "1: the field `description` is missing",
        "2: `always_include`",
        "3: unknown field `keyword`",
        "4: one of `prefixes` has no `prefix`",
        "5: `model`",
    ];
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
    let of_user = "---\ndescription: x\n---\nWords.";
    let expected =
        "1: `user` is reserved for the user; choose another name for the agent; rename the file";
    assert_eq!(problems("user", of_user), [expected]);
}

fn tree(topology: &Topology, tools: &[&str]) -> Tree {
    let tools: Vec<Arc<ToolSpec>> = specs(tools);
    Tree::multi(topology, tools, Vec::new(), &TreeSettings::default()).unwrap()
}

fn names(topology: &Topology) -> Vec<&str> {
    let agents = topology.agents.iter();
    agents.map(|spec| spec.name.as_str()).collect()
}

#[test]
fn t15_a_new_agent_comes_last_but_its_prefixes_are_matched_before_the_built_in_ones() {
    let text = |prefix: &str| format!("---\ndescription: x\nprefixes: [{prefix}]\n---\n");
    let one = parse("one", &text("search_, fs_re")).spec;
    let two = parse("two", &text("search_web, fs_")).spec;
    let topology = Topology::built_in("specialists").unwrap();
    let topology = topology.with_agents(vec![one, two]).unwrap();
    assert_eq!(names(&topology)[6..], ["one", "two"]);
    let tools = ["search_web", "fs_read", "fs_list", "rag_find", "exec"];
    let parts = partition(&topology, tools);
    // Only the order decides; the longer prefix of a later agent does not win.
    assert_eq!(parts.of("one"), ["search_web", "fs_read"]);
    assert_eq!(parts.of("two"), ["fs_list"]);
    assert_eq!(parts.of("librarian"), ["rag_find"]);
    assert_eq!(parts.of("operator"), ["exec"]);
}

#[test]
fn t15_an_agent_with_a_built_in_name_replaces_the_built_in_one_completely() {
    let text = "---\ndescription: Only reads\nprefixes: [fs_re]\n---\nRead.";
    for name in Topology::BUILT_IN {
        let built_in = Topology::built_in(name).unwrap();
        let old = built_in.agents[0].name.clone();
        let spec = parse(old.as_str(), text).spec;
        let topology = built_in.clone().with_agents(vec![spec.clone()]).unwrap();
        assert_eq!(names(&topology), names(&built_in));
        assert_eq!(topology.agents[0], spec);
        assert_eq!(topology.agents[1..], built_in.agents[1..]);
        assert_eq!(
            partition(&topology, ["fs_read"]).of(old.as_str()),
            ["fs_read"]
        );
    }
}

#[test]
fn an_agent_cannot_have_the_name_of_the_root() {
    let text = "---\ndescription: x\n---\nWords.";
    let spec = parse("lango-orchestrator", text).spec;
    let topology = Topology::built_in("specialists").unwrap();
    let error = topology.with_agents(vec![spec]).unwrap_err().to_string();
    assert!(
        error.contains("`lango-orchestrator` is used twice"),
        "{error}"
    );
}

#[test]
fn t19_agent_files_form_a_topology_and_a_head_sets_the_rest() {
    let clerk = || parse("clerk", "---\ndescription: Files\nprefixes: [fs_]\n---\n").spec;
    let poet = || parse("poet", "---\ndescription: Verse\n---\nRhyme.").spec;
    let make =
        |head| Topology::of_agents(head, "team/topology.toml", "team", vec![clerk(), poet()]);
    let topology = make(None).unwrap();
    assert_eq!(
        (topology.name.as_str(), topology.root.as_str()),
        ("team", "lango-orchestrator")
    );
    assert_eq!(names(&topology), ["clerk", "poet"]);
    let head =
        "root = 'boss'\nunmatched = 'poet'\nrules = ['Be kind.']\norchestrator_tools = 'all'\n";
    let tree = tree(&make(Some(head)).unwrap(), &["fs_read", "odd"]);
    assert_eq!(tree.root.name, "boss");
    assert_eq!(tree.root.tools.len(), 2);
    assert!(tree.root.instruction.contains("Be kind."));
    assert_eq!(tree.owner_of("odd").unwrap().name, "poet");
    for (head, part) in [
        ("rot = 'x'", "unknown field `rot`"),
        ("[[agents]]\nname = 'x'", "unknown field `agents`"),
        (
            "unmatched = 'nobody'",
            "`nobody` in `match_order` or `unmatched` is not one of the agents",
        ),
        ("root = 'poet'", "the name `poet` is used twice"),
    ] {
        let error = make(Some(head)).unwrap_err().to_string();
        assert!(
            error.contains("team/topology.toml") && error.contains(part),
            "{error}"
        );
    }
}

#[test]
fn a_template_parses_to_the_agent_it_was_created_from() {
    for name in Topology::BUILT_IN {
        for spec in Topology::built_in(name).unwrap().agents {
            let read = parse(
                spec.name.as_str(),
                &AgentFile::template(&spec.name, Some(&spec)),
            )
            .spec;
            assert_eq!(
                AgentSpec {
                    instruction: String::new(),
                    ..read
                },
                spec
            );
        }
    }
    let researcher = parse("researcher", RESEARCHER).spec;
    let text = AgentFile::template(&researcher.name, Some(&researcher));
    assert_eq!(parse("researcher", &text).spec, researcher);
    let new = AgentFile::template(&AgentName::from("poet"), None);
    assert!(parse("poet", &new).spec.always_include, "{new}");
    // The commented-out fields are valid, too.
    let fields: String = new
        .split_inclusive('\n')
        .map(|line| match line.strip_prefix("# ") {
            Some(field)
                if field
                    .split(':')
                    .next()
                    .is_some_and(|name| !name.contains(' ')) =>
            {
                field
            }
            _ => line,
        })
        .collect();
    let spec = parse("poet", &fields).spec;
    assert_eq!(
        (spec.prefixes.len(), spec.keywords.len()),
        (2, 2),
        "{fields}"
    );
    assert!(spec.model.is_some() && !spec.cannot.is_empty(), "{fields}");
}

#[test]
fn the_example_in_the_documentation_is_a_valid_agent() {
    let page = include_str!("../../../../docs/topology.md");
    let (_, example) = page.split_once("```markdown\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let spec = parse("researcher", example).spec;
    assert_eq!(spec.role, "Looks things up and names its sources");
    assert_eq!(spec.prefixes.len(), 2);
    assert_eq!(spec.model.as_deref(), Some("openai/gpt-6.1-terra"));
    assert!(!spec.cannot.is_empty() && spec.instruction.starts_with("Look in"));
}

proptest! {
    #[test]
    fn t16_no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = AgentFile::parse("agent", &bytes);
        let inside = [b"---\n", &bytes[..], b"\n---\nWords."].concat();
        let _ = AgentFile::parse("agent", &inside);
    }

    #[test]
    fn t16_no_mixture_of_fields_makes_the_parser_panic(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "description", "name", "prefixes", "keywords", "always_include", "model", "prefix", ": ", ":", "\n",
                "- ", "[", "]", "{", "}", ",", "'", "\"", "true", "fs_", "  ", "|", ">", "é", "\u{0}", "---\n", "~",
            ]),
            0..30,
        ),
        stem in "\\PC{0,70}",
    ) {
        let text = format!("---\n{}\n---\nWords.", parts.concat());
        let last = text.lines().count();
        match AgentFile::parse(&stem, text.as_bytes()) {
            Ok(file) => {
                prop_assert!(!file.spec.role.is_empty() && !file.spec.role.contains('\n'));
                let topology = Topology::of_agents(None, "x", "x", vec![file.spec]);
                prop_assert!(topology.is_ok(), "{:?}", topology);
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    prop_assert!((1..=last + 1).contains(&problem.line), "{problem:?} in {text}");
                }
            }
        }
    }
}
