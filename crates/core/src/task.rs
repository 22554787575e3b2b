//! The store of tasks that external clients submit. A task is the JSON of its protocol plus the columns to find it by.

use crate::{BoxFuture, BoxStream, EventBatch, SessionId, StoreError, Text, Timestamp, UserId};

/// A stored task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// Unique over all users.
    pub id: Text,
    pub user: UserId,
    /// The conversation that the task belongs to.
    pub context: Text,
    /// The name of the state in the protocol.
    pub state: Text,
    /// Whether the task has work to do: a replica runs it, or must resume it.
    pub is_running: bool,
    /// When the state last changed.
    pub updated: Timestamp,
    /// The task as JSON of its protocol.
    pub body: Text,
    /// The number of writes, starting at 1.
    pub revision: u64,
    /// How often the task was resumed since its run last reported progress.
    pub attempts: u32,
}

/// A task with work to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTask {
    pub id: Text,
    pub user: UserId,
    /// The conversation that the task belongs to.
    pub context: Text,
    /// When the state last changed.
    pub updated: Timestamp,
    /// The number of writes, starting at 1.
    pub revision: u64,
}

/// The result of inserting a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskInsertOutcome {
    New,
    /// The message already opened the task with this id. Nothing was changed.
    Known(Text),
}

/// The result of replacing a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskPutOutcome {
    Stored,
    /// Another replica wrote the task in the meantime, or it was deleted. Nothing was changed; read it again.
    Outdated,
}

/// A filter for listing tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskQuery {
    /// Only tasks of this conversation.
    pub context: Option<Text>,
    /// Only tasks in this state.
    pub state: Option<Text>,
    /// Only tasks whose state changed at this time or later.
    pub since: Option<Timestamp>,
    /// Only tasks that come after this one in the list, given by the time of its last state change and its id.
    pub after: Option<(Timestamp, Text)>,
    /// The maximum number of results.
    pub limit: usize,
    /// Whether to count the whole list. The cost grows with its length.
    pub is_counted: bool,
}

/// One page of a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskPage {
    /// Sorted by the time of the last state change, then by id, both descending.
    pub tasks: Vec<TaskRecord>,
    /// The length of the whole list, if the query asked to count it.
    pub total: Option<u64>,
}

/// The tasks of all clients, shared by all replicas.
///
/// When a future resolves, its change survives a power failure.
pub trait TaskStore: Send + Sync {
    /// Inserts a new task with revision 1, unless an earlier message of this user with the same idempotency key opened
    /// one. While a task is stored, its message opens no second task on any replica.
    fn insert<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<TaskInsertOutcome, StoreError>>;

    /// Returns the id of the task that the user's message with this idempotency key opened, if any.
    fn opened_by<'a>(
        &'a self,
        user: &'a UserId,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Option<Text>, StoreError>>;

    /// Replaces a task if its revision follows the stored one. Fails if the id belongs to another user's task. If the
    /// task is no longer running, this also removes a pending request to cancel it.
    fn put<'a>(&'a self, task: TaskRecord) -> BoxFuture<'a, Result<TaskPutOutcome, StoreError>>;

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

    /// Lists running tasks of all users, sorted by the time of their last state change, then by id. Starts after the
    /// task with the time and id in `after`.
    fn running<'a>(
        &'a self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunningTask>, StoreError>>;

    /// Stores a request to cancel a running task, for the replica that runs it. Returns whether the task was running.
    fn request_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Lists running tasks that have a request to cancel, sorted by id. Starts after the id in `after`.
    fn cancel_requests<'a>(
        &'a self,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>>;
}

/// Stores tasks in one transaction with events of their turns. The caller must own the lease of the session.
pub trait TaskLog: Send + Sync {
    /// Appends the first events of a turn and [inserts](TaskStore::insert) its task. Stores nothing if the message
    /// already opened a task.
    fn append_first<'a>(
        &'a self,
        events: EventBatch,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<TaskInsertOutcome, StoreError>>;

    /// Appends the last events of a turn and [replaces](TaskStore::put) its task. The events are stored even if the
    /// task was outdated. This ends the lease, so the caller must not append anything else under it.
    fn append_last(
        &self,
        events: EventBatch,
        task: TaskRecord,
    ) -> BoxFuture<'_, Result<TaskPutOutcome, StoreError>>;
}

/// Notifications of changes in a shared store, including changes by other replicas. A notification may be late,
/// duplicated or missing. So subscribers also poll the store; notifications only make them read sooner.
pub trait ChangeFeed: Send + Sync {
    /// Subscribes to changes from now on.
    fn subscribe(&self) -> BoxStream<'static, StoreChange>;
}

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreChange {
    /// Events were appended to this session.
    Session(SessionId),
    /// The task with this id, or a request to cancel it, was written.
    Task(Text),
    /// Notifications may have been missed, so anything may have changed.
    Anything,
}
