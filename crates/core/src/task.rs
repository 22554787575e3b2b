//! The seam to where tasks are kept that somebody outside gave lango. What a task looks like outside is the business of its
//! protocol; here it is a text with what it is found by.

use crate::{BoxFuture, StoreError, Text, Timestamp, UserId};

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
    /// Whether somebody is at work on it. A start that finds it so knows that the work was lost.
    pub is_running: bool,
    /// When its state last changed.
    pub updated: Timestamp,
    /// The task as JSON, in the words of its protocol.
    pub body: Text,
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

/// Where tasks are kept.
pub trait TaskStore: Send + Sync {
    /// Keeps a task as it is now. One of another user under this id is left alone, and that is an error.
    fn put<'a>(&'a self, task: TaskRecord) -> BoxFuture<'a, Result<(), StoreError>>;

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

    /// Tasks of all users that somebody was at work on, as many as this at most.
    fn running<'a>(&'a self, limit: usize) -> BoxFuture<'a, Result<Vec<TaskRecord>, StoreError>>;
}
