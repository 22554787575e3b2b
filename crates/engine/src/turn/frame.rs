//! A frame: one agent's run inside a turn, with its task, its replies and calls, and its end.

use super::repetition::Repetition;
use crate::instruction::Notice;
use lango_core::{
    AgentName, ApprovalRequest, Attachment, Call, CallId, Effect, FrameId, Inspection, Limit,
    OpaqueData, RemoteThread, Text, Timestamp, ToolName, Trust,
};
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug, PartialEq)]
pub(super) struct Frame {
    pub id: FrameId,
    pub agent: AgentName,
    pub is_remote: bool,
    /// The conversation with the remote agent that accepted the task.
    pub thread: Option<RemoteThread>,
    pub task: Text,
    /// The files that the agent sees with the task.
    pub attachments: Vec<Attachment>,
    /// The files of a remote agent's answer.
    pub returned: Vec<Attachment>,
    /// Whether the agent's answer goes straight to the user.
    pub finish: bool,
    pub entries: Vec<Entry>,
    /// The number of the event after which the frame last became ready for its model. The frame that waited longest
    /// goes first.
    pub waiting_since: u32,
    /// Whether the model was already asked once more after an unusable reply.
    pub was_retried: bool,
    /// Whether a reply reached the output limit. If so, further requests allow the model's maximum.
    pub raise_output_limit: bool,
    /// The limit on the tokens of its requests, set after a request was too long for its model.
    pub context_tokens: Option<u64>,
    /// Whether the model was already asked once more after an answer that does not match the schema.
    pub answer_retried: bool,
    /// The number of consecutive replies with a call that could not run.
    pub faulty_replies: u32,
    /// Whether the latest reply had a call that could not run.
    pub reply_is_faulty: bool,
    pub repetition: Repetition,
    /// The trust label of everything that the agent has seen so far.
    pub trust: Trust,
    pub end: Option<FrameEnd>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Entry {
    Reply {
        text: Text,
        slots: Vec<Slot>,
        opaque: Option<OpaqueData>,
    },
    Notice(Notice),
    /// What is wrong with the previous answer.
    InvalidAnswer(Text),
}

/// A call and its result, which always stay together.
#[derive(Debug, PartialEq)]
pub(super) struct Slot {
    pub call: Call,
    /// The trust label of everything that the agent had seen when it made the call.
    pub trust: Trust,
    pub state: SlotState,
}

impl Slot {
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, SlotState::Running { .. })
    }

    /// Whether the result came after event number `event` of the turn.
    pub(crate) fn is_answered_after(&self, event: u32) -> bool {
        matches!(self.state, SlotState::Answered { at, .. } if at > event)
    }

    /// Whether the call is running and not idempotent.
    pub(crate) fn has_effect(&self) -> bool {
        matches!(
            self.state,
            SlotState::Running {
                effect: Effect::NonIdempotent,
                ..
            }
        )
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum SlotState {
    Open,
    Running {
        tool: ToolName,
        arguments: Arc<Value>,
        effect: Effect,
        inspection: Inspection,
        /// Whether the user or a grant approved it, or an equal call before it.
        is_approved: bool,
    },
    /// Waits for the user's approval.
    AwaitingApproval {
        request: ApprovalRequest,
        since: Timestamp,
    },
    Delegated,
    Answered {
        text: Text,
        failed: bool,
        attachments: Vec<Attachment>,
        /// The number of the event with the result.
        at: u32,
    },
}

#[derive(Debug, PartialEq)]
pub(super) enum FrameEnd {
    Answered(Text),
    Rejected(Text),
    Limited(Limit),
    Failed(Text),
}

impl Frame {
    pub(crate) fn new(id: FrameId, agent: AgentName, task: Text, trust: Trust) -> Self {
        Self {
            id,
            agent,
            is_remote: false,
            thread: None,
            task,
            attachments: Vec::new(),
            returned: Vec::new(),
            finish: false,
            entries: Vec::new(),
            waiting_since: 0,
            was_retried: false,
            raise_output_limit: false,
            context_tokens: None,
            answer_retried: false,
            faulty_replies: 0,
            reply_is_faulty: false,
            repetition: Repetition::default(),
            trust,
            end: None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Whether the next step of the frame is a call of its model.
    pub(crate) fn awaits_model(&self) -> bool {
        self.is_open()
            && !self.is_remote
            && self
                .slots()
                .iter()
                .all(|slot| matches!(slot.state, SlotState::Answered { .. }))
    }

    /// Returns the calls of the last reply.
    pub(crate) fn slots(&self) -> &[Slot] {
        match self.entries.last() {
            Some(Entry::Reply { slots, .. }) => slots,
            _ => &[],
        }
    }

    pub(crate) fn slot_mut(&mut self, call: &CallId) -> Option<&mut Slot> {
        match self.entries.last_mut() {
            Some(Entry::Reply { slots, .. }) => slots.iter_mut().find(|slot| slot.call.id == *call),
            _ => None,
        }
    }

    /// Returns the pending approvals of the last reply, with the time of each request.
    pub(crate) fn pending_requests(&self) -> impl Iterator<Item = (&ApprovalRequest, Timestamp)> {
        let slots = self.slots().iter().filter(|_| self.is_open());
        slots.filter_map(|slot| match &slot.state {
            SlotState::AwaitingApproval { request, since, .. } => Some((request, *since)),
            _ => None,
        })
    }

    /// Returns the calls of the last reply that can run now. Calls run concurrently, except that a non-idempotent call
    /// waits for those before it, and those after it wait for it. A call with a pending approval keeps its place in
    /// this order.
    pub(crate) fn startable(&self) -> Vec<&Slot> {
        let mut startable = Vec::new();
        let mut is_asked = false;
        for slot in self.slots() {
            let effect = match &slot.state {
                SlotState::Running { effect, .. } => *effect,
                SlotState::AwaitingApproval { request, .. } => {
                    if request.effect == Effect::NonIdempotent {
                        break;
                    }
                    is_asked = true;
                    continue;
                }
                SlotState::Open | SlotState::Delegated | SlotState::Answered { .. } => continue,
            };
            let has_effect = effect == Effect::NonIdempotent;
            if !(has_effect && (is_asked || !startable.is_empty())) {
                startable.push(slot);
            }
            if has_effect {
                break;
            }
        }
        startable
    }
}
