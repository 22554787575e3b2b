//! A wire is how one family of providers is spoken to: what a request looks like, and how its reply is read. It knows
//! nothing of connections; see `http` for those.

use crate::names::Names;
use lango_core::{
    Function, ModelEvent, ModelFault, ModelReply, ModelRequest, Opaque, Schema, StopReason, Text,
};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How a family of providers is spoken to.
pub(crate) trait Wire: Send + Sync {
    /// The version that an address without a path gets.
    fn version(&self) -> &'static str;

    /// The request for one call of a model.
    fn request(&self, target: &Target<'_>, request: &ModelRequest) -> WireRequest;

    /// A reader for its reply.
    fn reader(&self, request: &ModelRequest) -> Box<dyn ReplyReader>;

    /// Learns from a refusal what a model does not accept; whether the same call can then be sent in another form.
    fn learn_from(&self, _model: &str, _fault: &ModelFault) -> bool {
        false
    }

    /// Where the list of models is.
    fn models_path(&self) -> &'static str;

    /// The ids in that list.
    fn model_ids(&self, list: &Value) -> Vec<String>;
}

/// The model that a request is for, and what it accepts.
pub(crate) struct Target<'a> {
    /// Its id, as its provider knows it.
    pub model: &'a str,
    /// Its name, as `provider/model`.
    pub name: &'a str,
    /// The host of its provider.
    pub host: &'a str,
    /// Whether the reply is streamed.
    pub streaming: bool,
    /// How many tokens it takes at once, if that is known.
    pub context_tokens: Option<u64>,
    /// The most tokens it writes in one reply, if that is known.
    pub max_output_tokens: Option<u64>,
    pub sees_images: bool,
    pub takes_temperature: bool,
    pub takes_effort: bool,
    /// Whether it answers by a JSON schema.
    pub takes_schema: bool,
}

impl Target<'_> {
    /// The output limit for a reply that is to be longer than one that ended without any text.
    const RAISED_TOKENS: u64 = 32_768;

    /// The output limit to ask for; none leaves it to the provider.
    pub fn output_limit(&self, request: &ModelRequest) -> Option<u64> {
        let most = self.max_output_tokens.unwrap_or(u64::MAX);
        let asked = request.settings.max_output_tokens;
        if !request.raise_output_limit {
            return asked.map(|tokens| tokens.min(most));
        }
        let window = self.context_tokens.map_or(u64::MAX, |tokens| tokens / 2);
        let raised = asked
            .unwrap_or(0)
            .saturating_mul(4)
            .max(Self::RAISED_TOKENS);
        Some(raised.min(most).min(window))
    }

    /// The schema of the answer, if the model can be held to it. All providers want that of an object.
    pub fn native_schema<'a>(&self, request: &'a ModelRequest) -> Option<&'a Value> {
        let schema = request.answer_schema.as_deref()?;
        (self.takes_schema && schema["type"] == "object").then_some(schema)
    }

    /// The part of an earlier reply that only its own model may be sent again, if this is the model.
    pub fn own<'a>(&self, opaque: Option<&'a Opaque>, kind: &str) -> Option<&'a Value> {
        let opaque = opaque.filter(|opaque| *opaque.kind == *kind)?;
        let is_own = opaque
            .model
            .as_ref()
            .is_none_or(|model| **model == *self.name);
        is_own.then_some(&*opaque.data)
    }
}

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireRequest {
    /// What follows the base URL.
    pub path: String,
    pub body: RequestBody,
}

/// The JSON body of a request. Tool declarations are long and rarely change, so they are kept as text instead of being parsed
/// and written for each request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestBody {
    pub fields: Value,
    /// The value of the field `tools`, as JSON text.
    pub tools: Option<String>,
}

impl From<Value> for RequestBody {
    fn from(fields: Value) -> Self {
        Self {
            fields,
            tools: None,
        }
    }
}

impl RequestBody {
    /// Sets the field `tools` to a list. `write` adds the JSON text of one of its elements.
    pub fn declare<T>(&mut self, tools: impl Iterator<Item = T>, write: impl Fn(&mut String, T)) {
        let mut text = String::from("[");
        for (at, tool) in tools.enumerate() {
            if at > 0 {
                text.push(',');
            }
            write(&mut text, tool);
        }
        text.push(']');
        self.tools = Some(text);
    }

    /// Returns the JSON text to send.
    pub fn text(&self) -> String {
        // Writing a value cannot fail.
        let mut text = serde_json::to_string(&self.fields).unwrap_or_default();
        if let Some(tools) = &self.tools
            && text.pop().is_some()
        {
            text.reserve(tools.len() + 10);
            text.extend([",\"tools\":", tools, "}"]);
        }
        text
    }
}

/// Returns a text as a JSON string, quoted and escaped.
pub(crate) fn quoted(text: &str) -> String {
    // Writing text cannot fail.
    serde_json::to_string(text).unwrap_or_default()
}

/// Reads one reply, in frames or whole. Everything it keeps is bounded.
pub(crate) trait ReplyReader: Send {
    /// One frame of a stream: the text to show at once.
    fn frame(&mut self, data: &str) -> Result<Option<ModelEvent>, ModelFault>;

    /// The whole body of a reply that was not streamed.
    fn whole(&mut self, body: &str) -> Result<(), ModelFault>;

    /// Whether nothing more can come.
    fn is_whole(&self) -> bool;

    /// Whether the provider said why the reply ends. Usage, or more text, may still follow.
    fn has_ended(&self) -> bool;

    /// The reply, if it came to its end.
    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault>;
}

/// The room for all that is kept of one reply: its words, its calls, its thoughts. No honest reply is longer.
pub(crate) struct Room {
    left: usize,
}

impl Room {
    const BYTES: usize = 4 * 1024 * 1024;

    pub fn new() -> Self {
        Self { left: Self::BYTES }
    }

    /// Adds text, if there is room for it.
    pub fn add(&mut self, text: &mut String, more: &str) -> Result<(), ModelFault> {
        self.take(more.len())?;
        text.push_str(more);
        Ok(())
    }

    /// A copy of a value, if there is room for it.
    pub fn keep(&mut self, value: &Value) -> Result<Value, ModelFault> {
        self.take(value.to_string().len())?;
        Ok(value.clone())
    }

    fn take(&mut self, bytes: usize) -> Result<(), ModelFault> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| ModelFault::Malformed {
            detail: format!("more than {} bytes", Self::BYTES),
        })?;
        Ok(())
    }
}

/// More calls than any honest reply holds. The engine reads fewer.
pub(crate) const CALLS: usize = 256;

/// Parses one piece of JSON from a provider.
pub(crate) fn parse(text: &str) -> Result<Value, ModelFault> {
    serde_json::from_str(text).map_err(|error| ModelFault::Malformed {
        detail: format!("{error}: {}", beginning(text)),
    })
}

/// The arguments of a call as raw text. A function without arguments may be called with nothing, or with `null`.
pub(crate) fn arguments(text: String) -> Text {
    match text.trim() {
        "" | "null" => "{}".into(),
        _ => text.into(),
    }
}

/// The fault behind a reply without words and calls, if the provider or the model refused to give any.
pub(crate) fn refusal(stop: &StopReason, words: &str) -> Result<(), ModelFault> {
    let detail = match stop {
        StopReason::Filtered { detail } if words.is_empty() => detail.to_string(),
        StopReason::Filtered { detail } => format!("{detail}: {}", beginning(words)),
        _ if words.is_empty() => return Ok(()),
        _ => beginning(words),
    };
    Err(ModelFault::Refused { detail })
}

/// Returns the JSON text of a schema for a function's arguments. Every provider requires it to have `type`.
pub(crate) fn object_schema(schema: &Schema) -> Cow<'_, str> {
    with_members(schema, &["type"])
}

/// Like [`object_schema`], with `properties` even if there are none, which OpenAI's APIs require.
fn schema_with_properties(schema: &Schema) -> Cow<'_, str> {
    with_members(schema, &["type", "properties"])
}

/// Adds the members that describe a function in both of OpenAI's APIs, as JSON text.
pub(crate) fn add_function_members(text: &mut String, function: &Function, names: &Names) {
    text.extend([r#""name":"#, &quoted(names.sent(&function.name))]);
    text.extend([r#","description":"#, &quoted(&function.description)]);
    let parameters = schema_with_properties(&function.parameters);
    text.extend([r#","parameters":"#, &parameters]);
}

/// Returns the JSON text of a schema, with defaults for members that it lacks.
fn with_members<'a>(schema: &'a Schema, members: &[&str]) -> Cow<'a, str> {
    if members.iter().all(|name| schema.get(*name).is_some()) {
        return schema.text().into();
    }
    let mut object = schema.as_object().cloned().unwrap_or_default();
    for name in members {
        object.entry(*name).or_insert_with(|| match *name {
            "type" => Value::from("object"),
            _ => Value::Object(Map::new()),
        });
    }
    Value::Object(object).to_string().into()
}

/// Arguments as they are sent back. Servers parse what they once sent, and refuse a whole request for broken JSON.
pub(crate) fn whole_arguments(arguments: &str) -> &str {
    let is_whole = serde_json::from_str::<Map<String, Value>>(arguments).is_ok();
    if is_whole { arguments } else { "{}" }
}

/// The beginning of something, for an error text.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
