//! The trait of the store for tasks of outside callers. A task is the JSON of its protocol, with the columns it is found by.

use crate::{Batch, BoxFuture, BoxStream, SessionId, StoreError, Text, Timestamp, UserId};

/// A task as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its id, unique over all users.
    pub id: Text,
    /// Whose it is.
    pub user: UserId,
    /// The conversation it belongs to.
    pub context: Text,
    /// The protocol's name of its state.
    pub state: Text,
    /// Whether it has work to do: a replica runs it, or must resume it.
    pub is_running: bool,
    /// When its state last changed.
    pub updated: Timestamp,
    /// The task as JSON of its protocol.
    pub body: Text,
    /// Counts writes; the first is 1.
    pub revision: u64,
    /// How often it was resumed since its run last reported anything.
    pub attempts: u32,
}

/// A task with work to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTask {
    /// Its id.
    pub id: Text,
    /// Whose it is.
    pub user: UserId,
    /// The conversation it belongs to.
    pub context: Text,
    /// When its state last changed.
    pub updated: Timestamp,
    /// Counts writes; the first is 1.
    pub revision: u64,
}

/// The result of storing a new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It is stored.
    New,
    /// The message opened the task of this id before. Nothing was changed.
    Known(Text),
}

/// The result of replacing a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is stored.
    Stored,
    /// Another replica wrote it meanwhile, or it was deleted. Nothing was changed: read it again.
    Overtaken,
}

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskQuery {
    /// Only of this conversation.
    pub context: Option<Text>,
    /// Only in this state.
    pub state: Option<Text>,
    /// Only those whose state changed then or later.
    pub since: Option<Timestamp>,
    /// Only tasks after this one in the list: when its state changed, and its id.
    pub after: Option<(Timestamp, Text)>,
    /// How many at most.
    pub limit: usize,
    /// Whether the whole list is counted, which takes longer the longer it is.
    pub is_counted: bool,
}

/// Some tasks of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskPage {
    /// The tasks: the latest change first, of those at one time the one with the greatest id.
    pub tasks: Vec<TaskRecord>,
    /// The length of the whole list, if it was to be counted.
    pub total: Option<u64>,
}

/// The tasks of callers, for all replicas that share the store.
///
/// When a future resolves, what it changed outlives the machine.
pub trait TaskStore: Send + Sync {
    /// Stores a new task with revision 1, unless a message of this user with this idempotency key opened one before: one
    /// message, one task, over all replicas and for as long as the task is stored.
    fn insert<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>>;

    /// Returns the id of the task that this user's message with this idempotency key opened, if any.
    fn opened_by<'a>(
        &'a self,
        user: &'a UserId,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Option<Text>, StoreError>>;

    /// Replaces a task, if its revision follows the stored one. Fails if the id belongs to another user's task. Storing a task
    /// that does not run any more also removes a request to cancel it.
    fn put<'a>(&'a self, task: TaskRecord) -> BoxFuture<'a, Result<Put, StoreError>>;

    /// Reads a user's task.
    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>>;

    /// Lists a user's tasks.
    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>>;

    /// Lists running tasks of all users after this one, by their last change, then by id.
    fn running<'a>(
        &'a self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunningTask>, StoreError>>;

    /// Stores the request to cancel a running task, for the replica that runs it. Returns whether the task was running.
    fn request_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Lists running tasks with a request to cancel, by id, after this one.
    fn cancel_requests<'a>(
        &'a self,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>>;
}

/// Stores tasks in one transaction with events of their turns. The caller has the lease of the session.
pub trait TaskLog: Send + Sync {
    /// Appends the first events of a turn and [inserts](TaskStore::insert) its task. If the message opened a task before, nothing is
    /// stored.
    fn append_first<'a>(
        &'a self,
        events: Batch,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>>;

    /// Appends the last events of a turn and [replaces](TaskStore::put) its task. The events are stored even if the task was
    /// overtaken. The lease ends with them, so the caller must not append anything else under it.
    fn append_last(
        &self,
        events: Batch,
        task: TaskRecord,
    ) -> BoxFuture<'_, Result<Put, StoreError>>;
}

/// Notifications of what other replicas changed in a shared store. They may come late, twice or not at all: a subscriber
/// reads the store anyway, and a notification only makes it read sooner.
pub trait Changes: Send + Sync {
    /// Subscribes from now on.
    fn changes(&self) -> BoxStream<'static, Change>;
}

/// The subject of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Something was appended to this session.
    Session(SessionId),
    /// The task of this id was written, or a request to cancel it was.
    Task(Text),
    /// Unknown: notifications may have been missed.
    Anything,
}
