//! What goes into a task and what comes out of it: plain values, which a test can write down, compare and replay.

use super::document::{TaskDocument, Update};
use crate::server::backend::{AgentStatus, RunCause, StopReason};
use crate::server::refusal::Refusal;
use crate::server::render::View;
use crate::server::repetition::Repetition;
use crate::server::shared::Phase;
use crate::server::{Report, ReportError};
use a2a::{Message, TaskState};
use lango_core::{Opened, Put};

/// A caller that waits for an answer. The driver knows the channel behind the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::server) struct CallerId(pub u64);

/// A run that waits until its report is in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct ReportCaller {
    pub id: CallerId,
    /// Whether the run stores what it reports in one transaction with the task. If that fails, it has not happened.
    pub is_joint: bool,
}

/// A run of the agent on this replica, counted from 1 in each loaded task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::server) struct RunId(pub u64);

impl RunId {
    /// The run of a new task.
    pub const FIRST: Self = Self(1);
}

/// What a caller wants of a task.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum Request {
    /// A client sends a message: the first one of a new task, or a follow-up.
    Submit { message: Box<Message>, view: View },
    /// A client wants to see the task.
    Watch(View),
    /// A client cancels the task.
    Cancel,
    /// The recovery loop found no replica at work on the task.
    Recover { is_cancel_requested: bool },
}

/// One input of a task.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum Input {
    Request {
        caller: CallerId,
        request: Request,
    },
    /// The run says how it goes.
    Reported {
        caller: ReportCaller,
        run: RunId,
        report: Report,
    },
    /// The run is over.
    RunEnded {
        run: RunId,
        end: RunEnd,
    },
    /// Another replica stored a request to cancel the run here.
    CancelRequested,
    /// Another replica may have written the task.
    StoreChanged,
    /// Clients subscribed to the task, or the last one left.
    Subscribers {
        any: bool,
    },
    /// How far the server is with stopping.
    Phase(Phase),
    /// A timer that the task [wants](super::Task::timers) has elapsed.
    Elapsed(Timer),
    /// Nothing needs the task in memory any more.
    Unload,
    /// What an effect led to.
    Result(EffectResult),
}

/// What an effect that has a result led to.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum EffectResult {
    /// Of [`Effect::Load`].
    Loaded(Result<Box<TaskDocument>, LoadError>),
    /// Of [`Effect::Store`].
    Stored(Result<Put, StoreFailure>),
    /// Of [`Effect::StoreNew`].
    Opened(Result<Opened, StoreFailure>),
    /// Of [`Effect::ReserveSlot`]: why there was none.
    Slot(Result<(), Refusal>),
    /// Of [`Effect::QueryAgent`].
    AgentStatus(AgentStatus),
    /// Of [`Effect::CancelInAgent`]; an error says why the agent cannot.
    AgentCancelled(Result<(), String>),
    /// Of [`Effect::RequestCancel`].
    CancelStored(Result<(), StoreFailure>),
}

/// A failure of the store, in words for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct StoreFailure(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum LoadError {
    NotFound,
    /// The record exists and cannot be read.
    Damaged {
        revision: u64,
    },
    Store(StoreFailure),
}

impl LoadError {
    /// Returns what a caller hears of it.
    pub fn refusal(&self, id: &str) -> Refusal {
        match self {
            Self::NotFound => Refusal::no_task(id),
            Self::Damaged { .. } => Refusal::damaged(id),
            Self::Store(_) => Refusal::store_failure(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum RunEnd {
    /// It returned after reporting the task's status. If it did not report, the server asks the agent.
    Returned,
    /// It returned without a result. A replica resumes the task later.
    Deferred,
    Panicked,
    /// It was told to stop and did not return in time.
    Aborted,
}

/// Timers of a task. The driver sets their durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::server) enum Timer {
    /// When to store changes that subscribers have already seen.
    Write,
    /// When to abort a run that was told to stop.
    RunDeadline,
    /// When to ask the agent for the task's status again.
    Poll,
    /// When to read what another replica has stored.
    Follow,
    /// When to give up waiting for another replica to cancel the task.
    CancelDeadline,
}

/// What a slot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum SlotKind {
    /// A new task, which may wait for its slot.
    NewTask,
    /// A message to a task that waits. Its run only reads, and counts towards no limit.
    FollowUp,
    /// A resumed task. These have slots of their own.
    Resumed,
}

/// One thing that the driver must do, in this order. Those with a result answer with an [`EffectResult`] before any other
/// input.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum Effect {
    /// Reads the record of this task, or that of another of the same user.
    Load {
        other: Option<String>,
    },
    /// Writes the document as it is now, if its revision follows the stored one.
    Store,
    /// Stores the new task, unless a message with this key opened one before.
    StoreNew {
        key: String,
    },
    ReserveSlot(SlotKind),
    /// Gives back a slot that no run was started in.
    ReleaseSlot,
    /// Asks the agent what became of the task.
    QueryAgent,
    /// Has the agent cancel what waits for an answer or was interrupted.
    CancelInAgent,
    /// Stores a request to cancel, for the replica at work on the task.
    RequestCancel,
    /// Starts the agent in the reserved slot.
    StartRun {
        run: RunId,
        cause: RunCause,
        message: Box<Message>,
    },
    StopRun(StopReason),
    /// Ends a run that did not stop in time; answers with [`Input::RunEnded`].
    AbortRun,
    Publish(Update),
    Answer {
        caller: CallerId,
        answer: Answer,
    },
}

/// An answer for a caller.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum Answer {
    /// The task as it is, with a subscription to what follows.
    Snapshot {
        json: String,
        state: TaskState,
    },
    /// The message opened the task of this id before.
    KnownTask(String),
    /// The message has opened a task before, and must open another one.
    OpenAgain(Repetition),
    Recovery(Recovery),
    Report(Result<(), ReportError>),
    Refused(Refusal),
}

/// What the recovery of one task led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Recovery {
    /// It runs here again.
    Resumed,
    /// It has ended or waits.
    Settled,
    /// Another replica has it, or it cannot be read now.
    Skipped,
    /// All slots for recovery are taken.
    NoSlot,
}
