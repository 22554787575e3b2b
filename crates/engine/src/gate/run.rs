//! Runs the code of tools. [`Gate`] has the only handles to it, grouped by the agent that may call them. An agent
//! without tools has no entry, so it can run nothing. Timeouts, panics and oversized output become ordinary results.

use super::live_output::LiveOutput;
use super::output::{CallResult, cap, cap_preview, mask_file};
use super::{Denial, parse_arguments};
use crate::runner::UpdateSender;
use crate::tree::Tree;
use crate::turn::{ToolStep, stopped_result};
use futures_util::FutureExt;
use futures_util::future::join;
use lango_core::{
    AgentName, ApprovalRequest, Call, CallStatus, Caller, Effect, Inspection, PermissionMode,
    PreviewLength, PreviewRequest, Tool, ToolName, ToolOutput,
};
use lango_secrets::{Masks, SecretSource};
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
#[non_exhaustive]
pub enum GateError {
    /// A tool of the tree has no code.
    #[error("the tool `{name}` of the agent tree is not installed")]
    NotInstalled { name: ToolName },
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
        let inspected = PreviewRequest {
            length,
            inspection: request.inspection.clone(),
        };
        let preview = tool.preview(Arc::clone(&request.arguments), inspected);
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

    /// Runs a stored call, with a timeout and a limit on its output. Publishes what the tool shows while it runs. The mode
    /// may have changed since the call was stored.
    pub(crate) async fn run(
        &self,
        step: &ToolStep,
        mut caller: Caller,
        time: Duration,
        mode: PermissionMode,
        updates: &UpdateSender,
    ) -> CallResult {
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
        if !mode.allows(tool.spec().effect) {
            let denied = Denial::Mode(mode).for_model();
            return CallResult::from_lango(CallStatus::Denied, denied);
        }
        let live = LiveOutput::new(self.masks.clone());
        caller.output = live.sink();
        let run = async {
            let run = async { tool.run(&caller, Arc::clone(&step.arguments)).await };
            let run = tokio::time::timeout(time, AssertUnwindSafe(run).catch_unwind()).await;
            live.end();
            run
        };
        let publish = async {
            self.load_masks(&caller).await;
            live.publish(&step.call, updates).await;
        };
        // If a non-idempotent call does not finish, its outcome is unknown.
        let (unfinished, advice) = match step.effect {
            Effect::NonIdempotent => (
                CallStatus::Unknown,
                "its outcome is unknown; do not repeat it, tell the user",
            ),
            Effect::Pure | Effect::Idempotent => (CallStatus::Error, "it gave no result"),
        };
        let stopped = |reason: String| {
            let (output, trust) = stopped_result(&reason, &step.call, &updates.printed());
            CallResult {
                status: unfinished,
                output,
                trust,
                files: Vec::new(),
            }
        };
        let (run, ()) = join(run, publish).await;
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
            Ok(Err(_panic)) => stopped(format!("the tool `{}` crashed: {advice}", step.tool)),
            Err(_elapsed) => stopped(format!("stopped after {} s: {advice}", time.as_secs_f32())),
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
