//! The agents as lists show them: their tools, where they come from, and which ones are missing.

use crate::app::App;
use crate::app::roster::Roster;
use lango_core::ModelSettings;
use lango_engine::{Agent, Tree};
use serde_json::{Value, json};

/// Returns the tree as JSON: the agents with their tools, and the unavailable ones with the reason.
pub fn as_json(tree: &Tree, app: &App) -> Value {
    let roster = &app.roster;
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
                "remote": agent.is_remote,
                "source": source_of(agent, roster),
                "model": model_of(agent, roster),
                "settings": settings_of(agent, app),
            })
        })
        .collect();
    let skipped: Vec<Value> = tree
        .skipped
        .iter()
        .map(|skipped| json!({ "name": skipped.name, "reason": skipped.reason }))
        .collect();
    json!({
        "mode": tree.mode.name(),
        "topology": tree.topology,
        "root": {
            "name": tree.root.name,
            "tools": tools(&tree.root),
            "settings": settings_of(&tree.root, app),
        },
        "agents": agents,
        "skipped": skipped,
        "unmatched": tree.unmatched,
    })
}

/// Returns where an agent comes from: its file, `built-in` or `remote`.
pub fn source_of(agent: &Agent, roster: &Roster) -> String {
    match roster.file_of(&agent.name) {
        _ if agent.is_remote => "remote".to_owned(),
        Some(path) => path.display().to_string(),
        None => "built-in".to_owned(),
    }
}

/// Returns the model that an agent's file specifies, if any.
pub fn model_of<'a>(agent: &Agent, roster: &'a Roster) -> Option<&'a String> {
    roster.spec_of(&agent.name)?.model.as_ref()
}

/// Returns an agent's model parameters: its own, completed by the general ones. A remote agent has none.
pub fn settings_of(agent: &Agent, app: &App) -> ModelSettings {
    let general = app.loaded.settings.agent.model_settings();
    if agent.is_remote {
        ModelSettings::default()
    } else {
        agent.settings.or(general)
    }
}

/// Lists the agents that are not in the tree, grouped by reason: `vault, librarian (no tools)`.
pub fn skipped_agents(tree: &Tree) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for skipped in &tree.skipped {
        let (name, reason) = (skipped.name.as_str(), skipped.reason.as_str());
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    let text = |(reason, names): (&str, Vec<&str>)| format!("{} ({reason})", names.join(", "));
    groups.into_iter().map(text).collect()
}
