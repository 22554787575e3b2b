//! The text of a new agent file: the required and the optional fields, each with an explanation.

use crate::topology::{AgentSpec, PrefixSpec};
use lango_core::AgentName;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# An agent of lango, named after this file. `lango agents` shows the result.
";

/// The optional fields, commented out.
const OPTIONAL_FIELDS: &str = "\
# The agent owns all tools whose names start with one of these. Without prefixes it has no tools and only writes text.
# prefixes: [search_, rag_]
# Keywords of requests that belong to it.
# keywords: [invoice, receipt]
# What a task for it contains, what its answer contains, and what it cannot do.
# accepts: a question about an invoice
# returns: the answer, with the number of the invoice
# cannot: paying
# Whether it exists even without tools.
# always_include: true
# Its own model, as provider/model.
# model: openai/gpt-6.1-terra
# Model settings: temperature (0 to 2), reasoning effort (none, minimal, low, medium, high), limit on the reply.
# temperature: 0.2
# reasoning_effort: low
# max_output_tokens: 4000
# Whether its instruction includes the project's AGENTS.md, if you trust that file.
# project_instructions: true
";

pub(super) fn template(name: &AgentName, spec: Option<&AgentSpec>) -> String {
    let Some(spec) = spec else {
        let role = quoted(&format!("Does the work of {name}"));
        return format!(
            "---\n{INTRODUCTION}# What the agent is for, in one sentence. The orchestrator chooses agents by it.\n\
             description: {role}\n{OPTIONAL_FIELDS}---\nWrite here what {name} should do, and how.\n"
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
        let _ = writeln!(text, "reasoning_effort: {}", effort.name());
    }
    if let Some(tokens) = spec.max_output_tokens {
        let _ = writeln!(text, "max_output_tokens: {tokens}");
    }
    if spec.project_instructions {
        text.push_str("project_instructions: true\n");
    }
    let instruction = match spec.instruction.as_str() {
        "" => "Do what the task says, and no more.",
        instruction => instruction,
    };
    let _ = write!(text, "---\n{instruction}\n");
    text
}

/// Quotes a text so that both YAML and JSON can parse it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
