//! What a provider's error means for lango. A provider says it with a status, or under status 200 inside of a reply; its
//! own code decides before its words do.

use crate::wire::beginning;
use lango_core::ModelFault;
use serde_json::Value;

/// The fault behind a status that is no success.
pub(crate) fn of_status(status: u16, retry_after_ms: Option<u64>, body: &str) -> ModelFault {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let error = parsed
        .get("error")
        .or_else(|| parsed.pointer("/0/error"))
        .unwrap_or(&parsed);
    let message = message_of(error).unwrap_or_else(|| beginning(body));
    let detail = format!("{status} {message}");
    read(Some(status), retry_after_ms, error, detail)
}

/// The fault behind an error inside of a reply.
pub(crate) fn inside(error: &Value) -> ModelFault {
    let number = ["code", "status"].iter().find_map(|name| {
        let value = error.get(*name)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    });
    let status = number.and_then(|number| u16::try_from(number).ok());
    let detail = message_of(error).unwrap_or_else(|| beginning(&error.to_string()));
    read(status, None, error, detail)
}

fn read(
    status: Option<u16>,
    retry_after_ms: Option<u64>,
    error: &Value,
    detail: String,
) -> ModelFault {
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let words = [text("code"), text("type"), text("status")];
    let says = |sought: &[&str]| words.iter().any(|word| sought.contains(word));
    let is_request = matches!(status, None | Some(400 | 413 | 422));
    if is_request && (says(TOO_LONG) || status == Some(413) || speaks_of_length(&detail)) {
        let limit_tokens = limit_in(&detail);
        return ModelFault::ContextTooLong {
            detail,
            limit_tokens,
        };
    }
    if says(BAD_KEY) || (is_request && detail.contains("API key")) {
        return ModelFault::BadKey { detail };
    }
    let speaks_of = |words: &[&str]| {
        let detail = detail.to_lowercase();
        words.iter().any(|words| detail.contains(words))
    };
    if is_request && (says(UNKNOWN_MODEL) || speaks_of(UNKNOWN_MODEL_WORDS)) {
        return ModelFault::UnknownModel { detail };
    }
    match status {
        Some(401..=403) => ModelFault::BadKey { detail },
        Some(404 | 405) => ModelFault::UnknownModel { detail },
        Some(429) => ModelFault::RateLimited {
            retry_after_ms: retry_after_ms.or_else(|| delay_in(error)),
            detail,
        },
        Some(408 | 409 | 425 | 500..=599) => ModelFault::Overloaded {
            retry_after_ms,
            detail,
        },
        None if says(RATE_LIMITED) => ModelFault::RateLimited {
            retry_after_ms: None,
            detail,
        },
        None if says(&["invalid_request_error"]) => ModelFault::Refused { detail },
        // An error in a reply that names no cause is one of the provider's, and those pass.
        None => ModelFault::Overloaded {
            retry_after_ms: None,
            detail,
        },
        Some(_) => ModelFault::Refused { detail },
    }
}

const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "request_too_large",
];
const BAD_KEY: &[&str] = &[
    "insufficient_quota",
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "billing_error",
];
const UNKNOWN_MODEL: &[&str] = &["model_not_found", "not_found_error", "invalid_model"];
/// Words of providers that have no code for it.
const UNKNOWN_MODEL_WORDS: &[&str] = &["is not a valid model id", "model not found"];
const RATE_LIMITED: &[&str] = &["rate_limit_error", "rate_limit_exceeded"];

/// What the provider said, in one sentence: its message, what a provider behind it said, and which filters applied.
fn message_of(error: &Value) -> Option<String> {
    let message = error.get("message").unwrap_or(error);
    let message = message.as_str().or_else(|| error["detail"].as_str());
    let mut message = beginning(message.filter(|message| !message.is_empty())?);
    if let Some(upstream) = upstream_message(&error["metadata"]) {
        message = format!("{}: {upstream}", message.trim_end_matches('.'));
    }
    let filters = &error["innererror"]["content_filter_result"];
    if let Some(categories) = filtered_categories(filters) {
        message = format!("{} (filtered: {categories})", message.trim_end_matches('.'));
    }
    Some(message)
}

/// OpenRouter passes on what the provider behind it said, as JSON or as text.
fn upstream_message(metadata: &Value) -> Option<String> {
    let raw = metadata["raw"].as_str().filter(|raw| !raw.is_empty())?;
    let parsed: Value = serde_json::from_str(raw).unwrap_or_default();
    let places = ["/error/message", "/message", "/error", "/detail"];
    let message = places
        .iter()
        .find_map(|place| parsed.pointer(place)?.as_str())
        .unwrap_or(raw);
    let message = beginning(message);
    Some(match metadata["provider_name"].as_str() {
        Some(provider) => format!("{provider}: {message}"),
        None => message,
    })
}

/// The categories that Azure's content filter names as the cause.
pub(crate) fn filtered_categories(results: &Value) -> Option<String> {
    let categories = results.as_object()?.iter();
    let categories: Vec<&str> = categories
        .filter(|(_, result)| result["filtered"] == true)
        .map(|(category, _)| category.as_str())
        .collect();
    (!categories.is_empty()).then(|| categories.join(", "))
}

/// Only for providers that have no code for it.
fn speaks_of_length(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "maximum context length",
        "prompt is too long",
        "context window",
        "input token count",
        "exceeds the available context",
        "exceeded max context length",
        "exceeds max context length",
        "context length exceeded",
        "reduce the length",
        "too many tokens",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// The number of tokens that the model takes, if the message names it: the smallest of the counts in it, since the others
/// say how much was sent.
fn limit_in(message: &str) -> Option<u64> {
    const LEAST: u64 = 1000;
    let numbers = message.split(|c: char| !c.is_ascii_digit() && c != ',');
    let numbers = numbers.filter_map(|number| number.replace(',', "").parse().ok());
    numbers.filter(|number| *number >= LEAST).min()
}

/// Gemini says how long to wait among the details: `{ "@type": "…RetryInfo", "retryDelay": "34.07s" }`.
fn delay_in(error: &Value) -> Option<u64> {
    let details = error["details"].as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds >= 0.0).then(|| (seconds * 1000.0).min(86_400_000.0) as u64)
}
