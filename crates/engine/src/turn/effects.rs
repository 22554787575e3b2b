//! Records the calls of a turn that may have changed something, and how they ended. If a turn ends without an answer,
//! lango lists them, so that the user knows what was or may have been done.

use super::printed::PrintedOutput;
use lango_core::{AgentName, CallId, CallStatus, ToolName};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

/// The maximum number of listed calls.
const MAX_CALLS: usize = 20;

/// The maximum number of characters of a listed call's arguments.
const MAX_ARGUMENT_CHARS: usize = 200;

/// Calls that may have changed something, in the order in which they started.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EffectLog(Vec<EffectCall>);

#[derive(Debug, PartialEq)]
struct EffectCall {
    call: CallId,
    agent: AgentName,
    tool: ToolName,
    arguments: Arc<Value>,
    /// `None` while the call is running.
    status: Option<CallStatus>,
}

impl EffectLog {
    /// Records the start of a call, which may be a retry.
    pub(crate) fn begin(
        &mut self,
        call: &CallId,
        agent: AgentName,
        tool: &ToolName,
        arguments: &Arc<Value>,
    ) {
        self.0.retain(|record| record.call != *call);
        self.0.push(EffectCall {
            call: call.clone(),
            agent,
            tool: tool.clone(),
            arguments: Arc::clone(arguments),
            status: None,
        });
    }

    /// Records the end of a call.
    pub(crate) fn end(&mut self, call: &CallId, status: CallStatus) {
        let mut effects = self.0.iter_mut();
        if let Some(record) = effects.find(|record| record.call == *call) {
            record.status = Some(status);
        }
    }

    /// Describes the most recent calls, with the end of what stopped ones had printed; `None` if there are none.
    pub(crate) fn describe(&self, printed: &[PrintedOutput]) -> Option<String> {
        let describe = |record: &EffectCall| {
            let is_its =
                |output: &&PrintedOutput| output.call == record.call && !record.has_result();
            let output = printed.iter().find(is_its);
            let output = output.map_or(String::new(), PrintedOutput::quote);
            Some(record.describe()? + &output)
        };
        let lines: Vec<String> = self.0.iter().filter_map(describe).collect();
        if lines.is_empty() {
            return None;
        }
        let hidden = lines.len().saturating_sub(MAX_CALLS);
        let mut text = "Calls that may have changed something:".to_owned();
        if hidden > 0 {
            let _ = write!(text, "\n- {hidden} earlier calls");
        }
        text.push_str(&lines[hidden..].concat());
        Some(text)
    }
}

impl EffectCall {
    /// Whether the tool returned a result, and was not stopped before.
    fn has_result(&self) -> bool {
        !matches!(self.status, None | Some(CallStatus::Unknown))
    }

    fn describe(&self) -> Option<String> {
        let end = match self.status {
            Some(CallStatus::Denied) => return None,
            Some(CallStatus::Ok) => "done",
            Some(CallStatus::Unknown) => "outcome unknown",
            Some(CallStatus::Error) | None => "not completed",
        };
        let arguments = self.plain_arguments();
        let mut shown: String = arguments.chars().take(MAX_ARGUMENT_CHARS).collect();
        if shown.len() < arguments.len() {
            shown.push('…');
        }
        let Self { agent, tool, .. } = self;
        Some(format!("\n- {agent} used {tool} {shown}: {end}"))
    }

    /// Returns the arguments for people: a single text, such as a command, without its JSON.
    fn plain_arguments(&self) -> String {
        let mut fields = self.arguments.as_object().into_iter().flatten();
        match (fields.next(), fields.next()) {
            (Some((_, Value::String(text))), None) if !text.contains(['`', '\n']) => {
                format!("`{text}`")
            }
            _ => self.arguments.to_string(),
        }
    }
}
