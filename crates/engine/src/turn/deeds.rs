//! What a turn did: the calls that change something, and how they ended. A turn that ends without an answer tells of them, so
//! that nobody takes for undone what was done, or may have been.

use lango_core::{AgentName, CallId, CallStatus, ToolName};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

/// How many calls are told of, and how much of the arguments of each.
const MOST_TOLD: usize = 20;
const MOST_ARGUMENTS: usize = 200;

/// Calls that may have changed something, in the order in which they were begun.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Deeds(Vec<Deed>);

#[derive(Debug, PartialEq)]
struct Deed {
    call: CallId,
    agent: AgentName,
    tool: ToolName,
    arguments: Arc<Value>,
    /// How it ended, once it has.
    status: Option<CallStatus>,
}

impl Deeds {
    /// A call is begun, perhaps once more.
    pub fn begin(
        &mut self,
        call: &CallId,
        agent: AgentName,
        tool: &ToolName,
        arguments: &Arc<Value>,
    ) {
        self.0.retain(|deed| deed.call != *call);
        self.0.push(Deed {
            call: call.clone(),
            agent,
            tool: tool.clone(),
            arguments: Arc::clone(arguments),
            status: None,
        });
    }

    /// A call has ended.
    pub fn end(&mut self, call: &CallId, status: CallStatus) {
        let mut deeds = self.0.iter_mut();
        if let Some(deed) = deeds.find(|deed| deed.call == *call) {
            deed.status = Some(status);
        }
    }

    /// The last of them in words; none if there are none.
    pub fn told(&self) -> Option<String> {
        let lines: Vec<String> = self.0.iter().filter_map(Deed::told).collect();
        if lines.is_empty() {
            return None;
        }
        let hidden = lines.len().saturating_sub(MOST_TOLD);
        let mut told = "What may have changed something:".to_owned();
        if hidden > 0 {
            let _ = write!(told, "\n- {hidden} earlier calls");
        }
        told.push_str(&lines[hidden..].concat());
        Some(told)
    }
}

impl Deed {
    fn told(&self) -> Option<String> {
        let end = match self.status {
            Some(CallStatus::Denied) => return None,
            Some(CallStatus::Ok) => "done",
            Some(CallStatus::Unknown) => "nobody knows whether it happened",
            Some(CallStatus::Error) | None => "not completed",
        };
        let arguments = self.arguments.to_string();
        let mut shown: String = arguments.chars().take(MOST_ARGUMENTS).collect();
        if shown.len() < arguments.len() {
            shown.push('…');
        }
        let Self { agent, tool, .. } = self;
        Some(format!("\n- {agent} used {tool} {shown}: {end}"))
    }
}
