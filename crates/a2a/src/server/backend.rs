//! The seam to the agent that does the work. The server speaks the protocol, stores tasks and publishes updates; the agent
//! gets a [`TaskRun`] and reports through a [`Reporter`].

use super::{Report, Reporter, StatusMessage};
use a2a::{Message, Task};
use lango_core::{BoxFuture, StoreError, UserId};
use tokio::sync::watch;

/// The agent that a server exposes.
pub trait AgentBackend: Send + Sync + 'static {
    /// Tells the operator that the store failed. The caller hears only that there was a failure.
    fn store_failed(&self, _error: &StoreError) {}

    /// Performs one run. When it returns, the task was reported as ended or as waiting, or is deferred. A client that
    /// disconnects does not stop it. A run that has reported may clean up before it returns; until then it keeps its slot,
    /// and a message to a task that asked for one waits for it, for [`stop_timeout`](super::ServerLimits::stop_timeout) at most.
    ///
    /// A run may be [resumed](RunCause::Resumed), and where several replicas share a store two of them may have it for a
    /// moment. What must happen once, the agent does under a lease that all replicas respect, after it has looked up by the
    /// [first attempt](super::first_attempt) of the task whether it is done.
    fn run<'a>(&'a self, run: TaskRun, reporter: Reporter) -> BoxFuture<'a, RunResult>;

    /// Returns whether the run of a new task stores the task itself, with [`Reporter::open_with`]. Such a run must have no side effect
    /// before that, unless [`Reporter::is_duplicate`] returned false. Otherwise the server stores the task before it starts the run.
    fn opens_tasks(&self) -> bool {
        false
    }

    /// Checks whether this agent can handle a message, before anything of it is stored. Its media types are among
    /// [`ServerSettings::input_modes`](super::ServerSettings::input_modes).
    fn check(&self, _message: &Message) -> Result<(), MessageError> {
        Ok(())
    }

    /// Stores the files of a message, and returns the message with references in their place, so that the stored task stays
    /// small. Called before anything of the message is stored. What looks like a reference in a client's message is none.
    fn store_files<'a>(
        &'a self,
        _user: &'a UserId,
        message: Message,
    ) -> BoxFuture<'a, Result<Message, FileError>> {
        Box::pin(async { Ok(message) })
    }

    /// Answers a message without a task, if it can do so at once.
    fn answer_directly<'a>(
        &'a self,
        _user: &'a UserId,
        _context: &'a str,
        _message: &'a Message,
    ) -> BoxFuture<'a, Option<StatusMessage>> {
        Box::pin(async { None })
    }

    /// Returns whether no process is at work in a conversation, as far as that is quickly known. Called before an
    /// interrupted task is read.
    fn is_idle<'a>(&'a self, _user: &'a UserId, _context: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }

    /// Returns what became of a task that has not ended and does not run in this process. Called when a client looks at it,
    /// when its run returned without a report, and before it is resumed. A task whose run returned without a report, and of
    /// which the agent knows nothing, has failed.
    fn status<'a>(&'a self, _user: &'a UserId, _task: &'a Task) -> BoxFuture<'a, AgentStatus> {
        Box::pin(async { AgentStatus::Unknown })
    }

    /// Cancels a task that waits. An error says why that is not possible, and the task stays as it is. A run is told
    /// by [`TaskRun::stop`] first, and this is called when it has returned without having reported an end.
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
    /// Another process is running it, or the agent cannot tell right now. The task stays as it is.
    Busy,
    /// The agent has not started it.
    Unknown,
    /// The agent started it, and no process is running it now.
    Interrupted,
    /// The reports that bring the task up to date, in order; empty if nothing changed.
    Changed(Vec<Report>),
}

/// Why a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunCause {
    /// The message opened the task.
    NewTask,
    /// An earlier run for this message was interrupted, possibly in another process. The agent resumes from its own log.
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
    /// The user whose task it is.
    pub user: UserId,
    /// The id of the task.
    pub task: String,
    /// The conversation of the task.
    pub context: String,
    /// Why the run starts.
    pub cause: RunCause,
    /// The client's message.
    pub message: Message,
    /// Says when to stop.
    pub stop: StopSignal,
}

/// A message that an agent cannot handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageError {
    /// Its media type; with a sentence for the client.
    ContentType(String),
    /// Another field, and a sentence for the client.
    Field(String, String),
}

/// Why the files of a message were not stored.
#[derive(Debug)]
pub enum FileError {
    /// The agent cannot handle one of them.
    Message(MessageError),
    /// The store failed.
    Store(StoreError),
}

/// Why a run must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The client cancelled the task.
    Cancelled,
    /// The server shuts down. The run should release what it holds and return: the task stays at work, and the next start
    /// or another replica resumes it.
    Shutdown,
}

/// Says when a run must stop. Clones say the same.
#[derive(Debug, Clone)]
pub struct StopSignal(pub(super) watch::Receiver<Option<StopReason>>);

impl StopSignal {
    /// Returns why the run must stop, if it must.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Waits until the run must stop. If that never comes this never returns, so wait for the work beside it.
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
