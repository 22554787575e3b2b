//! The inputs and effects of a task. They are plain values, so tests can construct, compare and replay them.

use super::document::{TaskDocument, Update};
use crate::server::backend::{AgentStatus, RunCause, StopReason};
use crate::server::refusal::Refusal;
use crate::server::render::View;
use crate::server::repetition::Repetition;
use crate::server::shared::Phase;
use crate::server::{Report, ReportError};
use a2a::{Message, TaskState};
use lango_core::{TaskInsertOutcome, TaskPutOutcome};

/// A caller that waits for an answer. The driver maps the number to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::server) struct CallerId(pub u64);

/// A run that waits until its report has been handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct ReportCaller {
    pub id: CallerId,
    /// Whether the run stores its own data in one transaction with the task. If that transaction fails, the report is
    /// undone.
    pub is_joint: bool,
}

/// The number of a run of the agent on this replica. Each loaded task counts from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::server) struct RunId(pub u64);

impl RunId {
    /// The run of a new task.
    pub(crate) const FIRST: Self = Self(1);
}

/// A request of a caller to a task.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum Request {
    /// A client sends a message: the first one of a new task, or a follow-up.
    Submit {
        message: Box<Message>,
        view: View,
    },
    /// A client reads the task or subscribes to it.
    Watch(View),
    Cancel,
    /// The recovery loop found that no replica runs the task.
    Recover {
        is_cancel_requested: bool,
    },
}

/// One input to a task.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum Input {
    Request {
        caller: CallerId,
        request: Request,
    },
    Reported {
        caller: ReportCaller,
        run: RunId,
        report: Report,
    },
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
    /// The server has entered this phase of its shutdown.
    Phase(Phase),
    /// One of the task's [timers](super::Task::timers) has elapsed.
    Elapsed(Timer),
    /// Nothing needs the task in memory any more.
    Unload,
    Result(EffectResult),
}

/// The result of an effect.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum EffectResult {
    /// For [`Effect::Load`].
    Loaded(Result<Box<TaskDocument>, LoadError>),
    /// For [`Effect::Store`].
    Stored(Result<TaskPutOutcome, StoreFailure>),
    /// For [`Effect::StoreNew`].
    Opened(Result<TaskInsertOutcome, StoreFailure>),
    /// For [`Effect::ReserveSlot`].
    Slot(Result<(), Refusal>),
    /// For [`Effect::QueryAgent`].
    AgentStatus(AgentStatus),
    /// For [`Effect::CancelInAgent`]. The error says why the agent cannot cancel the task.
    AgentCancelled(Result<(), String>),
    /// For [`Effect::RequestCancel`].
    CancelStored(Result<(), StoreFailure>),
}

/// A failure of the store, described for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct StoreFailure(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum LoadError {
    NotFound,
    /// The record exists but cannot be parsed.
    Damaged {
        revision: u64,
    },
    Store(StoreFailure),
}

impl LoadError {
    /// Converts the error into a refusal for a caller.
    pub(crate) fn refusal(&self, id: &str) -> Refusal {
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
    /// The run returned. If it did not report the task's status, the server asks the agent for it.
    Returned,
    /// The run returned without a result. A replica resumes the task later.
    Deferred,
    Panicked,
    /// The run did not return in time after a stop signal.
    Aborted,
}

/// A timer of a task. The driver sets the durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::server) enum Timer {
    /// When to store changes that subscribers have already seen.
    Write,
    /// When to abort a run that has not returned after a stop signal.
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
    /// A message to a waiting task. Its run only reads the status, and counts towards no limit.
    FollowUp,
    /// A resumed task. Resumed tasks have separate slots.
    Resumed,
}

/// An action for the driver. The driver performs effects in order. If an effect has a result, the driver passes it to
/// the task as an [`EffectResult`] before any other input.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum Effect {
    /// Loads this task, or another task of the same user.
    Load {
        other: Option<String>,
    },
    /// Stores the current document, if its revision follows the stored one.
    Store,
    /// Stores the new task, unless a message with this key has already opened one.
    StoreNew {
        key: String,
    },
    ReserveSlot(SlotKind),
    /// Releases a slot in which no run was started.
    ReleaseSlot,
    /// Asks the agent for the task's status.
    QueryAgent,
    /// Asks the agent to cancel a task that waits for input or was interrupted.
    CancelInAgent,
    /// Stores a cancel request for the replica that runs the task.
    RequestCancel,
    /// Starts a run in the reserved slot.
    StartRun {
        run: RunId,
        cause: RunCause,
        message: Box<Message>,
    },
    StopRun(StopReason),
    /// Aborts a run that did not stop in time. Its result is [`Input::RunEnded`].
    AbortRun,
    Publish(Update),
    Answer {
        caller: CallerId,
        answer: TaskAnswer,
    },
}

/// An answer to a caller.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::server) enum TaskAnswer {
    /// The current task. The driver adds a subscription to its updates.
    Snapshot {
        json: String,
        state: TaskState,
    },
    /// The message is a duplicate: it already opened the task with this id.
    KnownTask(String),
    /// The message already opened a task, and must open another one.
    OpenAgain(Repetition),
    Recovery(Recovery),
    Report(Result<(), ReportError>),
    Refused(Refusal),
}

/// The result of recovering one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Recovery {
    /// The task runs again, on this replica.
    Resumed,
    /// The task has ended or waits for input.
    Settled,
    /// Another replica runs the task, or it cannot be loaded now.
    Skipped,
    /// All recovery slots are in use.
    NoSlot,
}
