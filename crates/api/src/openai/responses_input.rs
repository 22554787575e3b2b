//! The input of a response: a string, or a list of items.

use super::content::{parts, role};
use super::error::{ApiError, Result};
use super::params::Params;
use super::request::{Question, answer_schema, check_session_name, refuse_tools, session_of};
use crate::protocol::{ClientMessage, Role};
use serde_json::Value;

/// The prefix of ids of responses.
pub(super) const PREFIX: &str = "resp_";

/// Reads the input of a turn.
pub(super) fn question(params: &Params) -> Result<Question> {
    refuse_tools(params)?;
    params.refuse_flag(
        "background",
        "a response cannot run in the background; start a turn with POST /api/turns instead",
    )?;
    if params.get("prompt").is_some() {
        let message = "prompt templates are stored at OpenAI; send `input` instead";
        return Err(ApiError::unsupported("prompt", message));
    }
    let mut messages = Vec::new();
    if let Some(instructions) = params.text("instructions")? {
        messages.push(ClientMessage::text(Role::System, instructions));
    }
    match params.get("input") {
        Some(Value::String(text)) => {
            messages.push(ClientMessage::text(Role::User, text.as_str()));
        }
        Some(Value::Array(items)) => {
            for item in items {
                messages.extend(message(item)?);
            }
        }
        _ => {
            return Err(ApiError::invalid(
                "input",
                "`input` must be a string or a list of items",
            ));
        }
    }
    let format = params.get("text").and_then(|text| text.get("format"));
    let format = format.filter(|format| !format.is_null());
    let schema = format.map(|format| &format["schema"]);
    Ok(Question {
        messages,
        schema: answer_schema(format, schema, "text.format")?,
    })
}

/// Reads an item. Skips the reasoning of other models.
fn message(item: &Value) -> Result<Option<ClientMessage>> {
    match item.get("type").and_then(Value::as_str) {
        None | Some("message") => {
            let Some(role) = role(item, "input")? else {
                return Ok(None);
            };
            let parts = parts(&item["content"], "input")?;
            Ok(Some(ClientMessage { role, parts }))
        }
        Some("reasoning") => Ok(None),
        Some("item_reference") => Err(ApiError::unsupported(
            "input",
            "item references are not supported; name the session with `conversation` or `previous_response_id`",
        )),
        Some(other) => {
            let shown: String = other.chars().take(100).collect();
            Err(ApiError::unsupported(
                "input",
                format!("items of the type `{shown}` are not supported; send messages only"),
            ))
        }
    }
}

/// Returns the name of the session: that of the header, of `conversation`, or of the previous response.
pub(super) fn session_name(params: &Params, header: Option<&str>) -> Result<Option<String>> {
    let conversation = match params.get("conversation") {
        None => None,
        Some(Value::String(id)) => Some(id.as_str()),
        Some(conversation) => Some(conversation["id"].as_str().ok_or_else(|| {
            let message = "`conversation` must be a string or an object with an `id`";
            ApiError::invalid("conversation", message)
        })?),
    };
    let conversation = conversation
        .map(|name| check_session_name(name, "conversation"))
        .transpose()?;
    let previous = params.text("previous_response_id")?.map(|id| {
        session_of(id, PREFIX).ok_or_else(|| {
            let message = "`previous_response_id` is not the id of a response of this server";
            ApiError::invalid("previous_response_id", message)
        })
    });
    let previous = previous.transpose()?;
    let mut names = [header, conversation, previous.as_deref()]
        .into_iter()
        .flatten();
    let name = names.next();
    if names.any(|other| Some(other) != name) {
        return Err(ApiError::invalid(
            "conversation",
            "`X-Lango-Session`, `conversation` and `previous_response_id` name different sessions; send one of them",
        ));
    }
    Ok(name.map(str::to_owned))
}
