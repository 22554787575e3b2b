//! One agent's run inside a turn: its task, what it said and called, and how it ended.

use super::repetition::Repetition;
use crate::instruction::Notice;
use lango_core::{
    AgentName, ApprovalRequest, Attachment, Call, CallId, Effect, FrameId, Inspection, Limit,
    Opaque, RemoteThread, Text, Timestamp, ToolName, Trust,
};
use serde_json::Value;
use std::sync::Arc;

#[derive(Debug, PartialEq)]
pub(super) struct Frame {
    pub id: FrameId,
    pub agent: AgentName,
    pub remote: bool,
    /// The names under which a remote agent took the task.
    pub thread: Option<RemoteThread>,
    pub task: Text,
    /// The files that its agent is shown with the task.
    pub attachments: Vec<Attachment>,
    /// The files that a remote agent answered with.
    pub returned: Vec<Attachment>,
    /// Whether its answer is the person's.
    pub finish: bool,
    pub entries: Vec<Entry>,
    /// When it last became ready for its model, counted in the turn's events: those who waited longest go first.
    pub waiting_since: u32,
    /// Whether it was asked once more after a reply that was no reply.
    pub asked_again: bool,
    /// Whether a reply reached the output limit, so that the next ones get as much as the model can write.
    pub raise_output_limit: bool,
    /// How many tokens its requests may have, after one was too long for its model.
    pub context_tokens: Option<u64>,
    /// Whether it was asked once more after an answer that does not satisfy the schema.
    pub answer_retried: bool,
    /// Replies in a row in which a call could not be run.
    pub faulty_replies: u32,
    /// Whether the reply under way had such a call.
    pub reply_is_faulty: bool,
    pub repetition: Repetition,
    /// The trust label of everything its agent was shown until now.
    pub trust: Trust,
    pub end: Option<FrameEnd>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Entry {
    Reply {
        text: Text,
        slots: Vec<Slot>,
        opaque: Option<Opaque>,
    },
    Notice(Notice),
    /// What is wrong with the answer before it.
    InvalidAnswer(Text),
}

/// A call and its result, which are never parted.
#[derive(Debug, PartialEq)]
pub(super) struct Slot {
    pub call: Call,
    /// The trust label of everything its agent was shown before it made the call.
    pub trust: Trust,
    pub state: SlotState,
}

impl Slot {
    pub fn is_running(&self) -> bool {
        matches!(self.state, SlotState::Running { .. })
    }

    /// Whether its result came after event number `event` of the turn.
    pub fn is_answered_after(&self, event: u32) -> bool {
        matches!(self.state, SlotState::Answered { at, .. } if at > event)
    }

    /// Whether it runs and changes something each time it does.
    pub fn has_effect(&self) -> bool {
        matches!(
            self.state,
            SlotState::Running {
                effect: Effect::Effect,
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
    },
    /// A person is asked whether it may run.
    Asked {
        request: ApprovalRequest,
        since: Timestamp,
    },
    Delegated,
    Answered {
        text: Text,
        failed: bool,
        attachments: Vec<Attachment>,
        /// When it came, counted in the turn's events.
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
    pub fn new(id: FrameId, agent: AgentName, task: Text, trust: Trust) -> Self {
        Self {
            id,
            agent,
            remote: false,
            thread: None,
            task,
            attachments: Vec::new(),
            returned: Vec::new(),
            finish: false,
            entries: Vec::new(),
            waiting_since: 0,
            asked_again: false,
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

    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// Whether its next step is to ask its model.
    pub fn awaits_model(&self) -> bool {
        self.is_open()
            && !self.remote
            && self
                .slots()
                .iter()
                .all(|slot| matches!(slot.state, SlotState::Answered { .. }))
    }

    /// The calls of its last reply.
    pub fn slots(&self) -> &[Slot] {
        match self.entries.last() {
            Some(Entry::Reply { slots, .. }) => slots,
            _ => &[],
        }
    }

    pub fn slot_mut(&mut self, call: &CallId) -> Option<&mut Slot> {
        match self.entries.last_mut() {
            Some(Entry::Reply { slots, .. }) => slots.iter_mut().find(|slot| slot.call.id == *call),
            _ => None,
        }
    }

    /// Calls of its last reply that a person is asked about, and since when.
    pub fn asked(&self) -> impl Iterator<Item = (&ApprovalRequest, Timestamp)> {
        let slots = self.slots().iter().filter(|_| self.is_open());
        slots.filter_map(|slot| match &slot.state {
            SlotState::Asked { request, since, .. } => Some((request, *since)),
            _ => None,
        })
    }

    /// Calls of its last reply that can run now: side by side, but one with effect waits for those before it, and those
    /// after it wait for it. A call that a person is asked about keeps its place in that order.
    pub fn startable(&self) -> Vec<&Slot> {
        let mut startable = Vec::new();
        let mut is_asked = false;
        for slot in self.slots() {
            let effect = match &slot.state {
                SlotState::Running { effect, .. } => *effect,
                SlotState::Asked { request, .. } => {
                    if request.effect == Effect::Effect {
                        break;
                    }
                    is_asked = true;
                    continue;
                }
                SlotState::Open | SlotState::Delegated | SlotState::Answered { .. } => continue,
            };
            let has_effect = effect == Effect::Effect;
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
