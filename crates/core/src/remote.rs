//! The seam to an agent that runs somewhere else. To the orchestrator it is a sub-agent under the same rules.

use crate::{AgentName, BoxFuture, SessionId, Text};

/// An agent on another machine.
pub trait RemoteAgent: Send + Sync {
    /// The name it is registered under here.
    fn name(&self) -> &AgentName;

    /// What it says of itself.
    fn description(&self) -> &str;

    /// Gives it a task of a session and waits for the answer.
    fn call<'a>(
        &'a self,
        session: &'a SessionId,
        task: Text,
    ) -> BoxFuture<'a, Result<String, RemoteError>>;
}

/// Why a remote agent gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("remote agent `{agent}` failed: {detail}")]
pub struct RemoteError {
    /// The agent.
    pub agent: AgentName,
    /// What was seen.
    pub detail: String,
}
