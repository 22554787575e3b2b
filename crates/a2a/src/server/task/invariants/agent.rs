//! The agent of the simulated replicas: a log that survives crashes, and a lease that only one run has at a time.

use crate::server::backend::{AgentStatus, StopReason};
use crate::server::task::RunId;
use crate::server::task::TaskDocument;
use crate::server::{Report, StatusMessage};
use a2a::TaskState;
use std::collections::HashMap;

/// The logged state of the turn for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Started,
    Waiting,
    Completed,
    Cancelled,
}

#[derive(Debug, Default)]
pub(super) struct Agent {
    pub log: HashMap<String, Turn>,
    /// The replica whose run has the lease of the session.
    pub lease: Option<usize>,
}

/// A run on one replica.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SimRun {
    pub id: RunId,
    pub message: String,
    pub stop: Option<StopReason>,
    pub has_lease: bool,
    /// The remaining reports before the run returns.
    pub ending: Option<Vec<Report>>,
    /// Whether the run waits for the answer to a report.
    pub is_blocked: bool,
    /// Whether the end of the turn could not be stored.
    pub has_failed: bool,
}

impl Agent {
    pub(super) fn turn(&self, message: &str) -> Option<Turn> {
        self.log.get(message).copied()
    }

    pub(super) fn status(&self, document: &TaskDocument) -> AgentStatus {
        let message = document.last_user_message();
        let turn = message.and_then(|message| self.turn(&message.message_id));
        match turn {
            Some(Turn::Completed | Turn::Cancelled) => AgentStatus::Changed(self.ending(turn)),
            _ if self.lease.is_some() => AgentStatus::Busy,
            Some(Turn::Waiting) if *document.state() == TaskState::InputRequired => {
                AgentStatus::Changed(Vec::new())
            }
            Some(Turn::Waiting) => AgentStatus::Changed(self.ending(turn)),
            Some(Turn::Started) => AgentStatus::Interrupted,
            None => AgentStatus::Unknown,
        }
    }

    pub(super) fn ending(&self, turn: Option<Turn>) -> Vec<Report> {
        match turn {
            Some(Turn::Completed) => vec![Report::Completed("done".into())],
            Some(Turn::Cancelled) => vec![Report::Cancelled(StatusMessage::empty())],
            Some(Turn::Waiting) => vec![Report::InputRequired("which one?".into())],
            Some(Turn::Started) | None => Vec::new(),
        }
    }

    /// Cancels a turn that waits or was interrupted.
    pub(super) fn cancel(&mut self, document: &TaskDocument) -> Result<(), String> {
        if self.lease.is_some() {
            return Err("another process is running it".to_owned());
        }
        if let Some(message) = document.last_user_message() {
            let turn = self.log.entry(message.message_id.clone());
            let turn = turn.or_insert(Turn::Cancelled);
            if *turn != Turn::Completed {
                *turn = Turn::Cancelled;
            }
        }
        Ok(())
    }
}
