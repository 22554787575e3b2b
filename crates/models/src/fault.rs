//! Classifies providers' errors as lango's faults. An error comes as an HTTP status, or inside a reply with status 200.
//! Its error code takes precedence over the text of its message.

use crate::wire::excerpt;
use lango_core::ModelFault;
use serde_json::Value;

/// Returns the fault for a response whose status is not a success.
pub(crate) fn of_status(status: u16, retry_after_ms: Option<u64>, body: &str) -> ModelFault {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let error = parsed
        .get("error")
        .or_else(|| parsed.pointer("/0/error"))
        .unwrap_or(&parsed);
    let message = message_of(error).unwrap_or_else(|| excerpt(body));
    let detail = format!("{status} {message}");
    classify(Some(status), retry_after_ms, error, detail)
}

/// Returns the fault for an error object inside a reply.
pub(crate) fn of_error_object(error: &Value) -> ModelFault {
    let number = ["code", "status"].iter().find_map(|name| {
        let value = error.get(*name)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    });
    let status = number.and_then(|number| u16::try_from(number).ok());
    let detail = message_of(error).unwrap_or_else(|| excerpt(&error.to_string()));
    classify(status, None, error, detail)
}

fn classify(
    status: Option<u16>,
    retry_after_ms: Option<u64>,
    error: &Value,
    detail: String,
) -> ModelFault {
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let codes = [text("code"), text("type"), text("status")];
    let has_code = |sought: &[&str]| codes.iter().any(|code| sought.contains(code));
    let is_request = matches!(status, None | Some(400 | 413 | 422));
    if is_request && (has_code(TOO_LONG) || status == Some(413) || mentions_length(&detail)) {
        let limit_tokens = limit_in(&detail);
        return ModelFault::ContextTooLong {
            detail,
            limit_tokens,
        };
    }
    // Before the status and the other codes: it comes with 402, 403, 429 and in replies.
    let wait_ms = retry_after_ms.or_else(|| delay_in(error));
    if status == Some(402)
        || has_code(NO_CREDIT)
        || wait_ms.is_none() && mentions_credit(status, &detail)
    {
        return ModelFault::NoCredit { detail };
    }
    if has_code(BAD_KEY) || (is_request && detail.contains("API key")) {
        return ModelFault::BadKey { detail };
    }
    let mentions = |phrases: &[&str]| {
        let detail = detail.to_lowercase();
        phrases.iter().any(|phrase| detail.contains(phrase))
    };
    if is_request && (has_code(UNKNOWN_MODEL) || mentions(UNKNOWN_MODEL_PHRASES)) {
        return ModelFault::UnknownModel { detail };
    }
    match status {
        Some(401 | 403) => ModelFault::BadKey { detail },
        Some(404 | 405) => ModelFault::UnknownModel { detail },
        Some(429) => ModelFault::RateLimited {
            retry_after_ms: wait_ms,
            detail,
        },
        Some(408 | 409 | 425 | 500..=599) => ModelFault::Overloaded {
            retry_after_ms,
            detail,
        },
        None if has_code(RATE_LIMITED) => ModelFault::RateLimited {
            retry_after_ms: None,
            detail,
        },
        None if has_code(&["invalid_request_error"]) => ModelFault::Refused { detail },
        // An error inside a reply without a known code is the provider's own, and usually transient.
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
const NO_CREDIT: &[&str] = &[
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_credits",
];
const BAD_KEY: &[&str] = &[
    "invalid_api_key",
    "authentication_error",
    "permission_error",
];
const UNKNOWN_MODEL: &[&str] = &["model_not_found", "not_found_error", "invalid_model"];
/// Phrases in the messages of providers that have no error code for an unknown model.
const UNKNOWN_MODEL_PHRASES: &[&str] = &["is not a valid model id", "model not found"];
const RATE_LIMITED: &[&str] = &["rate_limit_error", "rate_limit_exceeded"];

/// Returns the error's message, with the message of an upstream provider and the content filters that applied.
fn message_of(error: &Value) -> Option<String> {
    let message = error.get("message").unwrap_or(error);
    let message = message.as_str().or_else(|| error["detail"].as_str());
    let mut message = excerpt(message.filter(|message| !message.is_empty())?);
    if let Some(upstream) = upstream_message(&error["metadata"]) {
        message = format!("{}: {upstream}", message.trim_end_matches('.'));
    }
    let filters = &error["innererror"]["content_filter_result"];
    if let Some(categories) = filtered_categories(filters) {
        message = format!("{} (filtered: {categories})", message.trim_end_matches('.'));
    }
    Some(message)
}

/// Returns the upstream provider's message, which OpenRouter passes on as JSON or as text.
fn upstream_message(metadata: &Value) -> Option<String> {
    let raw = metadata["raw"].as_str().filter(|raw| !raw.is_empty())?;
    let parsed: Value = serde_json::from_str(raw).unwrap_or_default();
    let pointers = ["/error/message", "/message", "/error", "/detail"];
    let message = pointers
        .iter()
        .find_map(|pointer| parsed.pointer(pointer)?.as_str())
        .unwrap_or(raw);
    let message = excerpt(message);
    Some(match metadata["provider_name"].as_str() {
        Some(provider) => format!("{provider}: {message}"),
        None => message,
    })
}

/// Returns the categories for which Azure's content filter blocked the request or reply.
pub(crate) fn filtered_categories(results: &Value) -> Option<String> {
    let categories = results.as_object()?.iter();
    let categories: Vec<&str> = categories
        .filter(|(_, result)| result["filtered"] == true)
        .map(|(category, _)| category.as_str())
        .collect();
    (!categories.is_empty()).then(|| categories.join(", "))
}

/// Returns whether the message says that the account has no credit. Needed for providers that have no code for this
/// error: some send 400, 403 or 429 with a text. Gemini sends the same text for a rate limit, but then with a delay.
fn mentions_credit(status: Option<u16>, message: &str) -> bool {
    if !matches!(status, None | Some(400 | 401 | 403 | 429)) {
        return false;
    }
    let message = message.to_lowercase();
    [
        "insufficient credit",
        "insufficient balance",
        "insufficient funds",
        "credit balance is too low",
        "out of credits",
        "no credits",
        "used all available credits",
        "check your plan and billing",
        "exceeded your current quota, please check",
        "billing hard limit",
        "account is not active, please check your billing",
    ]
    .iter()
    .any(|phrase| message.contains(phrase))
}

/// Returns whether the message says that the request is too long. Needed for providers that have no code for this
/// error.
fn mentions_length(message: &str) -> bool {
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
    .any(|phrase| message.contains(phrase))
}

/// Returns the context window if the message contains it. It is the smallest large number in the message, because the
/// others say how much was sent.
fn limit_in(message: &str) -> Option<u64> {
    const SMALLEST_WINDOW: u64 = 1000;
    let numbers = message.split(|c: char| !c.is_ascii_digit() && c != ',');
    let numbers = numbers.filter_map(|number| number.replace(',', "").parse().ok());
    numbers.filter(|number| *number >= SMALLEST_WINDOW).min()
}

/// Returns the retry delay in milliseconds from Gemini's details: `{ "@type": "…RetryInfo", "retryDelay": "34.07s" }`.
fn delay_in(error: &Value) -> Option<u64> {
    let details = error["details"].as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    (seconds >= 0.0).then(|| (seconds * 1000.0).min(86_400_000.0) as u64)
}
