//! The interface to language models: one request in, a stream of text and one complete reply out.
//!
//! A request is a pure function of the log and the configuration. A reply is passed on as the model sent it: names and
//! arguments of calls are raw text here, and the engine checks them.

use crate::schema::Schema;
use crate::{Attachment, AttachmentContents, BoxStream, CallId, Price, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A language model, or a replacement such as the offline rules.
pub trait Model: Send + Sync {
    /// Returns the name as `provider/model`.
    fn name(&self) -> &str;

    /// Returns the price and the context window, as far as they are known.
    fn info(&self) -> ModelInfo;

    /// Sends one request. The stream yields text and progress as they arrive and ends with one [`ModelEvent::Reply`] or an error.
    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        (**self).call(request)
    }
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        (**self).call(request)
    }
}

/// Static facts about a model; `None` where they are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelInfo {
    pub price: Option<Price>,
    /// The size of the context window.
    pub context_tokens: Option<u64>,
}

/// A request to an agent's model.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ModelRequest {
    /// The agent's instruction, the stable part of the request.
    pub instruction: Text,
    /// The conversation, oldest message first.
    pub messages: Vec<Message>,
    /// The functions that the model may call.
    pub functions: Arc<[Function]>,
    #[serde(skip_serializing_if = "ModelSettings::is_default")]
    pub settings: ModelSettings,
    /// The JSON schema that the text of the answer must satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Arc<Value>>,
    /// Whether to raise the output limit to the model's maximum, because an earlier reply reached the limit before any text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub raise_output_limit: bool,
    /// The bytes of the attachments in the messages. The runner loads them.
    #[serde(skip)]
    pub contents: AttachmentContents,
}

/// Settings of a model call. Settings that a model does not accept are not sent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ModelSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The maximum number of tokens in one reply, including reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl ModelSettings {
    /// Whether nothing is set, so the model's defaults apply.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How much a reasoning model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    None,
    /// The least that the model offers.
    Minimal,
    Low,
    Medium,
    High,
}

impl ReasoningEffort {
    /// Returns the name in the configuration and in provider requests.
    pub fn name(self) -> &'static str {
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
    /// The user's message, or the task of a sub-agent.
    User {
        text: Text,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// An earlier reply of the same agent.
    Assistant {
        text: Text,
        calls: Arc<[Call]>,
        /// Provider data to send back unchanged.
        opaque: Option<OpaqueData>,
    },
    /// The result of one of the calls in an earlier reply.
    Result {
        call: CallId,
        /// The name of the function.
        name: Text,
        text: Text,
        /// Whether the call failed or was denied.
        failed: bool,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
    },
    /// A message of lango to the model: a correction, or a request to finish.
    Notice { text: Text },
}

impl Message {
    /// Creates a [`Self::User`] message without attachments.
    pub fn user(text: impl Into<Text>) -> Self {
        Self::User {
            text: text.into(),
            attachments: Vec::new(),
        }
    }
}

/// A function that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Function {
    pub name: Text,
    pub description: Text,
    /// The JSON schema of its arguments.
    pub parameters: Schema,
}

/// A function call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The id that the result refers to.
    pub id: CallId,
    /// The function name, which may not exist.
    pub name: Text,
    /// The arguments as raw text, which may not be valid JSON.
    pub arguments: Text,
}

/// An item of a model's stream.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The next piece of the reply's text.
    Text(String),
    /// More output that is not text: reasoning, or arguments of calls.
    Progress { bytes: usize },
    /// The call is retried, or sent to a fallback model. The text so far is void.
    Retrying { reason: String },
    /// The complete reply; the last item of the stream.
    Reply(ModelReply),
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelReply {
    pub text: String,
    pub calls: Vec<Call>,
    pub usage: Usage,
    /// The cost in millionths of a US dollar, if the price is known.
    pub cost_micros: Option<u64>,
    pub stop: StopReason,
    /// Provider data to send back unchanged with the conversation.
    pub opaque: Option<OpaqueData>,
    /// The model that replied, if it is not the requested one.
    pub model: Option<Text>,
}

/// Why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished.
    #[default]
    Finished,
    /// The reply reached the output limit.
    OutputLimit,
    /// The provider stopped the reply: a content filter, a safety rule or a refusal.
    Filtered {
        /// The provider's explanation, one sentence without a full stop.
        detail: Text,
    },
    /// The user stopped the turn during the reply.
    Cancelled,
}

impl StopReason {
    /// Whether the model finished. If not, the last call may be incomplete.
    pub fn is_finished(&self) -> bool {
        *self == Self::Finished
    }
}

/// Data of a provider that lango stores and sends back without reading it, such as signed reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpaqueData {
    /// The kind of provider that understands the data.
    pub kind: Text,
    /// The model that produced the data, as `provider/model`; `None` in old logs. The data is sent to no other model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    pub data: Arc<Value>,
}

/// Token counts of model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens sent, including cached ones.
    pub input_tokens: u64,
    /// Tokens sent that the provider read from its cache.
    pub cached_tokens: u64,
    /// Tokens sent that the provider wrote to its cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens received, including reasoning.
    pub output_tokens: u64,
    /// Tokens received that were reasoning.
    pub reasoning_tokens: u64,
}

// Zero is left out so that logs from before this field existed are rewritten byte for byte.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// Returns the number of tokens sent and received.
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

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model `{model}`: {fault}{}", at(address.as_deref()))]
pub struct ModelError {
    pub model: Text,
    pub fault: ModelFault,
    /// The address of the provider, unless the fault names it or has nothing to do with it.
    pub address: Option<Text>,
}

/// The reason why a model call failed. The variants differ in what the caller can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFault {
    #[error("too many requests{}: {detail}", wait(*retry_after_ms))]
    RateLimited {
        /// How long the provider asks to wait.
        retry_after_ms: Option<u64>,
        detail: String,
    },
    #[error("the provider cannot serve now{}: {detail}", wait(*retry_after_ms))]
    Overloaded {
        /// How long the provider asks to wait.
        retry_after_ms: Option<u64>,
        detail: String,
    },
    /// No connection could be established: the name, the address, the port or the certificate is wrong, or nothing
    /// listens there.
    #[error("it cannot be reached: {detail}")]
    Unreachable {
        /// The address and the cause.
        detail: String,
    },
    /// The stream ended before the reply was complete.
    #[error("its reply was cut off")]
    Incomplete,
    #[error("it sent nothing for {} s", seconds(*after_ms))]
    TimedOut { after_ms: u64 },
    /// The request exceeds the model's context window.
    #[error("the conversation is too long for it: {detail}")]
    ContextTooLong {
        detail: String,
        /// The size of the context window, if the provider reported it.
        limit_tokens: Option<u64>,
    },
    /// The key cannot be read, so no request was sent.
    #[error("its key cannot be used: {detail}")]
    NoKey { detail: String },
    /// The provider rejected the key, or requires one.
    #[error("its key is not accepted: {detail}")]
    BadKey {
        /// The provider's message, and where the key came from.
        detail: String,
    },
    /// The account at the provider has no credit or quota left, so no retry succeeds before the user adds some.
    #[error("the account has no credit left: {detail}")]
    NoCredit { detail: String },
    /// The provider does not offer the model at this endpoint.
    #[error("the provider has no such model: {detail}")]
    UnknownModel { detail: String },
    #[error("the provider refuses the request: {detail}")]
    Refused { detail: String },
    /// The response is not a valid reply.
    #[error("its reply cannot be read: {detail}")]
    Malformed { detail: String },
}

impl ModelFault {
    /// Returns the name of the fault, for logs and for the outcome of a turn. Its details can quote what the user or
    /// the model wrote.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::Unreachable { .. } => "unreachable",
            Self::Incomplete => "incomplete",
            Self::TimedOut { .. } => "timed_out",
            Self::ContextTooLong { .. } => "context_too_long",
            Self::NoKey { .. } => "no_key",
            Self::BadKey { .. } => "bad_key",
            Self::NoCredit { .. } => "no_credit",
            Self::UnknownModel { .. } => "unknown_model",
            Self::Refused { .. } => "refused",
            Self::Malformed { .. } => "malformed",
        }
    }

    /// Whether a retry of the same call may succeed soon.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Unreachable { .. }
            | Self::Incomplete
            | Self::TimedOut { .. }
            | Self::Malformed { .. } => true,
            Self::ContextTooLong { .. }
            | Self::NoKey { .. }
            | Self::BadKey { .. }
            | Self::NoCredit { .. }
            | Self::UnknownModel { .. }
            | Self::Refused { .. } => false,
        }
    }

    /// Returns the detail text for editing, for example to mask secrets; `None` if the fault has none.
    pub fn detail_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::RateLimited { detail, .. }
            | Self::Overloaded { detail, .. }
            | Self::Unreachable { detail }
            | Self::ContextTooLong { detail, .. }
            | Self::NoKey { detail }
            | Self::BadKey { detail }
            | Self::NoCredit { detail }
            | Self::UnknownModel { detail }
            | Self::Refused { detail }
            | Self::Malformed { detail } => Some(detail),
            Self::Incomplete | Self::TimedOut { .. } => None,
        }
    }

    /// Whether the user must change a setting or start a server before any call can succeed.
    pub fn is_setup_error(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::NoKey { .. }
                | Self::BadKey { .. }
                | Self::NoCredit { .. }
                | Self::UnknownModel { .. }
        )
    }

    /// Describes a fault without its detail, for a notice that the same call is repeated. If the last try fails too,
    /// its error has the detail.
    pub fn summary(&self) -> String {
        let mut fault = self.clone();
        if let Some(detail) = fault.detail_mut() {
            detail.clear();
        }
        fault.to_string().trim_end_matches(": ").to_owned()
    }
}

/// Formats milliseconds as seconds: `60`, `0.3`.
fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        (ms / 1000).to_string()
    } else {
        format!("{:.1}", ms as f64 / 1000.0)
    }
}

fn at(address: Option<&str>) -> String {
    address.map_or(String::new(), |address| {
        format!(" (the address: {address})")
    })
}

fn wait(retry_after_ms: Option<u64>) -> String {
    retry_after_ms.map_or(String::new(), |ms| {
        format!(" (wait {} s)", ms.div_ceil(1000))
    })
}
