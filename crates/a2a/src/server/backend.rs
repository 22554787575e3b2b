//! The interface to the agent that does the work. The server implements the protocol, stores tasks and publishes
//! updates; the agent receives a [`TaskRun`] and reports through a [`Reporter`].

use super::{Report, Reporter, StatusMessage};
use a2a::{Message, Task};
use lango_core::{BoxFuture, StoreError, UserId};
use tokio::sync::watch;

/// The agent that a server exposes.
pub trait AgentBackend: Send + Sync + 'static {
    /// Reports a failure of the store to the operator. Clients only learn that something failed.
    fn store_failed(&self, _error: &StoreError) {}

    /// Performs one run. Before it returns, it must report the task as ended or as waiting for input, or defer it. A
    /// client that disconnects does not stop the run. After its last report a run may clean up, but it keeps its slot
    /// until it returns. A follow-up message waits for it to return, at most for
    /// [`stop_timeout`](super::ServerLimits::stop_timeout).
    ///
    /// A run may be [resumed](RunCause::Resumed). If several replicas share a store, two of them may briefly run the
    /// same task. Work that must happen only once needs a lease that all replicas respect, and a check whether it was
    /// already done for the [first attempt](super::first_attempt) at the task.
    fn run<'a>(&'a self, run: TaskRun, reporter: Reporter) -> BoxFuture<'a, RunResult>;

    /// Returns whether the run of a new task stores the task itself, with [`Reporter::open_with`]. Such a run must have
    /// no side effect before that, unless [`Reporter::is_duplicate`] returned false. Otherwise the server stores the
    /// task before it starts the run.
    fn opens_tasks(&self) -> bool {
        false
    }

    /// Checks whether this agent can handle a message, before anything of it is stored. Its media types are among
    /// [`ServerSettings::input_modes`](super::ServerSettings::input_modes).
    fn check(&self, _message: &Message) -> Result<(), MessageError> {
        Ok(())
    }

    /// Stores the files of a message, and returns the message with references in their place, so that the stored task
    /// stays small. Called before anything of the message is stored. Must remove references that the client has forged.
    fn store_files<'a>(
        &'a self,
        _user: &'a UserId,
        message: Message,
    ) -> BoxFuture<'a, Result<Message, FileError>> {
        Box::pin(async { Ok(message) })
    }

    /// Answers a message without creating a task, if the agent can do so immediately.
    fn answer_directly<'a>(
        &'a self,
        _user: &'a UserId,
        _context: &'a str,
        _message: &'a Message,
    ) -> BoxFuture<'a, Option<StatusMessage>> {
        Box::pin(async { None })
    }

    /// Returns whether no process is running a turn of the conversation. This is a cheap check before an interrupted
    /// task is loaded. Return false if that is not known right now: a later scan checks again.
    fn is_idle<'a>(&'a self, _user: &'a UserId, _context: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }

    /// Returns the agent's status of a task that has not ended and does not run in this process. Called when a client
    /// reads the task, when its run returned without a report, and before it is resumed. If a run returned without a
    /// report and this returns [`AgentStatus::Unknown`], the task fails.
    fn status<'a>(&'a self, _user: &'a UserId, _task: &'a Task) -> BoxFuture<'a, AgentStatus> {
        Box::pin(async { AgentStatus::Unknown })
    }

    /// Cancels a task that has no run. The error says why the task cannot be cancelled; the task then stays unchanged.
    /// If there is a run, it gets a signal through [`TaskRun::stop`] first, and this is called only if it returns
    /// without ending the task.
    fn cancel<'a>(
        &'a self,
        _user: &'a UserId,
        _task: &'a Task,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// The agent's view of a task that is not running in this process.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentStatus {
    /// Another process is running the task, or the agent cannot tell right now. The task stays unchanged.
    Busy,
    /// The agent has not started the task.
    Unknown,
    /// The agent has started the task, but no process is running it now.
    Interrupted,
    /// The reports that bring the task up to date, in order; empty if nothing changed.
    Changed(Vec<Report>),
}

/// Why a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunCause {
    /// The message opened the task.
    NewTask,
    /// An earlier run for this message was interrupted, possibly in another process. The agent resumes from its own
    /// log.
    Resumed,
    /// The client sent a message to a task that was waiting for one.
    FollowUp,
}

/// How a run returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunResult {
    /// The run reported the task's status. If it did not, the server asks the agent for it.
    Reported,
    /// The work cannot be done now, or not on this replica. The task stays `working`, and a replica resumes it later.
    Deferred,
}

/// A message for the agent to handle.
#[derive(Debug, Clone)]
pub struct TaskRun {
    pub user: UserId,
    /// The id of the task.
    pub task: String,
    /// The id of the conversation.
    pub context: String,
    pub cause: RunCause,
    pub message: Message,
    pub stop: StopSignal,
}

/// A message that an agent cannot handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageError {
    /// The media type is not supported. Holds an explanation for the client.
    ContentType(String),
    /// The name of another invalid field, and an explanation for the client.
    Field(String, String),
}

/// Why the files of a message were not stored.
#[derive(Debug)]
pub enum FileError {
    /// The agent cannot handle one of the files.
    Message(MessageError),
    Store(StoreError),
}

/// Why a run must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The client cancelled the task.
    Cancelled,
    /// The server shuts down. The run should release its leases and return. The task stays `working`, and the next
    /// start or another replica resumes it.
    Shutdown,
}

/// A signal that tells a run to stop. Clones receive the same signal.
#[derive(Debug, Clone)]
pub struct StopSignal(pub(super) watch::Receiver<Option<StopReason>>);

impl StopSignal {
    /// Returns why the run must stop, or `None` if it may continue.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Waits for the stop signal. Without a signal this never returns, so wait for the work at the same time.
    pub async fn wait(&mut self) -> StopReason {
        loop {
            if let Some(reason) = *self.0.borrow_and_update() {
                return reason;
            }
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
