//! The input that starts a turn: a text, its origin and its files.

use crate::{AttachedFile, Attachment, Text, Trust};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The input that starts a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInput {
    pub text: Text,
    pub origin: MessageOrigin,
    /// New files. The runner stores them before the turn starts.
    pub files: Vec<AttachedFile>,
    /// Files that are already stored.
    pub attachments: Vec<Attachment>,
    /// The JSON schema that the answer must satisfy; `None` for an answer in plain text.
    pub answer_schema: Option<Arc<Value>>,
}

/// Where the text of a `user.message` came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MessageOrigin {
    /// The user typed it at the prompt or on the command line.
    Person,
    /// It was read from a pipe or a redirected file, so another program may have written it.
    Pipe {
        /// The number of leading bytes that the user typed on the command line.
        typed_bytes: usize,
    },
    /// A client of `lango serve` sent it.
    Program,
}

impl MessageOrigin {
    /// Returns the trust label of the whole text.
    pub fn trust(self) -> Trust {
        match self {
            Self::Person => Trust::Trusted,
            Self::Pipe { .. } | Self::Program => Trust::Untrusted,
        }
    }
}

impl UserInput {
    fn new(text: Text, origin: MessageOrigin) -> Self {
        Self {
            text,
            origin,
            files: Vec::new(),
            attachments: Vec::new(),
            answer_schema: None,
        }
    }

    /// Creates an input whose first `typed_bytes` bytes were typed; the rest came through a pipe.
    pub fn from_pipe(text: impl Into<Text>, typed_bytes: usize) -> Self {
        Self::new(text.into(), MessageOrigin::Pipe { typed_bytes })
    }

    /// Sets the JSON schema that the answer must satisfy.
    pub fn with_answer_schema(self, schema: Arc<Value>) -> Self {
        Self {
            answer_schema: Some(schema),
            ..self
        }
    }

    /// Creates an input that a program sent over the network.
    pub fn from_program(text: impl Into<Text>) -> Self {
        Self::new(text.into(), MessageOrigin::Program)
    }
}

/// Creates an input that the user typed. For any other origin use one of the constructors.
impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        Self::new(text.into(), MessageOrigin::Person)
    }
}

/// Creates an input that the user typed. For any other origin use one of the constructors.
impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self::new(text.into(), MessageOrigin::Person)
    }
}
