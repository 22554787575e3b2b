//! The prompts. Each is a file under `prompts/` and one typed function here. All prose for models comes from here,
//! except for the short error results of single calls.

use crate::template::fill;
use crate::topology::{AgentSpec, Topology};
use crate::tree::RemoteCard;
use lango_core::{
    AgentName, Attachment, Function, PermissionMode, Text, TurnEnvironment, UndoneChanges,
};
use serde_json::Value;

/// The name of the function that delegates a task to an agent.
pub const DELEGATE: &str = "delegate";

/// The parts of the orchestrator's instruction.
pub(crate) struct OrchestratorPrompt<'a> {
    pub topology: &'a Topology,
    /// The local agents of the tree with their capabilities.
    pub agents: &'a [(&'a AgentSpec, &'a [Text])],
    pub remotes: &'a [RemoteCard],
    pub has_tools: bool,
    pub has_unmatched: bool,
    pub rounds: u32,
}

pub(crate) fn orchestrator(prompt: &OrchestratorPrompt<'_>) -> Text {
    let entries: Vec<String> = prompt
        .agents
        .iter()
        .map(|(spec, capabilities)| routing_entry(spec, capabilities))
        .collect();
    let remotes: Vec<String> = prompt.remotes.iter().map(remote_entry).collect();
    let local_names = prompt.agents.iter().map(|(spec, _)| spec.name.as_str());
    let names: Vec<&str> = local_names
        .chain(prompt.remotes.iter().map(|card| card.name.as_str()))
        .collect();
    fill(
        include_str!("../prompts/orchestrator.md"),
        &[
            ("name", prompt.topology.root.as_str()),
            ("direct", flag(prompt.has_tools)),
            ("agents", &entries.concat()),
            ("remotes", &remotes.concat()),
            ("rounds", &prompt.rounds.to_string()),
            ("unmatched", flag(prompt.has_unmatched)),
            ("names", &names.join(", ")),
            ("rules", &prompt.topology.rules.join("\n")),
        ],
    )
    .trim_end()
    .into()
}

fn routing_entry(spec: &AgentSpec, capabilities: &[Text]) -> String {
    fill(
        include_str!("../prompts/routing_entry.md"),
        &[
            ("name", spec.name.as_str()),
            ("role", &spec.role),
            ("keywords", &spec.keywords.join(", ")),
            ("capabilities", &capabilities.join(", ")),
            ("accepts", &spec.accepts),
            ("returns", &spec.returns),
            ("cannot", &spec.cannot),
        ],
    )
}

fn remote_entry(card: &RemoteCard) -> String {
    // The description of a remote agent is untrusted. It stays on one line, so it cannot imitate another entry.
    let description = card
        .description
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    fill(
        include_str!("../prompts/remote_entry.md"),
        &[("name", card.name.as_str()), ("description", &description)],
    )
}

/// Renders the instruction of a sub-agent. `project` is the text of the project instructions, or empty.
pub(crate) fn sub_agent(
    spec: &AgentSpec,
    capabilities: &[Text],
    has_tools: bool,
    project: &str,
) -> Text {
    fill(
        include_str!("../prompts/agent.md"),
        &[
            ("name", spec.name.as_str()),
            ("role", &spec.role),
            ("capabilities", &capabilities.join(", ")),
            ("accepts", &spec.accepts),
            ("returns", &spec.returns),
            ("cannot", &spec.cannot),
            ("tools", flag(has_tools)),
            ("instruction", spec.instruction.trim()),
            ("project", project.trim()),
        ],
    )
    .trim_end()
    .into()
}

pub(crate) fn single_agent(name: &AgentName, has_tools: bool, project: &str) -> Text {
    fill(
        include_str!("../prompts/single.md"),
        &[
            ("name", name.as_str()),
            ("tools", flag(has_tools)),
            ("project", project.trim()),
        ],
    )
    .trim_end()
    .into()
}

/// The parts of the message with the user's question. Everything that changes from turn to turn comes after the
/// question, so that what precedes it stays the same for the provider's cache.
#[derive(Default)]
pub(crate) struct QuestionPrompt<'a> {
    pub question: &'a str,
    pub memory: &'a str,
    pub environment: &'a str,
    /// The JSON schema of the answer, or empty.
    pub schema: &'a str,
    /// Whether the root has agents to delegate to.
    pub delegates: bool,
}

pub(crate) fn question(prompt: &QuestionPrompt<'_>) -> Text {
    fill(
        include_str!("../prompts/question.md"),
        &[
            ("question", prompt.question),
            ("memory", prompt.memory),
            ("environment", prompt.environment),
            ("schema", prompt.schema),
            ("delegates", flag(prompt.delegates)),
        ],
    )
    .trim_end()
    .into()
}

/// Renders the date and the machine in three lines, and a sentence about the permission mode if it forbids changes.
/// Returns `None` if there is nothing to say.
pub(crate) fn environment(
    environment: Option<&TurnEnvironment>,
    folder: &str,
    mode: PermissionMode,
) -> Option<Text> {
    let machine = environment.map(|environment| machine(environment, folder));
    let mode = match mode {
        PermissionMode::Ask | PermissionMode::AcceptEdits => None,
        PermissionMode::ReadOnly => Some(include_str!("../prompts/read_only_mode.md")),
        PermissionMode::Plan => Some(include_str!("../prompts/plan_mode.md")),
    };
    match (machine, mode.map(str::trim_end)) {
        (machine, None) => machine,
        (None, Some(mode)) => Some(mode.into()),
        (Some(machine), Some(mode)) => Some(format!("{machine}\n{mode}").into()),
    }
}

/// Renders the date and the machine. An empty folder is left out.
fn machine(environment: &TurnEnvironment, folder: &str) -> Text {
    /// The maximum number of characters of the folder.
    const MAX_CHARS: usize = 300;
    let is_plain = |c: char| if c.is_control() { ' ' } else { c };
    let folder: String = folder.chars().take(MAX_CHARS).map(is_plain).collect();
    fill(
        include_str!("../prompts/environment.md"),
        &[
            ("date", &environment.date),
            ("utc_offset", &environment.utc_offset),
            ("os", &environment.os),
            ("folder", &folder),
        ],
    )
    .trim_end()
    .into()
}

/// Renders the notice about an answer that does not match the schema.
pub(crate) fn invalid_answer(problem: &str) -> Text {
    fill(
        include_str!("../prompts/invalid_answer.md"),
        &[("problem", problem)],
    )
    .trim_end()
    .into()
}

/// Renders a remote agent's answer for the orchestrator: marked as untrusted data, and as a question if `asks`.
pub(crate) fn from_outside(agent: &AgentName, text: &str, asks: bool) -> Text {
    fill(
        include_str!("../prompts/from_outside.md"),
        &[
            ("agent", agent.as_str()),
            ("text", text),
            ("asks", flag(asks)),
        ],
    )
    .trim_end()
    .into()
}

/// Renders the notice that the user undid the changes of an earlier turn. The paths are JSON, so no path can imitate the
/// end of the data.
pub(crate) fn undone(changes: &UndoneChanges) -> Text {
    /// The maximum number of paths, and of characters of each.
    const MAX_PATHS: usize = 20;
    const MAX_CHARS: usize = 200;
    let short = |path: &Text| path.chars().take(MAX_CHARS).collect::<String>();
    let shown: Vec<String> = changes.restored.iter().take(MAX_PATHS).map(short).collect();
    let more = match changes.restored.len() - shown.len() {
        0 => String::new(),
        more => more.to_string(),
    };
    fill(
        include_str!("../prompts/undone.md"),
        &[("paths", &Value::from(shown).to_string()), ("more", &more)],
    )
    .trim_end()
    .into()
}

/// Renders the first message of a sub-agent.
pub(crate) fn brief(conversation: &str, environment: &str, task: &str) -> Text {
    fill(
        include_str!("../prompts/brief.md"),
        &[
            ("conversation", conversation),
            ("environment", environment),
            ("task", task),
        ],
    )
    .trim_end()
    .into()
}

/// Appends the names of the attached files to a text. A delegation refers to files by these names.
pub(crate) fn attached(text: &Text, attachments: &[Attachment]) -> Text {
    if attachments.is_empty() {
        return Text::clone(text);
    }
    let names = attachments.iter().map(|file| format!("`{}`", file.name));
    let names: Vec<String> = names.collect();
    fill(
        include_str!("../prompts/attached.md"),
        &[("text", text), ("names", &names.join(", "))],
    )
    .trim()
    .into()
}

/// Adds the argument for attachments to the `delegate` function. It accepts only these files.
pub(crate) fn with_attachments<'a>(
    function: Function,
    attachments: impl Iterator<Item = &'a Attachment>,
) -> Function {
    let mut argument: Value =
        serde_json::from_str(include_str!("../prompts/delegate_attachments.json"))
            .unwrap_or_default();
    let names: Vec<Value> = attachments
        .map(|attachment| Value::from(&*attachment.name))
        .collect();
    argument["items"]["enum"] = Value::from(names);
    let mut parameters = Value::clone(&function.parameters);
    parameters["properties"]["attachments"] = argument;
    Function {
        parameters: parameters.into(),
        ..function
    }
}

/// Whether a delegation may send the sub-agent's answer straight to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Offered,
    Withheld,
}

/// Builds the `delegate` function for the agents that can get a task now.
pub(crate) fn delegate_function<'a>(
    agents: impl Iterator<Item = &'a AgentName>,
    finish: Finish,
) -> Function {
    let mut prompt: Value =
        serde_json::from_str(include_str!("../prompts/delegate.json")).unwrap_or_default();
    let names: Vec<Value> = agents.map(|name| Value::from(name.as_str())).collect();
    prompt["parameters"]["properties"]["agent"]["enum"] = Value::from(names);
    if finish == Finish::Withheld
        && let Some(properties) = prompt["parameters"]["properties"].as_object_mut()
    {
        properties.remove("finish");
    }
    Function {
        name: DELEGATE.into(),
        description: prompt["description"].as_str().unwrap_or_default().into(),
        parameters: prompt["parameters"].take().into(),
    }
}

/// A notice to a model in addition to its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    LastCall,
    RoundsSpent,
    ToolCallsSpent,
    AllRejected,
    UnknownAgents,
    FaultyCalls,
    Repetition,
    EmptyReply,
    StrayRejection,
    StoppedTurn,
}

/// Returns the sentence to add to a notice if the answer must match a schema.
pub(crate) fn still_json() -> &'static str {
    include_str!("../prompts/still_json.md").trim_end()
}

pub(crate) fn notice(notice: Notice) -> &'static str {
    match notice {
        Notice::LastCall => include_str!("../prompts/last_call.md"),
        Notice::RoundsSpent => include_str!("../prompts/rounds_spent.md"),
        Notice::ToolCallsSpent => include_str!("../prompts/tool_calls_spent.md"),
        Notice::AllRejected => include_str!("../prompts/all_rejected.md"),
        Notice::UnknownAgents => include_str!("../prompts/unknown_agents.md"),
        Notice::FaultyCalls => include_str!("../prompts/faulty_calls.md"),
        Notice::Repetition => include_str!("../prompts/repetition.md"),
        Notice::EmptyReply => include_str!("../prompts/empty_reply.md"),
        Notice::StrayRejection => include_str!("../prompts/stray_rejection.md"),
        Notice::StoppedTurn => include_str!("../prompts/stopped_turn.md"),
    }
    .trim_end()
}

fn flag(set: bool) -> &'static str {
    if set { "yes" } else { "" }
}
