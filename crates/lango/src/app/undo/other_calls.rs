//! What a turn did besides changing files, and so is not undone.

use lango_core::text::one_line;
use lango_core::{AgentName, CallId, CallStatus, Effect, Event, EventBody};
use lango_tools::{TurnRecord, UNDOABLE_TOOLS};
use serde::Serialize;
use std::fmt;

/// Maximum length of the shown arguments, in characters.
const ARGUMENT_CHARS: usize = 60;

/// A call that an undo leaves as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherCall {
    /// The agent that made the call, or the remote agent that was called.
    pub agent: AgentName,
    /// The tool; `None` for a remote agent.
    pub tool: Option<String>,
    /// The start of the arguments or of the task.
    pub detail: String,
    /// Whether the tool changes files, but the change is not recorded.
    pub is_unrecorded: bool,
}

impl fmt::Display for OtherCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "{tool} {}", self.detail)?,
            None => write!(f, "{} {}", self.agent, self.detail)?,
        }
        if self.is_unrecorded {
            f.write_str(" (its changes are not recorded)")?;
        }
        Ok(())
    }
}

/// Returns the calls of a turn that may have changed something that the record does not cover.
pub(super) fn other_calls(events: &[Event], record: &TurnRecord) -> Vec<OtherCall> {
    events
        .iter()
        .filter_map(|event| other_call(event, events, record))
        .collect()
}

fn other_call(event: &Event, events: &[Event], record: &TurnRecord) -> Option<OtherCall> {
    match &event.body {
        EventBody::ToolCalled {
            call,
            tool,
            arguments,
            effect,
            ..
        } if *effect != Effect::Pure => {
            let is_undoable = UNDOABLE_TOOLS.contains(&tool.as_str());
            // A change is recorded before it is made, so a call that failed without a record changed nothing.
            let is_covered = record.has_call(call) || has_failed(events, call);
            (!is_undoable || !is_covered).then(|| OtherCall {
                agent: event.author.clone(),
                tool: Some(tool.to_string()),
                detail: one_line(&arguments.to_string(), ARGUMENT_CHARS),
                is_unrecorded: is_undoable,
            })
        }
        EventBody::RemoteCalled { task } => Some(OtherCall {
            agent: event.author.clone(),
            tool: None,
            detail: one_line(task, ARGUMENT_CHARS),
            is_unrecorded: false,
        }),
        _ => None,
    }
}

fn has_failed(events: &[Event], id: &CallId) -> bool {
    let mut results = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolReturned { call, status, .. } if call == id => Some(*status),
        _ => None,
    });
    results.any(|status| status != CallStatus::Ok)
}
