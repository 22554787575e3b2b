//! What the server needs of the program around it.

use lango_core::{BoxFuture, SessionCatalog, SessionId, TaskLog, TurnId, UserId};
use lango_engine::{Runner, Shown};
use lango_net::Egress;
use std::fmt::Display;
use std::sync::Arc;

/// The program that runs the server.
pub trait ServerContext: Send + Sync + 'static {
    /// Returns the runner of the next turn.
    fn runner(&self) -> Runner;

    /// Returns the guard through which files at URLs are fetched.
    fn egress(&self) -> Egress;

    /// Returns the catalog of all sessions.
    fn catalog(&self) -> Arc<dyn SessionCatalog>;

    /// Returns the store of tasks together with events.
    fn task_log(&self) -> Arc<dyn TaskLog>;

    /// Starts what follows a turn, such as updating memory. The answer does not wait for it.
    fn turn_ended(&self, user: &UserId, session: &SessionId);

    /// Passes on what a turn of a task shows while it runs.
    fn turn_shown(&self, session: &SessionId, turn: &TurnId, shown: &Shown);

    /// Updates the task of a turn, if it has one, after the turn was continued without it.
    fn turn_continued<'a>(&'a self, user: &'a UserId, turn: &'a TurnId) -> BoxFuture<'a, ()>;

    /// Tells the operator.
    fn notify(&self, notice: Notice<'_>);
}

/// Something that the operator should know.
pub enum Notice<'a> {
    /// A failure. Callers hear no more than that there was one.
    Error(&'a dyn Display),
    /// This server resumed tasks of another server that died.
    TasksResumed {
        /// The number of tasks.
        count: usize,
    },
    /// An interrupted turn was resumed.
    TurnResumed {
        /// Its session.
        session: &'a SessionId,
        /// How it ended, in a word or two.
        outcome: &'a str,
    },
}
