//! The gate: the single place that every tool call passes, in this order: home, arguments, limits, policy, approval,
//! time-out, output cap.
//!
//! The first half is pure and is asked by the turn before a call is stored: [`admit`] for home and arguments, then
//! [`Rules`] for the policy. The second half holds the only handles to the tools' code, by the agent that may call them:
//! an agent without tools has no entry, so there is nothing to call.

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
    AgentName, ApprovalRequest, AttachedFile, Call, CallStatus, Caller, Effect, Extent, Fault,
    Inspection, Text, Tool, ToolName, ToolOutput, Trust,
};
use lango_secrets::{Masks, SecretSource};
pub use rules::{Action, Rule, Rules};
pub(crate) use rules::{Decision, call_digest, digest, granted};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Holds the tools' code and runs it for those who may.
pub struct Gate {
    handles: HashMap<AgentName, HashMap<ToolName, Arc<dyn Tool>>>,
    masks: Masks,
    secrets: Option<Arc<dyn SecretSource>>,
}

/// Why a gate cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The tree names a tool whose code is not there.
    #[error("the tool `{name}` is in the agent tree and is not installed")]
    NotInstalled {
        /// The tool.
        name: ToolName,
    },
}

/// A call that may be stored and run.
pub(crate) struct Admitted {
    pub tool: Arc<crate::tree::OwnedTool>,
    pub arguments: Arc<Value>,
}

/// What came of a call that ran.
pub(crate) struct CallResult {
    pub status: CallStatus,
    pub output: Text,
    pub trust: Trust,
    pub files: Vec<AttachedFile>,
}

impl CallResult {
    /// A result in lango's own words.
    fn own(status: CallStatus, output: String) -> Self {
        Self {
            status,
            output: output.into(),
            trust: Trust::Trusted,
            files: Vec::new(),
        }
    }

    /// What a tool gave back, within the limits of text and files.
    fn of_output(output: ToolOutput) -> Self {
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

/// A call that may not: what the model is told instead.
pub(crate) struct Refusal {
    pub fault: Fault,
    pub detail: String,
}

/// Home and arguments: may this agent call this, like this?
pub(crate) fn admit(tree: &Tree, agent: &Agent, call: &Call) -> Result<Admitted, Refusal> {
    let Some(tool) = agent.tool(&call.name) else {
        return Err(no_home(tree, agent, &call.name));
    };
    let bad = |detail| Refusal {
        fault: Fault::BadArguments,
        detail,
    };
    let arguments = parse_arguments(&call.arguments).map_err(bad)?;
    tool.check(&arguments).map_err(|faults| {
        bad(format!(
            "the arguments of `{}` do not fit: {faults}",
            call.name
        ))
    })?;
    Ok(Admitted {
        tool: Arc::clone(tool),
        arguments: Arc::new(arguments),
    })
}

/// Reads raw arguments. Text that is not whole JSON is never repaired; no text at all is an empty object.
pub(crate) fn parse_arguments(raw: &str) -> Result<Value, String> {
    if raw.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let value = serde_json::from_str(raw)
        .map_err(|error| format!("the arguments are not whole JSON: {error}"))?;
    if depth(&value) > DEEPEST {
        return Err(format!(
            "the arguments are nested deeper than {DEEPEST} levels"
        ));
    }
    Ok(value)
}

/// Arguments are stored inside of an event, and what is stored must be readable again.
const DEEPEST: usize = 64;

fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// Why a name is not a tool of this agent: nobody's, another's, or no tool at all.
pub(crate) fn no_home(tree: &Tree, agent: &Agent, name: &str) -> Refusal {
    let own = match agent.tools.is_empty() {
        true => "you have no tools".to_owned(),
        false => {
            let names: Vec<&str> = agent
                .tools
                .iter()
                .map(|tool| tool.spec.name.as_str())
                .collect();
            format!("your tools are: {}", names.join(", "))
        }
    };
    let shown: String = name.chars().take(64).collect();
    if tree.unmatched.iter().any(|tool| *tool == *name) {
        let detail =
            format!("no agent holds the tool `{shown}`, so it cannot run; say so in the answer");
        return Refusal {
            fault: Fault::UnmatchedTool,
            detail,
        };
    }
    if tree.owner_of(name).is_some() {
        let detail = format!("the tool `{shown}` is not yours; {own}");
        return Refusal {
            fault: Fault::NotYours,
            detail,
        };
    }
    Refusal {
        fault: Fault::UnknownTool,
        detail: format!("there is no tool `{shown}`; {own}"),
    }
}

impl Gate {
    /// The most text a tool may give a model; the middle of what is longer is left out, with a note.
    pub const OUTPUT_BYTES: usize = 64 * 1024;
    /// How long a tool may look for what it would change.
    const PREVIEW_TIME: Duration = Duration::from_secs(10);
    /// Age of the masks of stored secrets after which they are loaded again.
    const MASKS_AGE: Duration = Duration::from_secs(1);

    /// Gives each tool's code to those whom the tree lets call it.
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

    /// Loads the masks of the caller's stored secrets while a tool runs.
    #[must_use]
    pub fn with_secrets(self, secrets: Arc<dyn SecretSource>) -> Self {
        Self {
            secrets: Some(secrets),
            ..self
        }
    }

    /// What a call that waits would change, in the words of its tool, for the person who is asked to allow it.
    pub async fn preview(&self, request: &ApprovalRequest, extent: Extent) -> Option<String> {
        let tool = self.handles.get(&request.agent)?.get(&request.tool)?;
        let preview = tool.preview(Arc::clone(&request.arguments), extent);
        let preview = AssertUnwindSafe(preview).catch_unwind();
        let preview = tokio::time::timeout(Self::PREVIEW_TIME, preview).await;
        let mut text = preview.ok()?.ok()??;
        self.masks.mask_string(&mut text);
        Some(match extent {
            Extent::Short => cap_preview(text, Self::OUTPUT_BYTES),
            Extent::Whole => text,
        })
    }

    /// What the calls of a reply would touch, one result for each call. A tool that fails to say it finds nothing here,
    /// and refuses the call itself when it runs.
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
        let inspection = tokio::time::timeout(Self::PREVIEW_TIME, inspection).await;
        let mut inspection = inspection.ok()?.ok()?;
        if let Some(site) = &mut inspection.site {
            // It has words of the page.
            site.summary = self.masks.mask_text(&site.summary).into();
        }
        Some(inspection)
    }

    /// Whether this agent can run anything at all.
    pub fn has_handles(&self, agent: &AgentName) -> bool {
        self.handles.contains_key(agent)
    }

    /// Runs a call that was stored: within its time, and with a bounded output whatever the tool does.
    pub(crate) async fn run(&self, step: &ToolStep, caller: &Caller, time: Duration) -> CallResult {
        let Some(tool) = self
            .handles
            .get(&step.agent)
            .and_then(|own| own.get(&step.tool))
        else {
            return CallResult::own(
                CallStatus::Denied,
                format!("the tool `{}` is not yours", step.tool),
            );
        };
        let run = async { tool.run(caller, Arc::clone(&step.arguments)).await };
        let run = tokio::time::timeout(time, AssertUnwindSafe(run).catch_unwind());
        // Of a call with effect that did not come to its end nobody knows whether it happened.
        let (unfinished, advice) = match step.effect {
            Effect::Effect => (
                CallStatus::Unknown,
                "nobody knows whether it happened; do not repeat it, say so",
            ),
            Effect::Pure | Effect::Idempotent => (CallStatus::Error, "it gave no result"),
        };
        let (run, ()) = join(run, self.load_masks(caller)).await;
        match run {
            // Masked before it is cut: half of a value would not be found.
            Ok(Ok(Ok(output))) => CallResult::of_output(self.mask_output(output)),
            Ok(Ok(Err(error))) if error.message.trim().is_empty() => {
                CallResult::own(CallStatus::Error, "it failed and said nothing".to_owned())
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
            Ok(Err(_panic)) => CallResult::own(
                unfinished,
                format!("the tool `{}` crashed: {advice}", step.tool),
            ),
            Err(_elapsed) => CallResult::own(
                unfinished,
                format!("stopped after {} s: {advice}", time.as_secs_f32()),
            ),
        }
    }
}

impl Gate {
    async fn load_masks(&self, caller: &Caller) {
        if let Some(secrets) = &self.secrets {
            secrets.load_masks(&caller.user, Self::MASKS_AGE).await;
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

/// Masks the name of a file and its content. An image with an echo in its metadata may no longer show.
fn mask_file(masks: &Masks, file: &mut AttachedFile) {
    masks.mask_string(&mut file.name);
    if let Cow::Owned(masked) = masks.mask_bytes(&file.bytes) {
        file.bytes = masked.into();
    }
}

/// Cuts the end off a preview that is too long, and says how many lines are not shown.
fn cap_preview(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most);
    let (shown, rest) = text.split_at(head);
    format!(
        "{shown}\n[{} more lines, {} of {} bytes, are not shown; view all to see them]\n",
        rest.lines().count(),
        rest.len(),
        text.len()
    )
}

/// Cuts the middle out of what is too long and says how much is missing.
fn cap(text: String, most: usize) -> Text {
    if text.len() <= most {
        return text.into();
    }
    let head = text.floor_char_boundary(most * 3 / 4);
    let tail = text.ceil_char_boundary(text.len() - most / 4);
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
