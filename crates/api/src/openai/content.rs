//! Parses the content of messages, which is a string or a list of parts.

use super::error::{ApiError, Result};
use crate::protocol::{Part, Role, data_url};
use serde_json::Value;

/// Returns the author of a message. Returns `None` for tool results, which are skipped, because the agents run their
/// own tools.
pub(super) fn role(message: &Value, param: &'static str) -> Result<Option<Role>> {
    match message["role"].as_str() {
        Some("system" | "developer") => Ok(Some(Role::System)),
        Some("user") => Ok(Some(Role::User)),
        Some("assistant") => Ok(Some(Role::Assistant)),
        Some("tool" | "function") => Ok(None),
        _ => Err(ApiError::invalid(
            param,
            "the role of a message must be system, developer, user, assistant or tool",
        )),
    }
}

/// Reads the content of a message.
pub(super) fn parts(content: &Value, param: &'static str) -> Result<Vec<Part>> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part::Text(text.clone())]),
        Value::Array(parts) => parts.iter().map(|each| part(each, param)).collect(),
        _ => Err(ApiError::invalid(
            param,
            "the content of a message must be a string or a list of parts",
        )),
    }
}

fn part(part: &Value, param: &'static str) -> Result<Part> {
    let text = |name: &'static str| -> Result<&str> {
        let message = || ApiError::invalid(param, format!("a part has no text in `{name}`"));
        part[name].as_str().ok_or_else(message)
    };
    let file = |url: &Value, name: &Value| -> Result<Part> {
        let url = url.as_str().ok_or_else(|| no_bytes(param))?;
        let name = name.as_str().map(str::to_owned);
        data_url(url, name).map_err(|problem| ApiError::from(problem).of_param(param))
    };
    match part["type"].as_str() {
        Some("text" | "input_text" | "output_text") => Ok(Part::Text(text("text")?.to_owned())),
        Some("refusal") => Ok(Part::Text(text("refusal")?.to_owned())),
        Some("image_url") => file(&part["image_url"]["url"], &Value::Null),
        Some("input_image") => file(&part["image_url"], &Value::Null),
        Some("file") => file(&part["file"]["file_data"], &part["file"]["filename"]),
        Some("input_file") => file(&part["file_data"], &part["filename"]),
        Some("input_audio") => Err(ApiError::unsupported(
            param,
            "audio is not supported; send text, images or files",
        )),
        _ => Err(ApiError::invalid(
            param,
            "the type of a part must be text, image_url or file, or input_text, input_image or input_file",
        )),
    }
}

fn no_bytes(param: &'static str) -> ApiError {
    let message =
        "uploaded files and remote URLs are not supported; send the bytes as a `data:` URL";
    ApiError::unsupported(param, message)
}
