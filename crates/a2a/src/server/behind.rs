//! The seam to the agent that does the work. The server speaks the protocol, keeps the tasks and tells whoever listens; the
//! agent behind it gets a [`Job`], and says through [`Reports`] how it goes.

use super::{Report, Reports, Words};
use a2a::{Message, Task};
use lango_core::{BoxFuture, StoreError, UserId};
use tokio::sync::watch;

/// The agent behind the server.
pub trait AgentBehind: Send + Sync + 'static {
    /// Does one job. It is over when this returns: by then the task was reported as ended, or as waiting for somebody, or
    /// is put off. A client that goes away does not stop it. A job that has reported may tidy up before it returns; until
    /// then it has its place among those at work, and a message to a task that asked for one waits for it, for
    /// [`stop_wait`](super::ServerLimits::stop_wait) at most.
    ///
    /// A job may come [again](Start::Again), and where several servers share a store it may, for a moment, be with two of
    /// them: what must not be done twice the agent does under a hold that all copies of it respect, and looks by the
    /// task's id whether it is done.
    fn work<'a>(&'a self, job: Job, reports: Reports) -> BoxFuture<'a, Ended>;

    /// Whether this agent can do something with a message; asked before anything is kept of it. That its media types are
    /// among [`ServerSettings::input_modes`](super::ServerSettings::input_modes) has been seen to.
    fn check(&self, _message: &Message) -> Result<(), Unfit> {
        Ok(())
    }

    /// Stores the files of a message where the agent finds them again, and returns the message with references in their
    /// place, so that what is kept of a task stays small. Asked before anything of the message is kept. What comes in such a
    /// reference's form from a client is no reference.
    fn store_files<'a>(
        &'a self,
        _user: &'a UserId,
        message: Message,
    ) -> BoxFuture<'a, Result<Message, FilesNotStored>> {
        Box::pin(async { Ok(message) })
    }

    /// An answer without a task, to a message that opens one. Asked before the task is made, so it should be quick; with
    /// nothing to say at once there will be a task.
    fn answer_at_once<'a>(
        &'a self,
        _user: &'a UserId,
        _context: &'a str,
        _message: &'a Message,
    ) -> BoxFuture<'a, Option<Words>> {
        Box::pin(async { None })
    }

    /// Whether nobody is at work in a conversation, in this process or another, as far as that is quickly known. Asked
    /// before a task is taken up that a copy may have left behind.
    fn is_free<'a>(&'a self, _user: &'a UserId, _context: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }

    /// What became of a task that has not ended and that nobody is at work on in this process. Asked when somebody looks at
    /// it, when its job returned without having said how it stands, and before it is taken up again. A task whose job
    /// returned without a word, and of which nothing is known, has failed.
    fn catch_up<'a>(&'a self, _user: &'a UserId, _task: &'a Task) -> BoxFuture<'a, Standing> {
        Box::pin(async { Standing::Unknown })
    }

    /// Takes back what waits for somebody. An error says why that was not possible, and the task stands as it did. A job at
    /// work is told by [`Job::cancelled`] first, and this is asked when it has returned without having reported an end.
    fn cancel<'a>(
        &'a self,
        _user: &'a UserId,
        _task: &'a Task,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// What is known of a task that nobody is at work on in this process.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Somebody else is at work on it, or it could not be looked at now: it is left as it is.
    Held,
    /// Nothing is known of it: it was not begun.
    Unknown,
    /// It was begun, and nobody is at work on it.
    Unfinished,
    /// This became of it, in order; nothing if it stands as it did.
    Reports(Vec<Report>),
}

/// Why there is a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The message opened the task.
    New,
    /// A job for this message was begun before, maybe by another process, and did not come to its end. How far it came the
    /// agent has to know.
    Again,
    /// The task waited, and this is a message to it.
    More,
}

/// How a job returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It has said how the task stands. If it has not, the agent is asked.
    Said,
    /// It cannot be done now, or not here: the task stays at work, and is taken up again later, here or by another copy.
    Later,
}

/// Something to do.
#[derive(Debug, Clone)]
pub struct Job {
    /// For whom.
    pub user: UserId,
    /// The task it is part of.
    pub task: String,
    /// The conversation it is part of.
    pub context: String,
    /// Why there is this job.
    pub start: Start,
    /// What the client said.
    pub message: Message,
    /// Says when to stop.
    pub cancelled: Cancelled,
}

/// A message that an agent can do nothing with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Its media type; with a sentence for the client.
    ContentType(String),
    /// Something else: the field, and a sentence for the client.
    Field(String, String),
}

/// Why the files of a message were not stored.
#[derive(Debug)]
pub enum FilesNotStored {
    /// The agent can do nothing with one of them.
    Unfit(Unfit),
    /// The store failed.
    Store(StoreError),
}

/// Why a job should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The client took the task back. It will be shown as cancelled.
    Cancelled,
    /// The server stops. The job should let go of what it holds and return: the task stays at work, and is taken up again
    /// by the next start or by another copy.
    ServerStops,
}

/// Says when a job should stop. Clones say the same.
#[derive(Debug, Clone)]
pub struct Cancelled(pub(super) watch::Receiver<Option<StopReason>>);

impl Cancelled {
    /// Why the job should stop, if it should.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Waits until the job should stop. If that never comes this never returns, so wait for the work beside it.
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
