//! Wire formats: how each provider family writes requests and replies. Connections are in `http`.

use crate::names::Names;
use lango_core::{
    Function, ModelEvent, ModelFault, ModelReply, ModelRequest, OpaqueData, Schema, StopReason,
    Text,
};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The wire format of a provider family.
pub(crate) trait Wire: Send + Sync {
    /// Returns the version path to append to an address without a path.
    fn version(&self) -> &'static str;

    /// Builds the request for one model call.
    fn request(&self, target: &Target<'_>, request: &ModelRequest) -> WireRequest;

    /// Creates a reader for the reply to this request.
    fn reader(&self, request: &ModelRequest) -> Box<dyn ReplyReader>;

    /// Remembers what a model does not accept according to this fault. Returns whether the same call may succeed if its
    /// request is rebuilt.
    fn learn_from(&self, _model: &str, _fault: &ModelFault) -> bool {
        false
    }

    /// Returns the path of the list of models.
    fn models_path(&self) -> &'static str;

    /// Returns the ids in that list.
    fn model_ids(&self, list: &Value) -> Vec<String>;
}

/// The model that a request is for, and what it accepts.
pub(crate) struct Target<'a> {
    /// The id that its provider uses.
    pub model: &'a str,
    /// The name as `provider/model`.
    pub name: &'a str,
    /// The host of its provider.
    pub host: &'a str,
    pub streaming: bool,
    /// The context window, if known.
    pub context_tokens: Option<u64>,
    /// Maximum number of tokens per reply, if known.
    pub max_output_tokens: Option<u64>,
    pub sees_images: bool,
    pub takes_temperature: bool,
    pub takes_effort: bool,
    /// Whether its answer can be restricted to a JSON schema.
    pub takes_schema: bool,
}

impl Target<'_> {
    /// Minimum output limit for the retry of a reply that hit its limit before any text.
    const RAISED_TOKENS: u64 = 32_768;

    /// Returns the output limit to request; `None` leaves it to the provider.
    pub(crate) fn output_limit(&self, request: &ModelRequest) -> Option<u64> {
        let max_tokens = self.max_output_tokens.unwrap_or(u64::MAX);
        let requested = request.settings.max_output_tokens;
        if !request.raise_output_limit {
            return requested.map(|tokens| tokens.min(max_tokens));
        }
        let window = self.context_tokens.map_or(u64::MAX, |tokens| tokens / 2);
        let raised = requested
            .unwrap_or(0)
            .saturating_mul(4)
            .max(Self::RAISED_TOKENS);
        Some(raised.min(max_tokens).min(window))
    }

    /// Returns the schema of the answer if the model can enforce it. All providers require that it describes an object.
    pub(crate) fn native_schema<'a>(&self, request: &'a ModelRequest) -> Option<&'a Value> {
        let schema = request.answer_schema.as_deref()?;
        (self.takes_schema && schema["type"] == "object").then_some(schema)
    }

    /// Returns the opaque data of an earlier reply if this model wrote it. No other model may receive it.
    pub(crate) fn own<'a>(&self, opaque: Option<&'a OpaqueData>, kind: &str) -> Option<&'a Value> {
        let opaque = opaque.filter(|opaque| *opaque.kind == *kind)?;
        let is_own = opaque
            .model
            .as_ref()
            .is_none_or(|model| **model == *self.name);
        is_own.then_some(&*opaque.data)
    }
}

/// A request in a provider's format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireRequest {
    /// The path after the base URL.
    pub path: String,
    pub body: RequestBody,
}

/// The JSON body of a request. Tool declarations are long and rarely change, so they are cached as text rather than
/// serialized for each request.
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
    pub(crate) fn declare<T>(
        &mut self,
        tools: impl Iterator<Item = T>,
        write: impl Fn(&mut String, T),
    ) {
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
    pub(crate) fn text(&self) -> String {
        // Serializing a value cannot fail.
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
    // Serializing a string cannot fail.
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns the event of a frame with this text, or with this many bytes of other output.
pub(crate) fn output_event(text: String, other_bytes: usize) -> Option<ModelEvent> {
    match (text.is_empty(), other_bytes) {
        (false, _) => Some(ModelEvent::Text(text)),
        (true, 0) => None,
        (true, bytes) => Some(ModelEvent::Progress { bytes }),
    }
}

/// Reads one reply, streamed or not. Everything it buffers is bounded.
pub(crate) trait ReplyReader: Send {
    /// Reads one frame of a stream and returns its text or, if it has none to show, how much other output it has.
    fn frame(&mut self, data: &str) -> Result<Option<ModelEvent>, ModelFault>;

    /// Reads the body of a reply that was not streamed.
    fn whole(&mut self, body: &str) -> Result<(), ModelFault>;

    /// Returns whether nothing more can follow.
    fn is_complete(&self) -> bool;

    /// Returns whether the provider has sent the stop reason. Usage or more text may still follow.
    fn has_ended(&self) -> bool;

    /// Returns the reply; fails if it is incomplete.
    fn finish(self: Box<Self>) -> Result<ModelReply, ModelFault>;
}

/// The bytes that may be buffered for one reply: text, calls and reasoning. No normal reply is longer.
pub(crate) struct ReplyBudget {
    left: usize,
}

impl ReplyBudget {
    const BYTES: usize = 4 * 1024 * 1024;

    pub(crate) fn new() -> Self {
        Self { left: Self::BYTES }
    }

    /// Returns how many bytes may still be buffered.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Appends text; fails if the budget is used up.
    pub(crate) fn add(&mut self, text: &mut String, more: &str) -> Result<(), ModelFault> {
        self.take(more.len())?;
        text.push_str(more);
        Ok(())
    }

    /// Clones a value; fails if the budget is used up.
    pub(crate) fn copy(&mut self, value: &Value) -> Result<Value, ModelFault> {
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

/// Maximum number of calls per reply. Normal replies have fewer, and the engine accepts fewer.
pub(crate) const MAX_CALLS: usize = 256;

/// Parses JSON from a provider.
pub(crate) fn parse(text: &str) -> Result<Value, ModelFault> {
    serde_json::from_str(text).map_err(|error| ModelFault::Malformed {
        detail: match describe_page(text) {
            Some(page) => format!("expected JSON, got {page}"),
            None if text.trim().is_empty() => "expected JSON, got nothing".to_owned(),
            None => format!("{error}: {}", excerpt(text)),
        },
    })
}

/// Returns the arguments of a call as raw JSON text. Models send `""` or `null` for functions without parameters.
pub(crate) fn arguments(text: String) -> Text {
    match text.trim() {
        "" | "null" => "{}".into(),
        _ => text.into(),
    }
}

/// Checks a reply that has neither text nor calls. Fails if the provider filtered it or the model refused; the error
/// contains the text of the refusal.
pub(crate) fn check_refusal(stop: &StopReason, refusal: &str) -> Result<(), ModelFault> {
    let detail = match stop {
        StopReason::Filtered { detail } if refusal.is_empty() => detail.to_string(),
        StopReason::Filtered { detail } => format!("{detail}: {}", excerpt(refusal)),
        _ if refusal.is_empty() => return Ok(()),
        _ => excerpt(refusal),
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

/// Returns the arguments to send back in the history. Broken JSON becomes `{}`, because servers would refuse the
/// request.
pub(crate) fn valid_arguments(arguments: &str) -> &str {
    let is_valid = serde_json::from_str::<Map<String, Value>>(arguments).is_ok();
    if is_valid { arguments } else { "{}" }
}

/// Returns the first 200 characters of a text for an error message, without control characters. A web page is described
/// by its title.
pub(crate) fn excerpt(text: &str) -> String {
    if let Some(page) = describe_page(text) {
        return page;
    }
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// Describes a web page: `a web page titled "Welcome"`; `None` if the text is not one. Its markup says nothing to the
/// user.
fn describe_page(text: &str) -> Option<String> {
    const START_BYTES: usize = 4096;
    const TITLE_CHARS: usize = 80;
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let end = start.floor_char_boundary(START_BYTES);
    // Only ASCII letters change, so positions are the same in both texts.
    let (start, lower) = (&start[..end], start[..end].to_ascii_lowercase());
    let is_page = ["<!doctype html", "<html", "<head", "<body", "<title"]
        .iter()
        .any(|tag| lower.starts_with(tag))
        || (lower.starts_with("<?xml") || lower.starts_with("<!--")) && lower.contains("<html");
    if !is_page {
        return None;
    }
    let title = lower.find("<title").and_then(|at| {
        let from = at + lower[at..].find('>')? + 1;
        let to = from + lower[from..].find("</title")?;
        let words: Vec<&str> = start[from..to].split_whitespace().collect();
        let title = words.join(" ");
        let title = title.chars().filter(|c| !c.is_control());
        Some(title.take(TITLE_CHARS).collect::<String>())
    });
    let title = title.filter(|title| !title.is_empty() && !title.contains('<'));
    Some(match title {
        Some(title) => format!("a web page titled \"{title}\""),
        None => "a web page".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_is_described_by_its_title_and_never_quoted() {
        for (text, described) in [
            (
                "\n<!DOCTYPE html><html><head><TITLE lang=en>502 Bad\n Gateway</title>",
                "a web page titled \"502 Bad Gateway\"",
            ),
            ("<html><body>oops</body></html>", "a web page"),
            ("<html><title></title>", "a web page"),
            ("<html><title>cut", "a web page"),
            ("a < b", "a < b"),
        ] {
            assert_eq!(excerpt(text), described);
        }
        let long = format!("<html><title>é{}", "é".repeat(5000));
        assert_eq!(excerpt(&long), "a web page");
        let fault = parse("<html><title>Welcome</title>")
            .unwrap_err()
            .to_string();
        assert!(
            fault.ends_with("expected JSON, got a web page titled \"Welcome\""),
            "{fault}"
        );
    }
}
