//! Request settings as Gemini's `generationConfig`.

use super::generation;
use crate::wire::Target;
use lango_core::{ModelRequest, ReasoningEffort};
use serde_json::{Map, Value, json};

/// Builds the configuration for a request; `None` if the model's defaults suffice.
pub(super) fn generation_config(target: &Target<'_>, request: &ModelRequest) -> Option<Value> {
    let settings = &request.settings;
    let mut config = Map::new();
    let mut add = |name: &str, value: Value| config.insert(name.to_owned(), value);
    if let Some(tokens) = target.output_limit(request) {
        add("maxOutputTokens", Value::from(tokens));
    }
    if let Some(temperature) = settings.temperature.filter(|_| target.takes_temperature) {
        add("temperature", Value::from(temperature));
    }
    if let Some(effort) = settings.reasoning_effort.filter(|_| target.takes_effort) {
        add("thinkingConfig", thinking_config(target.model, effort));
    }
    // Before the third generation, a schema and functions exclude each other.
    let accepts_schema = request.functions.is_empty() || generation(target.model) >= 3;
    if let Some(schema) = target.native_schema(request).filter(|_| accepts_schema) {
        add("responseMimeType", Value::from("application/json"));
        add("responseJsonSchema", schema.clone());
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

/// Returns the thinking configuration: a level from the third generation on, a token budget before.
fn thinking_config(model: &str, effort: ReasoningEffort) -> Value {
    let is_pro = model.contains("pro");
    if generation(model) >= 3 {
        return json!({ "thinkingLevel": match effort {
            // Thinking cannot be turned off in the pro models.
            ReasoningEffort::None | ReasoningEffort::Minimal if is_pro => "low",
            ReasoningEffort::None | ReasoningEffort::Minimal => "minimal",
            other => other.name(),
        }});
    }
    json!({ "thinkingBudget": match effort {
        ReasoningEffort::None if !is_pro => 0,
        ReasoningEffort::None | ReasoningEffort::Minimal => 512,
        ReasoningEffort::Low => 1024,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 24_576,
    }})
}
