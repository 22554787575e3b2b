//! `lango agents`: who is there, with which tools, who is not and why, and what each is told.

use crate::app::{App, build_tree};
use crate::args::AgentsArguments;
use crate::exit::{Exit, Failure};
use crate::screen;
use lango_core::{Effect, Risk, ToolName, ToolSpec};
use lango_engine::{Agent, Mode, Tree};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Runs the command.
pub fn agents(config: Vec<String>, arguments: AgentsArguments) -> Result<Exit, Failure> {
    let app = App::load(config)?;
    let tree = match &arguments.tools {
        Some(file) => Arc::new(build_tree(&app.loaded, read_tools(file)?)?),
        None => Arc::clone(&app.tree),
    };
    let text = match &arguments.instruction {
        Some(name) => instruction_of(&tree, name)?,
        None if arguments.json => format!("{:#}", as_json(&tree)),
        None => as_text(&tree),
    };
    screen::print(&text)?;
    Ok(Exit::Ok)
}

/// One entry of a tool list: a name, or a name with a description.
#[derive(Deserialize)]
#[serde(untagged)]
enum ListedTool {
    Name(String),
    Described {
        name: String,
        #[serde(default)]
        description: String,
    },
}

fn read_tools(file: &Path) -> Result<Vec<Arc<ToolSpec>>, Failure> {
    let text = match file.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(file),
    };
    let wrong = |detail: String| {
        Failure::new(
            Exit::Usage,
            format!(
                "the tool list `{}` cannot be read: {detail}",
                file.display()
            ),
        )
        .next(r#"give a JSON list such as ["fs_read", {"name": "search_web", "description": "…"}]"#)
    };
    let text = text.map_err(|error| wrong(error.to_string()))?;
    let listed: Vec<ListedTool> =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    Ok(listed
        .into_iter()
        .map(|tool| Arc::new(spec_of(tool)))
        .collect())
}

fn spec_of(tool: ListedTool) -> ToolSpec {
    let (name, description) = match tool {
        ListedTool::Name(name) => (name, String::new()),
        ListedTool::Described { name, description } => (name, description),
    };
    ToolSpec {
        name: ToolName::new(name),
        description: description.into(),
        parameters: Arc::new(json!({ "type": "object" })),
        effect: Effect::Effect,
        risk: Risk::Dangerous,
    }
}

fn instruction_of(tree: &Tree, name: &str) -> Result<String, Failure> {
    let names = || {
        let names = std::iter::once(&tree.root)
            .chain(&tree.agents)
            .map(|agent| agent.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let agent = tree.agent(name).ok_or_else(|| {
        Failure::new(
            Exit::Usage,
            format!("there is no agent `{name}`; the agents are: {}", names()),
        )
    })?;
    Ok(agent.instruction.to_string())
}

fn as_json(tree: &Tree) -> Value {
    let tools = |agent: &Agent| -> Vec<Value> {
        agent
            .tools
            .iter()
            .map(|tool| json!(tool.spec.name))
            .collect()
    };
    let agents: Vec<Value> = tree
        .agents
        .iter()
        .map(|agent| {
            json!({
                "name": agent.name,
                "description": agent.description,
                "capabilities": agent.capabilities,
                "tools": tools(agent),
                "remote": agent.remote,
            })
        })
        .collect();
    let skipped: Vec<Value> = tree
        .skipped
        .iter()
        .map(|skipped| json!({ "name": skipped.name, "reason": skipped.reason }))
        .collect();
    json!({
        "mode": tree.mode.word(),
        "topology": tree.topology,
        "root": { "name": tree.root.name, "tools": tools(&tree.root) },
        "agents": agents,
        "skipped": skipped,
        "unmatched": tree.unmatched,
    })
}

fn as_text(tree: &Tree) -> String {
    let mut text = match tree.mode {
        Mode::Multi => format!("{} ({} topology)\n", tree.root.name, tree.topology),
        Mode::Single => format!("{} (single agent)\n", tree.root.name),
    };
    if !tree.root.tools.is_empty() {
        let _ = writeln!(text, "  tools: {}", tool_names(&tree.root));
    }
    for (at, agent) in tree.agents.iter().enumerate() {
        let is_last = at + 1 == tree.agents.len();
        let (branch, rest) = if is_last {
            ("└─", "  ")
        } else {
            ("├─", "│ ")
        };
        let place = if agent.remote { " (remote)" } else { "" };
        let _ = writeln!(
            text,
            "{branch} {}{place}  {}",
            agent.name, agent.description
        );
        if !agent.tools.is_empty() {
            let _ = writeln!(text, "{rest}   tools: {}", tool_names(agent));
        }
    }
    for skipped in &tree.skipped {
        let _ = writeln!(text, "not here: {} ({})", skipped.name, skipped.reason);
    }
    if !tree.unmatched.is_empty() {
        let names: Vec<&str> = tree.unmatched.iter().map(|name| name.as_str()).collect();
        let _ = writeln!(
            text,
            "held by nobody, so they cannot run: {}",
            names.join(", ")
        );
    }
    text.truncate(text.trim_end().len());
    text
}

fn tool_names(agent: &Agent) -> String {
    agent
        .tools
        .iter()
        .map(|tool| tool.spec.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}
