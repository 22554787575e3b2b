//! The reports of an agent about a run.

use a2a::Part;
use serde_json::{Map, Value};

/// The metadata key whose value is `false` if a task ended before anything ran.
pub(super) const STARTED: &str = "started";

/// The message of a status. The server adds the ids and the role.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatusMessage {
    /// Empty for a status without a message.
    pub parts: Vec<Part>,
    /// Becomes the metadata of the message, or of the task if there are no parts.
    pub metadata: Map<String, Value>,
}

impl StatusMessage {
    /// Creates a status without a message.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Marks that the task ended before its work started. If the client sends the same message again, another attempt
    /// starts.
    pub fn not_started(self) -> Self {
        self.with(STARTED, Value::Bool(false))
    }

    /// Adds a metadata entry.
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
    /// The display name.
    pub name: Option<String>,
    pub parts: Vec<Part>,
    /// Whether the chunk is appended to the artifact. If not, it replaces the artifact.
    pub is_appended: bool,
    pub is_last: bool,
}

impl ArtifactChunk {
    /// Creates a complete artifact.
    pub fn whole(artifact: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact: artifact.into(),
            name: None,
            parts,
            is_appended: false,
            is_last: true,
        }
    }

    /// Creates a chunk of text to append. The first one creates the artifact.
    pub fn text(artifact: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            artifact: artifact.into(),
            name: None,
            parts: vec![Part::text(text)],
            is_appended: true,
            is_last: false,
        }
    }

    /// Sets the display name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Marks this chunk as the last one.
    pub fn last(mut self) -> Self {
        self.is_last = true;
        self
    }
}

/// A report that changes a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    Working(StatusMessage),
    Artifact(ArtifactChunk),
    /// The client must send a message.
    InputRequired(StatusMessage),
    /// The task waits for an approval; the message says for which.
    AuthRequired(StatusMessage),
    Completed(StatusMessage),
    /// The task completed with this artifact. Both are stored and published together.
    Answered(ArtifactChunk, StatusMessage),
    Failed(StatusMessage),
    /// The agent declines the task.
    Rejected(StatusMessage),
    Cancelled(StatusMessage),
}

/// Why a report was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The task has ended: by an earlier report, or because it was cancelled.
    #[error("task `{id}` has ended and accepts no more reports")]
    Over { id: String },
    /// The report would exceed the size limit of the task.
    #[error("task `{id}` has reached its limit of {limit} bytes; report a shorter text, or end it")]
    Full {
        id: String,
        /// In bytes.
        limit: usize,
    },
    /// The artifact has no content.
    #[error("artifact `{artifact}` has no parts; give it at least one")]
    Empty { artifact: String },
    /// The store failed, so nothing was published.
    #[error("task `{id}` could not be stored: {detail}")]
    Store {
        id: String,
        /// The store's error message.
        detail: String,
    },
}
