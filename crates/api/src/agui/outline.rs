//! The known calls and delegations of a turn. A run that continues a turn reads them from the log, so that it does not
//! repeat calls that an earlier run has shown.

use crate::Api;
use crate::problem::Result;
use lango_core::{
    AgentName, CallId, Event, EventBody, FrameId, PendingApproval, SessionStore as _, Text,
    ToolName,
};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The maximum number of characters of a result that an activity shows.
const MAX_RESULT: usize = 2000;

/// The calls and delegations of a turn.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Calls as the agents wrote them. Those that are not allowed appear nowhere else.
    written: HashMap<CallId, (Text, Text)>,
    shown: HashSet<CallId>,
    delegations: HashMap<FrameId, Delegation>,
}

/// A task that was delegated to an agent.
#[derive(Debug, Clone)]
pub(super) struct Delegation {
    pub agent: AgentName,
    pub task: Text,
    pub round: u32,
    pub status: DelegationStatus,
}

/// The state of a delegation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DelegationStatus {
    Running,
    Finished { result: Text },
    Rejected { reason: Text },
}

impl Outline {
    /// Reads the outline of a waiting turn from the log.
    pub(super) async fn read(api: &Api, waiting: &PendingApproval) -> Result<Self> {
        let mut outline = Self::default();
        for event in api
            .store
            .turn_events(&waiting.session, &waiting.turn)
            .await?
        {
            outline.note(&event);
            match &event.body {
                EventBody::ApprovalRequested(request) => drop(outline.show(&request.call)),
                EventBody::ToolCalled { call, .. } | EventBody::ToolReturned { call, .. } => {
                    outline.show(call);
                }
                _ => {}
            }
        }
        Ok(outline)
    }

    /// Applies an event.
    pub(super) fn note(&mut self, event: &Event) {
        match &event.body {
            EventBody::AgentMessage { calls, .. } => {
                for call in calls {
                    let written = (call.name.as_ref().into(), call.arguments.as_ref().into());
                    self.written.insert(call.id.clone(), written);
                }
            }
            EventBody::AgentDelegated {
                call,
                agent,
                task,
                round,
                ..
            } => {
                let delegation = Delegation {
                    agent: agent.clone(),
                    task: Arc::clone(task),
                    round: *round,
                    status: DelegationStatus::Running,
                };
                self.delegations.insert(FrameId::from(call), delegation);
            }
            _ => {}
        }
        if let Some(status) = end_of_frame(&event.body)
            && let Some(delegation) = self.delegations.get_mut(&event.frame)
        {
            delegation.status = status;
        }
    }

    /// Marks a call as shown. Returns false if it was shown before.
    pub(super) fn show(&mut self, call: &CallId) -> bool {
        self.shown.insert(call.clone())
    }

    /// Returns the name and the arguments of a call as its agent wrote them.
    pub(super) fn written(&self, call: &CallId) -> Option<(ToolName, Text)> {
        let (name, arguments) = self.written.get(call)?;
        Some((ToolName::new(Arc::clone(name)), Arc::clone(arguments)))
    }

    /// Returns the delegation that opened a frame.
    pub(super) fn delegation(&self, frame: &FrameId) -> Option<&Delegation> {
        self.delegations.get(frame)
    }
}

impl Delegation {
    pub(super) fn is_running(&self) -> bool {
        self.status == DelegationStatus::Running
    }

    /// Returns the payload of the activity event for this delegation.
    pub(super) fn content(&self) -> Value {
        let mut content = json!({ "agent": self.agent, "task": self.task, "round": self.round });
        match &self.status {
            DelegationStatus::Running => content["status"] = json!("running"),
            DelegationStatus::Finished { result } => {
                content["status"] = json!("finished");
                content["result"] = json!(result.chars().take(MAX_RESULT).collect::<String>());
            }
            DelegationStatus::Rejected { reason } => {
                content["status"] = json!("rejected");
                content["reason"] = json!(reason);
            }
        }
        content
    }
}

/// Returns how an event ends its frame, or `None` if it does not.
fn end_of_frame(body: &EventBody) -> Option<DelegationStatus> {
    match body {
        EventBody::AgentMessage {
            text,
            is_final: true,
            ..
        } => Some(DelegationStatus::Finished {
            result: Arc::clone(text),
        }),
        EventBody::RemoteReturned {
            output,
            is_final: true,
            ..
        } => Some(DelegationStatus::Finished {
            result: Arc::clone(output),
        }),
        EventBody::AgentRejected { reason } => Some(DelegationStatus::Rejected {
            reason: Arc::clone(reason),
        }),
        _ => None,
    }
}
