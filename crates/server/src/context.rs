//! The interface between the server and the program that runs it.

use lango_core::{BoxFuture, SessionCatalog, SessionId, TaskLog, TurnId, UserId};
use lango_engine::{Runner, TurnUpdate};
use lango_net::Egress;
use std::fmt::Display;
use std::sync::Arc;

/// The program that runs the server.
pub trait ServerContext: Send + Sync + 'static {
    /// Returns the runner for the next turn.
    fn runner(&self) -> Runner;

    /// Returns the guard for fetching files by URL.
    fn egress(&self) -> Egress;

    fn catalog(&self) -> Arc<dyn SessionCatalog>;

    /// Returns the store that can write a task and events in one transaction.
    fn task_log(&self) -> Arc<dyn TaskLog>;

    /// Starts background work after a turn, such as updating memory. The answer does not wait for it.
    fn turn_ended(&self, user: &UserId, session: &SessionId);

    /// Publishes an update of a task's turn while the turn runs.
    fn publish_update(&self, session: &SessionId, turn: &TurnId, update: &TurnUpdate);

    /// Updates the task of a turn, if it has one, after the turn was continued outside of the task, such as by an
    /// approval.
    fn turn_continued<'a>(&'a self, user: &'a UserId, turn: &'a TurnId) -> BoxFuture<'a, ()>;

    /// Sends a notice to the operator.
    fn notify(&self, notice: Notice<'_>);
}

/// A notice for the operator.
pub enum Notice<'a> {
    /// A failure. Callers only learn that something failed.
    Error(&'a dyn Display),
    /// This server resumed tasks of another server that died.
    TasksResumed { count: usize },
    /// An interrupted turn was resumed.
    TurnResumed {
        session: &'a SessionId,
        /// How the turn ended, in a few words.
        outcome: &'a str,
    },
}
