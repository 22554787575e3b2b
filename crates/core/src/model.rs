//! The seam to a language model: one request in, a stream of text and one whole reply out.
//!
//! A request is a pure function of the log and the configuration. A reply is taken as the model sent it; whether its
//! calls name something real is for the engine to judge, so names and arguments are raw text here.

use crate::{BoxStream, CallId, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A language model, or whatever answers in place of one.
pub trait Model: Send + Sync {
    /// Its name as `provider/model`.
    fn name(&self) -> &str;

    /// Sends one request. The stream gives text as it comes and ends with one [`ModelEvent::Reply`] or an error.
    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>>;
}

/// What an agent's model is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelRequest {
    /// The agent's instruction, the stable part of the request.
    pub instruction: Text,
    /// The conversation in the order of time.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub functions: Arc<[Function]>,
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the person said, or the task a sub-agent was given.
    User {
        /// The words.
        text: Text,
    },
    /// An earlier reply of the very agent that is asked.
    Assistant {
        /// The words.
        text: Text,
        /// The calls it made.
        calls: Arc<[Call]>,
    },
    /// The result of one of those calls.
    Result {
        /// The call that is answered.
        call: CallId,
        /// The function that was called.
        name: Text,
        /// What came back.
        text: Text,
        /// Whether the call failed or was refused.
        failed: bool,
    },
    /// A word of the runner to the model: a correction, or the request to conclude.
    Notice {
        /// The words.
        text: Text,
    },
}

/// A function that is offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: Text,
    /// What it does.
    pub description: Text,
    /// The JSON schema of its arguments.
    pub parameters: Arc<Value>,
}

/// One call of a function, as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The id that its result refers to.
    pub id: CallId,
    /// The name the model used, registered or not.
    pub name: Text,
    /// The arguments as raw text, JSON or not.
    pub arguments: Text,
}

/// What a model's stream gives.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text of the reply.
    Text(String),
    /// The whole reply; the last item of the stream.
    Reply(ModelReply),
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelReply {
    /// The words, all of them.
    pub text: String,
    /// The calls.
    pub calls: Vec<Call>,
    /// What it cost.
    pub usage: Usage,
}

/// Tokens that were spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Nobody answered.
    #[error("the model `{model}` cannot be reached: {detail}")]
    Unreachable {
        /// The model that was asked.
        model: String,
        /// What was seen.
        detail: String,
    },
    /// The stream ended before the reply was whole.
    #[error("the reply of the model `{model}` was cut off")]
    CutOff {
        /// The model that was asked.
        model: String,
    },
}
