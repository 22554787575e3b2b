//! What an agent reports about a run.

use a2a::Part;
use serde_json::{Map, Value};

/// The metadata key that is false if a task ended before anything ran.
pub(super) const STARTED: &str = "started";

/// The message of a status; the server adds ids and role.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatusMessage {
    /// The parts; none for a status without a message.
    pub parts: Vec<Part>,
    /// Metadata of the message, or of the task if there are no parts.
    pub metadata: Map<String, Value>,
}

impl StatusMessage {
    /// Creates a status without a message.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Marks the end of a task that never started. Sending the same message again starts another attempt.
    pub fn not_started(self) -> Self {
        self.with(STARTED, Value::Bool(false))
    }

    /// Adds metadata.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.metadata.insert(key.to_owned(), value);
        self
    }
}

impl From<&str> for StatusMessage {
    fn from(text: &str) -> Self {
        vec![Part::text(text)].into()
    }
}

impl From<String> for StatusMessage {
    fn from(text: String) -> Self {
        vec![Part::text(text)].into()
    }
}

impl From<Vec<Part>> for StatusMessage {
    fn from(parts: Vec<Part>) -> Self {
        Self {
            parts,
            metadata: Map::new(),
        }
    }
}

/// An artifact, or a chunk of one.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactChunk {
    /// The id of the artifact.
    pub artifact: String,
    /// Its name for people.
    pub name: Option<String>,
    /// The content of this chunk.
    pub parts: Vec<Part>,
    /// Whether it is appended to the artifact; otherwise it replaces it.
    pub is_appended: bool,
    /// Whether it is the last chunk.
    pub is_last: bool,
}

impl ArtifactChunk {
    /// Creates a whole artifact.
    pub fn whole(artifact: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact: artifact.into(),
            name: None,
            parts,
            is_appended: false,
            is_last: true,
        }
    }

    /// Creates a chunk of text. The first one creates the artifact.
    pub fn more(artifact: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            artifact: artifact.into(),
            name: None,
            parts: vec![Part::text(text)],
            is_appended: true,
            is_last: false,
        }
    }

    /// Sets the name for people.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Marks it as the last chunk.
    pub fn last(mut self) -> Self {
        self.is_last = true;
        self
    }
}

/// One change of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Progress.
    Working(StatusMessage),
    /// An artifact, or a chunk of one.
    Artifact(ArtifactChunk),
    /// The client must send a message.
    InputRequired(StatusMessage),
    /// Somebody must allow something; the message says what.
    AuthRequired(StatusMessage),
    /// It succeeded.
    Completed(StatusMessage),
    /// It succeeded with this artifact. Both are stored and published together.
    Answered(ArtifactChunk, StatusMessage),
    /// It failed.
    Failed(StatusMessage),
    /// The agent declines it.
    Rejected(StatusMessage),
    /// It was cancelled.
    Cancelled(StatusMessage),
}

/// Why a report was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The task has ended: by an earlier report, or because it was cancelled.
    #[error("task `{id}` has ended, nothing can be reported of it any more")]
    Over {
        /// The task.
        id: String,
    },
    /// The task would exceed its limit.
    #[error("task `{id}` has reached {limit} bytes; report the rest as a shorter text, or end it")]
    Full {
        /// The task.
        id: String,
        /// The most bytes it may have.
        limit: usize,
    },
    /// An artifact without content.
    #[error("artifact `{artifact}` has no parts; give it at least one")]
    Empty {
        /// The artifact.
        artifact: String,
    },
    /// The store failed, so nothing was published.
    #[error("task `{id}` could not be stored: {detail}")]
    Store {
        /// The task.
        id: String,
        /// What the store said.
        detail: String,
    },
}
