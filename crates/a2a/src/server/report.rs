//! What an agent says about its job.

use a2a::Part;
use lango_core::StoreError;
use serde_json::{Map, Value};

/// What an agent tells the client in a status; the server adds ids and role.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Words {
    /// The parts; none for a status without words.
    pub parts: Vec<Part>,
    /// For machines; without parts, where there is no message to carry it, it becomes the task's.
    pub metadata: Map<String, Value>,
}

impl Words {
    /// A status that needs no words.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same with something for machines.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.metadata.insert(key.to_owned(), value);
        self
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        vec![Part::text(text)].into()
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        vec![Part::text(text)].into()
    }
}

impl From<Vec<Part>> for Words {
    fn from(parts: Vec<Part>) -> Self {
        Self {
            parts,
            metadata: Map::new(),
        }
    }
}

/// A result, or a piece of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Which artifact of the task.
    pub artifact: String,
    /// What it is called.
    pub name: Option<String>,
    /// What is in this piece.
    pub parts: Vec<Part>,
    /// Whether it goes after what the artifact has; otherwise it takes its place.
    pub is_appended: bool,
    /// Whether nothing more comes.
    pub is_last: bool,
}

impl Piece {
    /// A result at once.
    pub fn whole(artifact: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            artifact: artifact.into(),
            name: None,
            parts,
            is_appended: false,
            is_last: true,
        }
    }

    /// A bit more text of a result. The first one begins it.
    pub fn more(artifact: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            artifact: artifact.into(),
            name: None,
            parts: vec![Part::text(text)],
            is_appended: true,
            is_last: false,
        }
    }

    /// The same under a name for people.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The same, and nothing more comes.
    pub fn last(mut self) -> Self {
        self.is_last = true;
        self
    }
}

/// One thing that became of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Work goes on.
    Working(Words),
    /// There is a result, or a piece of one.
    Artifact(Piece),
    /// The client must say something before it can go on.
    InputRequired(Words),
    /// Somebody must allow something before it can go on; the words say what.
    AuthRequired(Words),
    /// Done.
    Completed(Words),
    /// It did not work.
    Failed(Words),
    /// The agent will not do it.
    Rejected(Words),
    /// It was taken back.
    Cancelled(Words),
}

/// Why a report was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The task has ended: by an earlier report, or because it was taken back.
    #[error("task `{id}` has ended, nothing can be reported of it any more")]
    Over {
        /// The task.
        id: String,
    },
    /// The task would grow past its bound.
    #[error("task `{id}` has reached {limit} bytes; report the rest as a shorter text, or end it")]
    Full {
        /// The task.
        id: String,
        /// The most bytes it may have.
        limit: usize,
    },
    /// A result without content.
    #[error("artifact `{artifact}` has no parts; give it at least one")]
    Empty {
        /// The artifact.
        artifact: String,
    },
    /// It could not be kept, so nobody was told.
    #[error("task `{id}` could not be kept")]
    Store {
        /// The task.
        id: String,
        /// Why.
        #[source]
        source: StoreError,
    },
}
