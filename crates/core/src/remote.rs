//! The seam to an agent that runs somewhere else. To the orchestrator it is a sub-agent under the same rules.

use crate::{AgentName, AttachedFile, BoxFuture, BoxStream, Text};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An agent on another machine.
pub trait RemoteAgent: Send + Sync {
    /// The name it is registered under here.
    fn name(&self) -> &AgentName;

    /// What it says of itself.
    fn description(&self) -> &str;

    /// Returns how long a call may take, if that is not the time of a tool call.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Gives it a task, or asks what became of one. The stream ends with the answer or the first error; dropping it stops
    /// listening, and nothing else: the other side goes on unless it is told to [stop](Self::cancel).
    fn call(&self, call: RemoteCall) -> BoxStream<'_, Result<RemoteEvent, RemoteError>>;

    /// Tells it to stop working on a task. Nobody waits to hear whether it did.
    fn cancel<'a>(&'a self, thread: &'a RemoteThread) -> BoxFuture<'a, ()>;
}

/// What a remote agent is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteCall {
    /// To do something.
    Send {
        /// The name of this one call among all calls: sent twice, it is still one.
        key: String,
        /// What it is to do.
        text: Text,
        /// The files that it is given with that.
        files: Vec<AttachedFile>,
        /// The conversation this goes on with, and the task in it that waits for words, if one does.
        thread: Option<RemoteThread>,
    },
    /// What became of a task that it accepted before our process ended.
    GoOn {
        /// The conversation and the task.
        thread: RemoteThread,
    },
}

/// A conversation with a remote agent, by the names that it gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteThread {
    /// The conversation.
    pub context: Text,
    /// The task in it that is not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Text>,
}

/// What comes from a remote agent while it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteEvent {
    /// It took the task under this name. Comes at most once, before the answer.
    Accepted(RemoteThread),
    /// More of a text that may become the answer.
    Text(String),
    /// The text so far will not become the answer.
    Withdrawn,
    /// It is done, or asks back.
    Answer(RemoteAnswer),
}

/// What a remote agent answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAnswer {
    /// The words.
    pub text: String,
    /// The files that came with them.
    pub files: Vec<AttachedFile>,
    /// The conversation; with a task if the words are a question, and the task goes on with the reply to it.
    pub thread: Option<RemoteThread>,
}

/// An answer without files that opens no conversation.
impl From<String> for RemoteAnswer {
    fn from(text: String) -> Self {
        Self {
            text,
            files: Vec::new(),
            thread: None,
        }
    }
}

/// Why a remote agent gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("remote agent `{agent}` failed: {detail}")]
pub struct RemoteError {
    /// The agent.
    pub agent: AgentName,
    /// What was seen.
    pub detail: String,
    /// Whether it may have done what it was asked: it got the task, and then nothing more was heard.
    pub is_unknown: bool,
}
