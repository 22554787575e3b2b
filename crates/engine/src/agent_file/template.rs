//! The text of a new agent file: what must be there, and what may be, with a word on each.

use crate::topology::{AgentSpec, PrefixSpec};
use lango_core::AgentName;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# An agent of lango. Its name is that of the file. `lango agents` shows what comes of it.
";

/// What may be said, for somebody who begins.
const MAY_BE_SAID: &str = "\
# Tools whose names begin so are its own. Without any it has no tools, and is there for its words.
# prefixes: [search_, rag_]
# Words of requests that belong to it.
# keywords: [invoice, receipt]
# What a task for it holds, what its answer holds, what it must not be asked for.
# accepts: a question about an invoice
# returns: the answer, with the number of the invoice
# cannot: paying
# Whether it is there without tools too.
# always_include: true
# A model of its own, as provider/model.
# model: openai/gpt-6.1-terra
# How its model answers: a temperature from 0 to 2, an effort (none, minimal, low, medium, high), a limit of its replies.
# temperature: 0.2
# reasoning_effort: low
# max_output_tokens: 4000
# Whether it is told the project's AGENTS.md, if you trust that file.
# project_instructions: true
";

pub(super) fn template(name: &AgentName, spec: Option<&AgentSpec>) -> String {
    let Some(spec) = spec else {
        let role = quoted(&format!("Does the work of {name}"));
        return format!(
            "---\n{INTRODUCTION}# What it is for, in a sentence: others decide by it what to ask of it.\n\
             description: {role}\n{MAY_BE_SAID}---\nWrite here what {name} is to do, and how.\n"
        );
    };
    let mut text = format!("---\n{INTRODUCTION}description: {}\n", quoted(&spec.role));
    if !spec.prefixes.is_empty() {
        text.push_str("prefixes:\n");
    }
    for PrefixSpec { prefix, capability } in &spec.prefixes {
        let (prefix, capability) = (quoted(prefix), quoted(capability));
        let _ = writeln!(text, "  - {{ prefix: {prefix}, capability: {capability} }}");
    }
    if !spec.keywords.is_empty() {
        let keywords: Vec<String> = spec.keywords.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(text, "keywords: [{}]", keywords.join(", "));
    }
    for (field, value) in [
        ("accepts", &spec.accepts),
        ("returns", &spec.returns),
        ("cannot", &spec.cannot),
    ] {
        if !value.is_empty() {
            let _ = writeln!(text, "{field}: {}", quoted(value));
        }
    }
    let _ = writeln!(text, "always_include: {}", spec.always_include);
    if let Some(model) = &spec.model {
        let _ = writeln!(text, "model: {}", quoted(model));
    }
    if let Some(temperature) = spec.temperature {
        let _ = writeln!(text, "temperature: {temperature}");
    }
    if let Some(effort) = spec.reasoning_effort {
        let _ = writeln!(text, "reasoning_effort: {}", effort.word());
    }
    if let Some(tokens) = spec.max_output_tokens {
        let _ = writeln!(text, "max_output_tokens: {tokens}");
    }
    if spec.project_instructions {
        text.push_str("project_instructions: true\n");
    }
    let instruction = match spec.instruction.as_str() {
        "" => "Do what the task says, and no more.",
        words => words,
    };
    let _ = write!(text, "---\n{instruction}\n");
    text
}

/// A text between quotes, as YAML and JSON both read it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
