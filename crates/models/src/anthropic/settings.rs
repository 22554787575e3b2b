//! Request settings: output limit, thinking, temperature and schema. Which of them a model accepts depends on its
//! version.

use crate::wire::Target;
use lango_core::{ModelRequest, ReasoningEffort};
use serde_json::{Value, json};

/// The output limit for a model that is not in the table. The API requires a limit, and all its models accept this one.
const UNKNOWN_MODEL_TOKENS: u64 = 8192;

/// From this version on, a model decides how much it thinks, guided by an effort.
const ADAPTIVE_THINKING: (u32, u32) = (4, 6);

/// From this version on, models refuse a temperature.
const NO_TEMPERATURE: (u32, u32) = (4, 7);

/// Returns the output limit, thinking included: at most a quarter of the context window, which the engine leaves free
/// for it.
pub(super) fn output_tokens(target: &Target<'_>, request: &ModelRequest) -> u64 {
    let window = target.context_tokens.map_or(u64::MAX, |tokens| tokens / 4);
    let usual = target.max_output_tokens.unwrap_or(UNKNOWN_MODEL_TOKENS);
    target
        .output_limit(request)
        .unwrap_or(usual)
        .min(window)
        .max(1)
}

pub(super) fn add_settings(body: &mut Value, target: &Target<'_>, request: &ModelRequest) {
    let effort = effort(target, request);
    let mut output = json!({});
    if let Some(effort) = effort.filter(|_| is_since(target.model, ADAPTIVE_THINKING)) {
        body["thinking"] = json!({ "type": "adaptive" });
        output["effort"] = Value::from(match effort {
            ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
            ReasoningEffort::Medium => "medium",
            ReasoningEffort::High => "high",
        });
    } else if let Some(budget) = thinking_budget(target, request) {
        body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
    }
    if let Some(schema) = target.native_schema(request) {
        output["format"] = json!({ "type": "json_schema", "schema": schema });
    }
    if output.as_object().is_some_and(|fields| !fields.is_empty()) {
        body["output_config"] = output;
    }
    // The API refuses a temperature together with thinking.
    let takes_temperature =
        target.takes_temperature && effort.is_none() && !is_since(target.model, NO_TEMPERATURE);
    if let Some(temperature) = request.settings.temperature.filter(|_| takes_temperature) {
        body["temperature"] = Value::from(temperature.min(1.0));
    }
}

/// Returns how much the model should think; `None` leaves thinking off, which is the provider's default.
fn effort(target: &Target<'_>, request: &ModelRequest) -> Option<ReasoningEffort> {
    let effort = request.settings.reasoning_effort?;
    (target.takes_effort && effort != ReasoningEffort::None).then_some(effort)
}

/// Returns the thinking budget in tokens for models without adaptive thinking. It counts towards the output limit, so
/// half of that limit is left for the answer. The API accepts no less than 1024.
fn thinking_budget(target: &Target<'_>, request: &ModelRequest) -> Option<u64> {
    const MIN_TOKENS: u64 = 1024;
    if is_since(target.model, ADAPTIVE_THINKING) {
        return None;
    }
    let wanted = match effort(target, request)? {
        ReasoningEffort::None | ReasoningEffort::Minimal => MIN_TOKENS,
        ReasoningEffort::Low => 4096,
        ReasoningEffort::Medium => 10_240,
        ReasoningEffort::High => 20_480,
    };
    let budget = wanted.min(output_tokens(target, request) / 2);
    (budget >= MIN_TOKENS).then_some(budget)
}

/// Returns whether a model has at least this version, as in `claude-opus-4-6`, `claude-sonnet-5` and the older
/// `claude-3-7-sonnet`. A name without a version counts as new.
fn is_since(model: &str, version: (u32, u32)) -> bool {
    let numbers: Vec<u32> = model
        .split(['-', '.', '@', ':'])
        .filter(|part| part.len() <= 2)
        .filter_map(|part| part.parse().ok())
        .collect();
    match numbers[..] {
        [] => true,
        [major] => (major, 0) >= version,
        [major, minor, ..] => (major, minor) >= version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_both_forms_of_names() {
        for (model, expected) in [
            ("claude-opus-4-6", true),
            ("claude-opus-4-5-20251101", false),
            ("claude-sonnet-5", true),
            ("claude-sonnet-5-5", true),
            ("claude-opus-4-20250514", false),
            ("claude-3-7-sonnet-20250219", false),
            ("anthropic/claude-haiku-4.5", false),
        ] {
            assert_eq!(is_since(model, ADAPTIVE_THINKING), expected, "{model}");
        }
    }
}
