//! What starts a turn: a text, who wrote it, and the files that belong to it.

use crate::{AttachedFile, Attachment, Text, Trust};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The text that starts a turn, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInput {
    /// The whole text.
    pub text: Text,
    /// Where it came from.
    pub origin: MessageOrigin,
    /// New files that belong to it. The runner stores them before the turn starts.
    pub files: Vec<AttachedFile>,
    /// Files that belong to it and are stored.
    pub attachments: Vec<Attachment>,
    /// The JSON schema that the answer must satisfy; none lets the agents answer in words.
    pub answer_schema: Option<Arc<Value>>,
}

/// Where the text of a `user.message` came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MessageOrigin {
    /// The person typed it: at the prompt, or as arguments on the command line.
    Person,
    /// Standard input was a pipe or a file. Its content is whatever another program wrote.
    Pipe {
        /// How many bytes at the start are words of the command line, which are the person's.
        typed_bytes: usize,
    },
    /// A program sent it over the network, as the callers of `lango serve` do.
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
    /// A text that came from there, without files.
    fn new(text: Text, origin: MessageOrigin) -> Self {
        Self {
            text,
            origin,
            files: Vec::new(),
            attachments: Vec::new(),
            answer_schema: None,
        }
    }

    /// A text of which the first bytes are typed and the rest came through a pipe.
    pub fn piped(text: impl Into<Text>, typed_bytes: usize) -> Self {
        Self::new(text.into(), MessageOrigin::Pipe { typed_bytes })
    }

    /// The same, with a JSON schema that the answer must satisfy.
    pub fn with_answer_schema(self, schema: Arc<Value>) -> Self {
        Self {
            answer_schema: Some(schema),
            ..self
        }
    }

    /// A text that a program sent.
    pub fn of_program(text: impl Into<Text>) -> Self {
        Self::new(text.into(), MessageOrigin::Program)
    }
}

/// A text that the person typed. An edge whose texts come from anywhere else says so.
impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        Self::new(text.into(), MessageOrigin::Person)
    }
}
