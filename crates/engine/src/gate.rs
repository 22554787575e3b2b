//! The gate, through which every tool call passes. It enforces, in this order: owner, arguments, limits, policy,
//! approval, timeout, output limit.
//!
//! The first half is pure; the turn calls it before a call is stored: [`admit`] checks owner and arguments, then
//! [`ApprovalRules`] apply the policy. The second half has the only handles to the tools' code, grouped by the agent
//! that may call them. An agent without tools has no entry, so it can call nothing.

mod grant;
mod harmless;
mod pattern;
mod rules;
mod subject;

use crate::attachments::check_files;
use crate::tree::{Agent, Tree};
use crate::turn::ToolStep;
use futures_util::FutureExt;
use futures_util::future::join;
pub use grant::{edited_grant_problem, grant_problem, is_bound_to_content, narrower_command};
use lango_core::{
    AgentName, ApprovalRequest, AttachedFile, Call, CallStatus, Caller, Effect, Inspection,
    PreviewLength, Text, Tool, ToolName, ToolOutput, Trust, TurnFault,
};
use lango_secrets::{Masks, SecretSource};
pub use rules::{ApprovalRule, ApprovalRules, RuleAction};
pub(crate) use rules::{Decision, call_digest, digest, granted};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Owns the code of all tools and runs it for the agents that may call it.
pub struct Gate {
    handles: HashMap<AgentName, HashMap<ToolName, Arc<dyn Tool>>>,
    masks: Masks,
    secrets: Option<Arc<dyn SecretSource>>,
}

/// Why a gate cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// A tool of the tree has no code.
    #[error("the tool `{name}` of the agent tree is not installed")]
    NotInstalled { name: ToolName },
}

/// A call whose owner and arguments are valid.
pub(crate) struct AdmittedCall {
    pub tool: Arc<crate::tree::OwnedTool>,
    pub arguments: Arc<Value>,
}

/// The result of a call that ran.
pub(crate) struct CallResult {
    pub status: CallStatus,
    pub output: Text,
    pub trust: Trust,
    pub files: Vec<AttachedFile>,
}

impl CallResult {
    /// Creates a result that lango wrote itself.
    fn from_lango(status: CallStatus, output: String) -> Self {
        Self {
            status,
            output: output.into(),
            trust: Trust::Trusted,
            files: Vec::new(),
        }
    }

    /// Converts a tool's output, and enforces the limits on text and files.
    fn from_output(output: ToolOutput) -> Self {
        let ToolOutput { text, trust, files } = output;
        let text = cap(text, Gate::OUTPUT_BYTES);
        if files.is_empty() {
            return Self {
                status: CallStatus::Ok,
                output: text,
                trust,
                files,
            };
        }
        let (files, refused) = check_files(files);
        let lines = std::iter::once(&*text).filter(|text| !text.is_empty());
        let lines: Vec<&str> = lines.chain(refused.iter().map(String::as_str)).collect();
        Self {
            status: CallStatus::Ok,
            output: lines.join("\n").into(),
            trust: Trust::Untrusted,
            files,
        }
    }
}

/// A rejected call, with the explanation for the model.
pub(crate) struct InvalidCall {
    pub fault: TurnFault,
    pub detail: String,
}

/// Checks that the agent owns the tool and that the arguments match its schema.
pub(crate) fn admit(tree: &Tree, agent: &Agent, call: &Call) -> Result<AdmittedCall, InvalidCall> {
    let Some(tool) = agent.tool(&call.name) else {
        return Err(not_owned(tree, agent, &call.name));
    };
    let bad = |detail| InvalidCall {
        fault: TurnFault::BadArguments,
        detail,
    };
    let arguments = parse_arguments(&call.arguments).map_err(bad)?;
    tool.check(&arguments).map_err(|faults| {
        bad(format!(
            "the arguments of `{}` do not fit: {faults}",
            call.name
        ))
    })?;
    Ok(AdmittedCall {
        tool: Arc::clone(tool),
        arguments: Arc::new(arguments),
    })
}

/// Parses raw arguments. Invalid JSON is never repaired. Empty text counts as an empty object.
pub(crate) fn parse_arguments(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value = serde_json::from_str(raw)
        .map_err(|error| format!("the arguments are not valid JSON: {error}"))?;
    if depth(&value) > MAX_DEPTH {
        return Err(format!(
            "the arguments are nested deeper than {MAX_DEPTH} levels"
        ));
    }
    Ok(value)
}

/// The maximum nesting depth. Arguments are stored inside an event, which must remain parseable.
const MAX_DEPTH: usize = 64;

fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// Explains why a function is not a tool of this agent: no agent owns it, another agent does, or it does not exist.
pub(crate) fn not_owned(tree: &Tree, agent: &Agent, name: &str) -> InvalidCall {
    let own = if agent.tools.is_empty() {
        "you have no tools".to_owned()
    } else {
        let names: Vec<&str> = agent
            .tools
            .iter()
            .map(|tool| tool.spec.name.as_str())
            .collect();
        format!("your tools are: {}", names.join(", "))
    };
    let shown: String = name.chars().take(64).collect();
    if tree.unmatched.iter().any(|tool| *tool == *name) {
        let detail =
            format!("no agent owns the tool `{shown}`, so it cannot run; say so in the answer");
        return InvalidCall {
            fault: TurnFault::UnmatchedTool,
            detail,
        };
    }
    if tree.owner_of(name).is_some() {
        let detail = format!("the tool `{shown}` is not yours; {own}");
        return InvalidCall {
            fault: TurnFault::ForeignTool,
            detail,
        };
    }
    InvalidCall {
        fault: TurnFault::UnknownTool,
        detail: format!("there is no tool `{shown}`; {own}"),
    }
}

impl Gate {
    /// The maximum length of a tool's text for a model. The middle of a longer text is cut out, with a note.
    pub const OUTPUT_BYTES: usize = 64 * 1024;
    /// The timeout of a preview or an inspection.
    const PREVIEW_TIMEOUT: Duration = Duration::from_secs(10);
    /// The age after which the masks of stored secrets are reloaded.
    const MAX_MASKS_AGE: Duration = Duration::from_secs(1);

    /// Gives the code of each tool to the agents that may call it.
    pub fn new(tree: &Tree, tools: Vec<Arc<dyn Tool>>) -> Result<Self, GateError> {
        let installed: HashMap<ToolName, Arc<dyn Tool>> = tools
            .into_iter()
            .map(|tool| (tool.spec().name.clone(), tool))
            .collect();
        let mut handles = HashMap::new();
        for agent in std::iter::once(&tree.root)
            .chain(&tree.agents)
            .filter(|agent| !agent.tools.is_empty())
        {
            let mut own = HashMap::new();
            for tool in &agent.tools {
                let name = &tool.spec.name;
                let handle = installed
                    .get(name)
                    .ok_or_else(|| GateError::NotInstalled { name: name.clone() })?;
                own.insert(name.clone(), Arc::clone(handle));
            }
            handles.insert(agent.name.clone(), own);
        }
        Ok(Self {
            handles,
            masks: Masks::default(),
            secrets: None,
        })
    }

    /// Masks these values in everything that tools return.
    #[must_use]
    pub fn with_masks(self, masks: Masks) -> Self {
        Self { masks, ..self }
    }

    /// Sets the source of stored secrets. The masks of the caller's secrets are loaded while a tool runs.
    #[must_use]
    pub fn with_secrets(self, secrets: Arc<dyn SecretSource>) -> Self {
        Self {
            secrets: Some(secrets),
            ..self
        }
    }

    /// Returns what a pending call would change, as described by its tool, for the user who approves it.
    pub async fn preview(
        &self,
        request: &ApprovalRequest,
        length: PreviewLength,
    ) -> Option<String> {
        let tool = self.handles.get(&request.agent)?.get(&request.tool)?;
        let preview = tool.preview(Arc::clone(&request.arguments), length);
        let preview = AssertUnwindSafe(preview).catch_unwind();
        let preview = tokio::time::timeout(Self::PREVIEW_TIMEOUT, preview).await;
        let mut text = preview.ok()?.ok()??;
        self.masks.mask_string(&mut text);
        Some(match length {
            PreviewLength::Short => cap_preview(text, Self::OUTPUT_BYTES),
            PreviewLength::Full => text,
        })
    }

    /// Inspects the calls of a reply and returns one result for each. If a tool fails to inspect a call, the result is
    /// empty, and the tool must reject the call when it runs.
    pub(crate) async fn inspect(&self, mut caller: Caller, calls: &[Call]) -> Vec<Inspection> {
        let mut inspections = Vec::with_capacity(calls.len());
        for call in calls {
            caller.call = call.id.clone();
            inspections.push(self.inspect_call(&caller, call).await.unwrap_or_default());
        }
        inspections
    }

    async fn inspect_call(&self, caller: &Caller, call: &Call) -> Option<Inspection> {
        let tool = self.handles.get(&caller.agent)?.get(&*call.name)?;
        let arguments = parse_arguments(&call.arguments).ok()?;
        let inspection = tool.inspect(caller, Arc::new(arguments));
        let inspection = AssertUnwindSafe(inspection).catch_unwind();
        let inspection = tokio::time::timeout(Self::PREVIEW_TIMEOUT, inspection).await;
        let mut inspection = inspection.ok()?.ok()?;
        if let Some(site) = &mut inspection.site {
            // The summary may quote the page.
            site.summary = self.masks.mask_text(&site.summary).into();
        }
        Some(inspection)
    }

    /// Whether this agent can run any tool.
    pub fn has_handles(&self, agent: &AgentName) -> bool {
        self.handles.contains_key(agent)
    }

    /// Runs a stored call, with a timeout and a limit on its output.
    pub(crate) async fn run(&self, step: &ToolStep, caller: &Caller, time: Duration) -> CallResult {
        let Some(tool) = self
            .handles
            .get(&step.agent)
            .and_then(|own| own.get(&step.tool))
        else {
            return CallResult::from_lango(
                CallStatus::Denied,
                format!("the tool `{}` is not yours", step.tool),
            );
        };
        let run = async { tool.run(caller, Arc::clone(&step.arguments)).await };
        let run = tokio::time::timeout(time, AssertUnwindSafe(run).catch_unwind());
        // If a non-idempotent call does not finish, its outcome is unknown.
        let (unfinished, advice) = match step.effect {
            Effect::NonIdempotent => (
                CallStatus::Unknown,
                "its outcome is unknown; do not repeat it, tell the user",
            ),
            Effect::Pure | Effect::Idempotent => (CallStatus::Error, "it gave no result"),
        };
        let (run, ()) = join(run, self.load_masks(caller)).await;
        match run {
            // Masked before it is truncated, because a truncated value would not be recognized.
            Ok(Ok(Ok(output))) => CallResult::from_output(self.mask_output(output)),
            Ok(Ok(Err(error))) if error.message.trim().is_empty() => {
                CallResult::from_lango(CallStatus::Error, "it failed without a message".to_owned())
            }
            Ok(Ok(Err(error))) => CallResult {
                status: CallStatus::Error,
                output: cap(
                    self.masks.mask_text(&error.message).into_owned(),
                    Self::OUTPUT_BYTES,
                ),
                trust: error.trust,
                files: Vec::new(),
            },
            Ok(Err(_panic)) => CallResult::from_lango(
                unfinished,
                format!("the tool `{}` crashed: {advice}", step.tool),
            ),
            Err(_elapsed) => CallResult::from_lango(
                unfinished,
                format!("stopped after {} s: {advice}", time.as_secs_f32()),
            ),
        }
    }
}

impl Gate {
    async fn load_masks(&self, caller: &Caller) {
        if let Some(secrets) = &self.secrets {
            secrets.load_masks(&caller.user, Self::MAX_MASKS_AGE).await;
        }
    }

    fn mask_output(&self, mut output: ToolOutput) -> ToolOutput {
        self.masks.mask_string(&mut output.text);
        for file in &mut output.files {
            mask_file(&self.masks, file);
        }
        output
    }
}

/// Masks the name and the content of a file. An image that contains a secret in its metadata may become unreadable.
fn mask_file(masks: &Masks, file: &mut AttachedFile) {
    masks.mask_string(&mut file.name);
    if let Cow::Owned(masked) = masks.mask_bytes(&file.bytes) {
        file.bytes = masked.into();
    }
}

/// Truncates a preview that is too long, and says how many lines are missing.
fn cap_preview(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let head = text.floor_char_boundary(max_bytes);
    let (shown, rest) = text.split_at(head);
    format!(
        "{shown}\n[{} more lines, {} of {} bytes, are not shown; view all to see them]\n",
        rest.lines().count(),
        rest.len(),
        text.len()
    )
}

/// Cuts out the middle of a text that is too long, and says how much is missing.
fn cap(text: String, max_bytes: usize) -> Text {
    if text.len() <= max_bytes {
        return text.into();
    }
    let head = text.floor_char_boundary(max_bytes * 3 / 4);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 4);
    format!(
        "{}\n[… {} of {} bytes left out …]\n{}",
        &text[..head],
        tail - head,
        text.len(),
        &text[tail..]
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::cap;

    #[test]
    fn long_output_keeps_its_head_and_tail_and_says_what_is_missing() {
        let text: String = "é".repeat(1000);
        let capped = cap(text.clone(), 100);
        assert!(capped.starts_with("éé") && capped.ends_with("éé"));
        assert!(capped.contains("of 2000 bytes left out"), "{capped}");
        assert!(capped.len() < 200);
        assert_eq!(*cap(text.clone(), 2000), *text);
    }
}
