//! The states of a task on one replica.
//!
//! ```text
//!          first message stored            run ended
//!   New ───────────────────────▶ Running ───────────▶ Idle ──▶ (unloaded)
//!    │                            ▲  │ record gone      │
//!    │ refused                    │  ▼                  │ follow-up, resume
//!    ▼                            │ Orphaned            │
//!   Retired ◀─────────────────────┼──┘                  │
//!                                 └─────────────────────┘
//! ```
//!
//! What clients see of the task (submitted, working, …) is in its document. The state says what this replica does about it.

use super::document::{Mark, Update};
use super::io::{CallerId, Recovery, ReportCaller, Request, RunEnd, RunId};
use crate::server::Report;
use crate::server::backend::{AgentStatus, StopReason};
use crate::server::render::View;
use a2a::Message;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    /// In memory only: its first message is not stored yet. The key recognises that message when it is sent again.
    New { key: String },
    /// The agent runs here.
    Running(Run),
    /// The agent runs here, and the record is gone: the run is told to stop, and then the task is forgotten.
    Orphaned(RunId),
    /// No run here: the task waits, has ended, runs on another replica, or was interrupted.
    Idle(Idle),
    /// Memory and store differ, or there is nothing to load: the next caller loads the task again.
    Retired,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub id: RunId,
    /// How often the task had been resumed when it started.
    pub attempts: u32,
    pub stop: Stop,
    /// A settling status of this run that could not be stored yet.
    pub unstored: Option<Report>,
    /// A message that waits for this run, which has asked for it, to return.
    pub queued: Option<Submission>,
}

/// Whether a run was told to stop.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stop {
    NotRequested,
    /// The first reason counts.
    Requested {
        reason: StopReason,
        /// A cancel that is answered when the run is over.
        cancel: Option<PendingCancel>,
    },
}

/// A cancel that is under way, and the callers that wait for it. Without callers another replica accepted it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PendingCancel {
    pub callers: Vec<CallerId>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Idle {
    pub outcome: RunOutcome,
    /// A cancel that another replica has to perform.
    pub cancel: Option<PendingCancel>,
    /// Whether the document was read by the input that is being handled.
    pub is_fresh: bool,
    /// What the agent said of this document, if no replica is at work on it.
    pub found: Option<Resumable>,
    /// How often the follow-up that is being handled lost the race to store.
    pub lost_races: usize,
}

impl Idle {
    pub fn new(outcome: RunOutcome, cancel: Option<PendingCancel>) -> Self {
        Self {
            outcome,
            cancel,
            is_fresh: false,
            found: None,
            lost_races: 0,
        }
    }

    pub fn is_unstored(&self) -> bool {
        matches!(self.outcome, RunOutcome::Unstored(_))
    }
}

/// A message, and the caller that waits for an answer to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Submission {
    pub caller: CallerId,
    pub message: Box<Message>,
    pub view: View,
}

/// What is left of the last run here.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunOutcome {
    /// Nothing: the document says how the task is.
    Stored,
    /// It did not say how the task is. If the agent does not know either, the task has failed.
    Unreported(RunEnd),
    /// The status that it reported could not be stored. It is stored before anything else.
    Unstored(Report),
}

/// A step of handling an input that is performed at once.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Reads the task again, if another replica may have written it.
    Refresh {
        is_required: bool,
    },
    /// Brings a task without a run up to date with what the agent knows.
    Sync,
    Decide {
        caller: CallerId,
        request: Request,
    },
    Record {
        report: Report,
        reporter: Option<ReportCaller>,
    },
    /// Stores what is published and not stored.
    Flush,
    /// Fails a task whose run has panicked too often.
    LimitAttempts {
        attempts: u32,
    },
    /// Decides what follows a run that is over.
    Conclude {
        end: RunEnd,
        is_deferred: bool,
    },
    AnswerRecovery {
        caller: CallerId,
        recovery: Recovery,
    },
    /// Finishes or answers a cancel that another replica has to perform.
    CheckCancel {
        is_overdue: bool,
    },
    /// Stores the cancel for the replica that resumes the task.
    RequestCancel,
    EndCancelled,
    AnswerCancels {
        obstacle: Option<String>,
    },
}

/// What the result of an effect is for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Await {
    Refreshed {
        is_required: bool,
    },
    AgentStatus,
    Slot(Admission),
    Opened(Submission),
    /// The task that the message opened before.
    KnownTask {
        submission: Submission,
        known: String,
    },
    Stored {
        write: Write,
        tries: usize,
    },
    /// What another replica has written instead.
    Conflict {
        write: Write,
        tries: usize,
    },
    Claimed(Claim),
    /// The task after a follow-up lost the race to store.
    Reloaded(Submission),
    AgentCancel,
    CancelStored,
}

/// A task that no replica is at work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resumable {
    /// The agent has not started it.
    NotStarted,
    /// The agent has started it.
    Interrupted,
}

impl Resumable {
    pub fn of(status: &AgentStatus) -> Option<Self> {
        match status {
            AgentStatus::Unknown => Some(Self::NotStarted),
            AgentStatus::Interrupted => Some(Self::Interrupted),
            AgentStatus::Busy | AgentStatus::Changed(_) => None,
        }
    }
}

/// What a slot is reserved for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Admission {
    Submit(Submission),
    Resume(Resume),
}

/// A task that is resumed here.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resume {
    /// The caller that hears the result; none for a cancel.
    pub caller: Option<CallerId>,
    pub found: Resumable,
    /// Whether it is resumed to be cancelled.
    pub is_cancelled: bool,
}

/// Why a slot was reserved and the document is stored: the replica whose write is accepted starts the run. A claim never
/// overwrites.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Claim {
    /// A message to a waiting task.
    FollowUp {
        submission: Submission,
        update: Update,
    },
    /// One more attempt.
    Resume {
        resume: Resume,
        message: Box<Message>,
    },
}

/// What else the document is stored for. A run overwrites what another replica wrote about the same message, unless that is
/// an end.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    /// A status, published when it is stored.
    Status(Box<StatusWrite>),
    /// What is published already.
    Flush,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatusWrite {
    /// The document before it.
    pub mark: Mark,
    pub report: Report,
    pub updates: Vec<Update>,
    pub reporter: Option<ReportCaller>,
}
