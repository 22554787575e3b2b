//! Text of a running turn that is not stored yet.

use lango_core::{AgentName, Event, EventBody, SessionId, Text, TurnId};
use lango_engine::TurnUpdate;
use serde::Serialize;
use std::collections::HashMap;

/// The maximum length of a draft that a late subscriber gets, in bytes. The rest of a longer draft is dropped.
const MAX_DRAFT_BYTES: usize = 256 * 1024;

/// Output of a running turn that is not in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftUpdate {
    /// More text.
    Text(DraftText),
    /// The text so far will not become the answer.
    Withdrawn(TurnId),
    /// The turn is queued or retries a model call.
    Notice(DraftNotice),
}

/// A part of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftText {
    /// The turn.
    pub turn: TurnId,
    /// The agent that writes.
    pub agent: AgentName,
    /// The next part of the draft, or the whole draft so far if `is_start` is set.
    pub text: Text,
    /// Whether this text starts a draft, and replaces any earlier one.
    pub is_start: bool,
}

/// A notice that a turn is queued or retries a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DraftNotice {
    /// The turn.
    pub turn: TurnId,
    /// `retrying` or `queued`.
    pub kind: &'static str,
    /// The agent whose call is retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The reason, as readable text.
    pub text: String,
}

impl DraftUpdate {
    /// Converts an update of a turn. Returns `None` for stored events and for what only terminals show.
    pub fn of(turn: &TurnId, shown: &TurnUpdate) -> Option<Self> {
        match shown {
            TurnUpdate::Stored(_)
            | TurnUpdate::ModelStarted { .. }
            | TurnUpdate::ModelProgress { .. }
            | TurnUpdate::ToolOutput { .. } => None,
            TurnUpdate::Draft { author, text, .. } => Some(Self::Text(DraftText {
                turn: turn.clone(),
                agent: author.clone(),
                text: text.as_str().into(),
                is_start: false,
            })),
            TurnUpdate::DraftWithdrawn => Some(Self::Withdrawn(turn.clone())),
            TurnUpdate::Queued => Some(Self::Notice(DraftNotice {
                turn: turn.clone(),
                kind: "queued",
                agent: None,
                text: "queued behind another turn of this session".to_owned(),
            })),
            TurnUpdate::Retrying { agent, reason } => Some(Self::Notice(DraftNotice {
                turn: turn.clone(),
                kind: "retrying",
                agent: Some(agent.clone()),
                text: reason.clone(),
            })),
        }
    }
}

/// The draft of a session so far.
pub(super) struct Draft {
    turn: TurnId,
    agent: AgentName,
    text: String,
}

impl Draft {
    /// Updates the drafts with the output of a turn. A draft ends when the reply that it began is stored.
    pub(super) fn note(
        drafts: &mut HashMap<SessionId, Self>,
        session: &SessionId,
        turn: &TurnId,
        shown: &TurnUpdate,
    ) {
        match shown {
            TurnUpdate::Draft { author, text, .. } => match drafts.get_mut(session) {
                Some(draft) if draft.turn == *turn && draft.agent == *author => draft.add(text),
                _ => {
                    let (turn, agent) = (turn.clone(), author.clone());
                    let text = text.clone();
                    drafts.insert(session.clone(), Self { turn, agent, text });
                }
            },
            TurnUpdate::DraftWithdrawn => drop(drafts.remove(session)),
            TurnUpdate::Stored(batch) => {
                let is_reply = |event: &Event| {
                    matches!(
                        event.body,
                        EventBody::AgentMessage { .. }
                            | EventBody::RemoteReturned { .. }
                            | EventBody::TurnFinished { .. }
                    )
                };
                if !drafts.is_empty() && batch.iter().any(is_reply) {
                    drafts.remove(session);
                }
            }
            TurnUpdate::Queued
            | TurnUpdate::Retrying { .. }
            | TurnUpdate::ModelStarted { .. }
            | TurnUpdate::ModelProgress { .. }
            | TurnUpdate::ToolOutput { .. } => {}
        }
    }

    fn add(&mut self, text: &str) {
        if self.text.len() + text.len() <= MAX_DRAFT_BYTES {
            self.text.push_str(text);
        }
    }

    pub(super) fn snapshot(&self) -> DraftText {
        DraftText {
            turn: self.turn.clone(),
            agent: self.agent.clone(),
            text: self.text.as_str().into(),
            is_start: true,
        }
    }
}
