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
//! The status that clients see (submitted, working, …) is part of the task's document. [`State`] is about this replica:
//! whether it runs the task, and what it has yet to store.

use super::document::{Checkpoint, Update};
use super::io::{CallerId, Recovery, ReportCaller, Request, RunEnd, RunId};
use crate::server::Report;
use crate::server::backend::{AgentStatus, StopReason};
use crate::server::render::View;
use a2a::Message;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    /// In memory only: its first message is not stored yet. `key` is the idempotency key of that message.
    New { key: String },
    /// The agent runs here.
    Running(Run),
    /// The agent runs here, but the stored task was deleted. The run gets a stop signal; when it has ended, the task is
    /// unloaded.
    Orphaned(RunId),
    /// No run here: the task waits, has ended, runs on another replica, or was interrupted.
    Idle(Idle),
    /// Unloaded, because memory and store may differ or there is nothing to load. The next caller loads the task again.
    Retired,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub id: RunId,
    /// How many times the task had been resumed when this run started.
    pub attempts: u32,
    pub stop: Stop,
    /// A report of this run that settles the task, but could not be stored yet.
    pub unstored: Option<Report>,
    /// A follow-up message that waits until this run has returned.
    pub queued: Option<Submission>,
    /// Whether another replica has ended the task or stored a newer message. Then the reports of this run do not apply
    /// to the document any more.
    pub is_superseded: bool,
}

/// Whether a run has been signalled to stop.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stop {
    NotRequested,
    /// A later request does not change the reason.
    Requested {
        reason: StopReason,
        /// A cancel whose callers get an answer when the run has ended.
        cancel: Option<PendingCancel>,
    },
}

/// A cancel in progress, and the callers that wait for it. If another replica accepted the cancel, there are no
/// callers.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct PendingCancel {
    pub callers: Vec<CallerId>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Idle {
    pub outcome: RunOutcome,
    /// A cancel that another replica has to perform.
    pub cancel: Option<PendingCancel>,
    /// Whether the document was loaded for the current input.
    pub is_fresh: bool,
    /// Whether the task can be resumed, according to the agent. `None` if the agent was not asked, or a replica runs
    /// the task.
    pub resumable: Option<Resumable>,
    /// How many times another replica wrote the task before the current follow-up could be stored.
    pub lost_races: usize,
}

impl Idle {
    pub(super) fn new(outcome: RunOutcome, cancel: Option<PendingCancel>) -> Self {
        Self {
            outcome,
            cancel,
            is_fresh: false,
            resumable: None,
            lost_races: 0,
        }
    }

    pub(super) fn is_unstored(&self) -> bool {
        matches!(self.outcome, RunOutcome::Unstored(_))
    }
}

/// A message, and the caller that waits for the answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Submission {
    pub caller: CallerId,
    pub message: Box<Message>,
    pub view: View,
}

/// The outcome of the last run on this replica.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunOutcome {
    /// The document has the task's current status.
    Stored,
    /// The run reported no status. If the agent does not know it either, the task fails.
    Unreported(RunEnd),
    /// The reported status could not be stored. It must be stored before anything else.
    Unstored(Report),
}

/// One step of handling an input. It may await the result of an effect.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Loads the task again, if another replica may have written it.
    Refresh {
        is_required: bool,
    },
    /// Updates a task without a run with the agent's status.
    Sync,
    Decide {
        caller: CallerId,
        request: Request,
    },
    Record {
        report: Report,
        reporter: Option<ReportCaller>,
    },
    /// Stores changes that have been published but not stored.
    Flush,
    /// Fails a task whose run has panicked too often.
    LimitAttempts {
        attempts: u32,
    },
    /// Decides what to do after the end of a run.
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
    /// Stores the cancel, for the replica that resumes the task.
    RequestCancel,
    EndCancelled,
    AnswerCancels {
        obstacle: Option<String>,
    },
}

/// The continuation that awaits the result of an effect.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Await {
    Refreshed {
        is_required: bool,
    },
    AgentStatus,
    Slot(Admission),
    Opened(Submission),
    /// Awaits the task that the message had already opened.
    KnownTask {
        submission: Submission,
        known: String,
    },
    Stored {
        write: Write,
        tries: usize,
    },
    /// Awaits the task as another replica has written it.
    Conflict {
        write: Write,
        tries: usize,
    },
    Claimed(Claim),
    /// Awaits the task after another replica wrote it before the follow-up could be stored.
    Reloaded(Submission),
    AgentCancel,
    CancelStored,
}

/// How far the agent got with a task that no replica runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resumable {
    NotStarted,
    /// The agent has started the work.
    Interrupted,
}

impl Resumable {
    pub(super) fn of(status: &AgentStatus) -> Option<Self> {
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

/// A request to resume the task on this replica.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resume {
    /// The caller that waits for the result; `None` for a cancel.
    pub caller: Option<CallerId>,
    pub resumable: Resumable,
    /// Whether the task is resumed only to be cancelled.
    pub is_cancelled: bool,
}

/// A write that claims a run for this replica: if the store accepts it, this replica starts the run. A claim never
/// overwrites what another replica has written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Claim {
    /// A message to a waiting task.
    FollowUp {
        submission: Submission,
        update: Update,
    },
    /// Another attempt at an interrupted task.
    Resume {
        resume: Resume,
        message: Box<Message>,
    },
}

/// Any other write of the document. A run overwrites what another replica wrote about the same message, unless the task
/// has ended there.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    /// A status, which is published once it is stored.
    Status(Box<StatusWrite>),
    /// Changes that are already published.
    Flush,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatusWrite {
    /// The document before the status was applied.
    pub checkpoint: Checkpoint,
    pub report: Report,
    pub updates: Vec<Update>,
    pub reporter: Option<ReportCaller>,
}
