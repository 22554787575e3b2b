//! The interface to an agent on another machine. The orchestrator treats it like any other sub-agent.

use crate::{AgentName, AttachedFile, BoxFuture, BoxStream, Text};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An agent on another machine.
pub trait RemoteAgent: Send + Sync {
    /// Returns the name that the agent is registered under here.
    fn name(&self) -> &AgentName;

    /// Returns the agent's description of itself. It is untrusted.
    fn description(&self) -> &str;

    /// Returns the timeout of a call; `None` for the timeout of tool calls.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Sends a task, or resumes one. The stream ends with the answer or the first error. Dropping the stream only stops
    /// listening: the remote agent continues unless the task is [cancelled](Self::cancel).
    fn call(&self, call: RemoteCall) -> BoxStream<'_, Result<RemoteEvent, RemoteError>>;

    /// Asks the agent to cancel a task. The future does not report whether the agent did so.
    fn cancel<'a>(&'a self, thread: &'a RemoteThread) -> BoxFuture<'a, ()>;
}

/// A request to a remote agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteCall {
    /// A new message: a task, or the reply to a question of the agent.
    Send {
        /// The idempotency key: a call that is sent twice counts once.
        key: String,
        text: Text,
        files: Vec<AttachedFile>,
        /// The conversation to continue, with the task that waits for a reply, if there is one.
        thread: Option<RemoteThread>,
    },
    /// A request for the result of a task that the agent accepted before this process restarted.
    Resume { thread: RemoteThread },
}

/// A conversation with a remote agent. The ids are the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteThread {
    /// The id of the conversation.
    pub context: Text,
    /// The id of the unfinished task in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Text>,
}

/// An item of a remote agent's stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteEvent {
    /// The agent accepted the task. Sent at most once, before the answer.
    Accepted(RemoteThread),
    /// The next piece of a draft of the answer.
    Text(String),
    /// The draft so far is void.
    Withdrawn,
    /// The result, or a question back; the last item.
    Answer(RemoteAnswer),
}

/// A remote agent's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAnswer {
    pub text: String,
    pub files: Vec<AttachedFile>,
    /// The conversation. If it names a task, the text is a question, and the task continues with the reply.
    pub thread: Option<RemoteThread>,
}

/// Creates an answer without files and without a conversation to continue.
impl From<String> for RemoteAnswer {
    fn from(text: String) -> Self {
        Self {
            text,
            files: Vec::new(),
            thread: None,
        }
    }
}

/// A failed call of a remote agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("remote agent `{agent}` failed: {detail}")]
pub struct RemoteError {
    pub agent: AgentName,
    pub detail: String,
    /// Whether the outcome is unknown: the agent received the task and may have done it, but sent no result.
    pub is_unknown: bool,
}
