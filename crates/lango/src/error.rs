//! What can go wrong.

use lango_core::{PendingApproval, StoreError};
use lango_engine::{GateError, RunnerError, TopologyError, TreeError};

/// An error of the library, by what the caller can do about it.
///
/// A turn that ends badly is not an error: its [`TurnReport`](crate::TurnReport) has the
/// [`Outcome`](crate::Outcome).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The topology does not exist or is inconsistent.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The agents and tools do not fit together: duplicate names, an owner that does not exist.
    #[error(transparent)]
    Agents(#[from] TreeError),
    /// A tool of the tree has no code.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// A model is set for an agent that does not exist.
    #[error("there is no agent `{name}`; the agents are {agents}")]
    NoSuchAgent {
        /// The name that no agent has.
        name: String,
        /// The names of the agents that exist.
        agents: String,
    },
    /// The database or the event log failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The turn could not start or continue.
    #[error(transparent)]
    Turn(RunnerError),
    /// The model name is not `provider/model`, or its provider is unknown or has no key.
    #[error("{problem}")]
    Model {
        /// What is missing, and where it was looked for.
        problem: String,
    },
    /// The card of a remote agent cannot be used.
    #[error("the agent `{name}` cannot be used: {problem}")]
    RemoteAgent {
        /// The name it was given here.
        name: String,
        /// What is wrong with its card.
        problem: String,
    },
    /// The folder cannot be a workspace.
    #[error("`{path}` cannot be a workspace: {problem}")]
    Workspace {
        /// The folder.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The turn ended without a report, because it waits for these approvals.
    /// [`Session::answer`](crate::Session::answer) continues it.
    #[error("{} waiting for approval", count(.0.len()))]
    Waiting(Vec<PendingApproval>),
    /// The task of the turn ended early: the runtime was shut down, or a model, store or approver panicked. What was
    /// stored is safe, and the next turn of the session resumes this one.
    #[error("the turn was interrupted; the next turn of its session resumes it")]
    Interrupted,
}

impl From<RunnerError> for Error {
    fn from(error: RunnerError) -> Self {
        match error {
            RunnerError::Store(error) => Self::Store(error),
            error => Self::Turn(error),
        }
    }
}

fn count(calls: usize) -> String {
    lango_core::text::count(calls as u64, "call")
}
