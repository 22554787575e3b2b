//! The seam to where tasks are kept that somebody outside gave lango. What a task looks like outside is the business of its
//! protocol; here it is a text with what it is found by.

use crate::{BoxFuture, BoxStream, SessionId, StoreError, Text, Timestamp, UserId};

/// A task as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its id, which is its own over all users.
    pub id: Text,
    /// Whose it is.
    pub user: UserId,
    /// The conversation it belongs to.
    pub context: Text,
    /// The protocol's word for how it stands.
    pub state: Text,
    /// Whether there is work to do on it: somebody is at it, or has to take it up.
    pub is_running: bool,
    /// When its state last changed.
    pub updated: Timestamp,
    /// The task as JSON, in the words of its protocol.
    pub body: Text,
    /// Which writing of it this is; the first is 1.
    pub revision: u64,
    /// How often it was taken up again since somebody at work on it last said something.
    pub attempts: u32,
}

/// A task that there is work to do on.
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
    /// Which writing of it is kept.
    pub revision: u64,
}

/// What became of a task that was to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It is kept now.
    New,
    /// The message opened one before, which has this id. Nothing was changed.
    Known(Text),
}

/// What became of a task that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is kept now.
    Kept,
    /// Somebody else has written it meanwhile, or it is gone. Nothing was changed: read it again.
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
    /// Only what comes after this task in the list: when its state changed, and its id.
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
    /// How many the whole list has, if that was asked for.
    pub total: Option<u64>,
}

/// Where tasks are kept, for all copies of the program that share it.
///
/// When a future resolves, what it changed outlives the machine.
pub trait TaskStore: Send + Sync {
    /// Keeps a new task, unless a message of this user with this mark opened one before: one message, one task, over all
    /// copies and for as long as the task is kept. The task's revision is 1.
    fn keep_new<'a>(
        &'a self,
        task: TaskRecord,
        message: &'a str,
    ) -> BoxFuture<'a, Result<Opened, StoreError>>;

    /// Keeps a task as it is now, if its revision follows the one that is kept. One of another user under this id is left
    /// alone, and that is an error. A task that is not running any more needs not be cancelled any more either.
    fn put<'a>(&'a self, task: TaskRecord) -> BoxFuture<'a, Result<Put, StoreError>>;

    /// A user's task.
    fn get<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<TaskRecord>, StoreError>>;

    /// A user's tasks.
    fn list<'a>(
        &'a self,
        user: &'a UserId,
        query: TaskQuery,
    ) -> BoxFuture<'a, Result<TaskPage, StoreError>>;

    /// Tasks of all users that there is work to do on, after this one: in the order of their last change, then of their ids.
    fn running<'a>(
        &'a self,
        after: Option<(Timestamp, Text)>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunningTask>, StoreError>>;

    /// Notes that a running task is to be cancelled, for whoever is at work on it. Says whether it was running.
    fn ask_to_cancel<'a>(
        &'a self,
        user: &'a UserId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Running tasks that are to be cancelled, in the order of their ids, after this one.
    fn to_cancel<'a>(
        &'a self,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Text>, StoreError>>;
}

/// Hints of what other copies of the program changed in a store that they share. They may come late, twice or not at all:
/// whoever has to know looks at the store, and a hint only says that looking is worth it now.
pub trait Changes: Send + Sync {
    /// The hints from now on.
    fn changes(&self) -> BoxStream<'static, Change>;
}

/// What a hint is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Something was appended to this session.
    Session(SessionId),
    /// The task of this id was written, or is to be cancelled.
    Task(Text),
    /// Anything: for a while nobody was listening.
    Anything,
}
