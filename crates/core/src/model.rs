//! The seam to a language model: one request in, a stream of text and one whole reply out.
//!
//! A request is a pure function of the log and the configuration. A reply is taken as the model sent it; whether its
//! calls name something real is for the engine to judge, so names and arguments are raw text here.

use crate::schema::Schema;
use crate::{Attachment, AttachmentContents, BoxStream, CallId, Price, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A language model, or whatever answers in place of one.
pub trait Model: Send + Sync {
    /// Its name as `provider/model`.
    fn name(&self) -> &str;

    /// What its tokens cost, and how many it takes at once, as far as that is known.
    fn terms(&self) -> ModelTerms;

    /// Sends one request. The stream gives text as it comes and ends with one [`ModelEvent::Reply`] or an error.
    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>>;
}

/// What can be known of a model before it is called.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelTerms {
    /// What its tokens cost.
    pub price: Option<Price>,
    /// How many tokens it takes at once.
    pub context_tokens: Option<u64>,
}

/// What an agent's model is sent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ModelRequest {
    /// The agent's instruction, the stable part of the request.
    pub instruction: Text,
    /// The conversation in the order of time.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub functions: Arc<[Function]>,
    /// How the model should answer.
    #[serde(skip_serializing_if = "ModelSettings::is_default")]
    pub settings: ModelSettings,
    /// The JSON schema that the text of the answer must satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Arc<Value>>,
    /// Whether an earlier reply reached its output limit before any text: the model gets as much as it can write.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub raise_output_limit: bool,
    /// The bytes of the attachments in the messages. The runner loads them.
    #[serde(skip)]
    pub contents: AttachmentContents,
}

/// How a model should answer. A provider is sent only what the model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ModelSettings {
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much a reasoning model thinks before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The most tokens of one reply, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl ModelSettings {
    /// Whether every choice is left to the model's defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How much a reasoning model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as the model offers.
    Minimal,
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// A lot.
    High,
}

impl ReasoningEffort {
    /// The word for it in the configuration and on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the person said, or the task a sub-agent was given.
    User {
        /// The words.
        text: Text,
        /// The files that belong to it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// An earlier reply of the very agent that is asked.
    Assistant {
        /// The words.
        text: Text,
        /// The calls it made.
        calls: Arc<[Call]>,
        /// What the provider wants back with it.
        opaque: Option<Opaque>,
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
        /// The files that came back with it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A word of the runner to the model: a correction, or the request to conclude.
    Notice {
        /// The words.
        text: Text,
    },
}

impl Message {
    /// A message of the user's side without attachments.
    pub fn user(text: impl Into<Text>) -> Self {
        Self::User {
            text: text.into(),
            attachments: Vec::new(),
        }
    }
}

/// A function that is offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: Text,
    /// What it does.
    pub description: Text,
    /// The JSON schema of its arguments.
    pub parameters: Schema,
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
    /// The text so far is void: the call is made again, or of another model.
    Retrying {
        /// Why.
        reason: String,
    },
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
    /// The same in millionths of a US dollar, if the price is known.
    pub cost_micros: Option<u64>,
    /// Why the reply ends where it does.
    pub stop: StopReason,
    /// What the provider wants back with the conversation, exactly as it came.
    pub opaque: Option<Opaque>,
    /// The model that replied, if it is not the one that was asked.
    pub model: Option<Text>,
}

/// Why a reply ends where it does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// The model said all it had to say.
    #[default]
    Finished,
    /// The output limit was reached.
    OutputLimit,
    /// The provider ended it: a content filter, a safety rule, a refusal.
    Filtered {
        /// What the provider said about it, in one sentence without its full stop.
        detail: Text,
    },
}

impl StopReason {
    /// Whether the model said all it had to say. Otherwise the last call may not be whole.
    pub fn is_finished(&self) -> bool {
        *self == Self::Finished
    }
}

/// Something of a provider that lango keeps and returns without reading it, such as signed thoughts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The kind of provider that understands it.
    pub kind: Text,
    /// The model that produced it, as `provider/model`; none in old logs. No other model is sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// The thing itself.
    pub data: Arc<Value>,
}

/// Tokens that were spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, those of a cache included.
    pub input_tokens: u64,
    /// Tokens sent that the provider had in its cache.
    pub cached_tokens: u64,
    /// Tokens sent that the provider wrote to its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens received, those of its reasoning included.
    pub output_tokens: u64,
    /// Tokens received that were reasoning.
    pub reasoning_tokens: u64,
}

// Logs that were written before there was this number stay the same to the byte.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// All tokens, sent and received.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_write_tokens = self
            .cache_write_tokens
            .saturating_add(other.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

/// Why there is no reply, by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model `{model}`: {fault}")]
pub struct ModelError {
    /// The model that was asked.
    pub model: Text,
    /// What went wrong.
    pub fault: ModelFault,
}

/// What can go wrong with a model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelFault {
    /// Too many requests; the provider may say how long to wait.
    #[error("too many requests{}: {detail}", wait(*retry_after_ms))]
    RateLimited {
        /// How long the provider wants us to wait.
        retry_after_ms: Option<u64>,
        /// What it said.
        detail: String,
    },
    /// The provider cannot serve now.
    #[error("the provider cannot serve now{}: {detail}", wait(*retry_after_ms))]
    Overloaded {
        /// How long the provider wants us to wait.
        retry_after_ms: Option<u64>,
        /// What it said.
        detail: String,
    },
    /// Nobody answered.
    #[error("it cannot be reached: {detail}")]
    Unreachable {
        /// What was seen.
        detail: String,
    },
    /// The stream ended before the reply was whole.
    #[error("its reply was cut off")]
    CutOff,
    /// Nothing came for too long.
    #[error("it was silent for {} s", after_ms / 1000)]
    Silent {
        /// How long.
        after_ms: u64,
    },
    /// The conversation does not fit into the model.
    #[error("the conversation is too long for it: {detail}")]
    ContextTooLong {
        /// What it said.
        detail: String,
        /// How many tokens it takes at once, if it said so.
        limit_tokens: Option<u64>,
    },
    /// The key cannot be read, so nothing was sent.
    #[error("its key cannot be used: {detail}")]
    NoKey {
        /// The reason.
        detail: String,
    },
    /// The key is missing or is not accepted.
    #[error("its key is not accepted: {detail}")]
    BadKey {
        /// What it said, and where the key came from.
        detail: String,
    },
    /// The provider does not have the model, or does not have it there.
    #[error("there is no such model there: {detail}")]
    UnknownModel {
        /// What it said.
        detail: String,
    },
    /// The provider will not answer this request.
    #[error("the provider refuses the request: {detail}")]
    Refused {
        /// What it said.
        detail: String,
    },
    /// What came back is not a reply.
    #[error("its reply cannot be read: {detail}")]
    Malformed {
        /// What is wrong with it.
        detail: String,
    },
}

impl ModelFault {
    /// Whether the same call may succeed in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Unreachable { .. }
            | Self::CutOff
            | Self::Silent { .. }
            | Self::Malformed { .. } => true,
            Self::ContextTooLong { .. }
            | Self::NoKey { .. }
            | Self::BadKey { .. }
            | Self::UnknownModel { .. }
            | Self::Refused { .. } => false,
        }
    }

    /// What the provider said, if it said something.
    pub fn detail_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::RateLimited { detail, .. }
            | Self::Overloaded { detail, .. }
            | Self::Unreachable { detail }
            | Self::ContextTooLong { detail, .. }
            | Self::NoKey { detail }
            | Self::BadKey { detail }
            | Self::UnknownModel { detail }
            | Self::Refused { detail }
            | Self::Malformed { detail } => Some(detail),
            Self::CutOff | Self::Silent { .. } => None,
        }
    }

    /// Whether the person has to change a setting before any call can succeed.
    pub fn is_of_the_setup(&self) -> bool {
        matches!(
            self,
            Self::NoKey { .. } | Self::BadKey { .. } | Self::UnknownModel { .. }
        )
    }
}

fn wait(retry_after_ms: Option<u64>) -> String {
    retry_after_ms.map_or(String::new(), |ms| {
        format!(" (wait {} s)", ms.div_ceil(1000))
    })
}
