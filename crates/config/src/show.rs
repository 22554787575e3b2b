//! The output of `lango config show`.

use serde_json::json;

use super::{ConfigValue, LoadedConfig};

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `key = value` lines with their help as comments, usable as a `lango.toml`.
    Toml,
    /// `key = value` lines, each with its origin beside it.
    Origins,
    /// One JSON object that maps names to `value` (null if not set), `origin` and `help`.
    Json,
}

/// Returns the configuration as text that ends in a newline.
pub fn show(loaded: &LoadedConfig, layout: Layout) -> String {
    match layout {
        Layout::Toml => toml_text(&loaded.values),
        Layout::Origins => columns(&loaded.values),
        Layout::Json => json_text(&loaded.values),
    }
}

fn toml_text(values: &[ConfigValue]) -> String {
    values
        .iter()
        .map(|value| format!("# {}\n{}\n", value.key.help, assignment(value)))
        .collect()
}

fn columns(values: &[ConfigValue]) -> String {
    let width = values
        .iter()
        .map(|value| assignment(value).chars().count())
        .max()
        .unwrap_or(0);
    values
        .iter()
        .map(|value| format!("{:width$}  {}\n", assignment(value), value.origin))
        .collect()
}

/// Returns the configuration as a JSON list, each value with its key, origin and help. Secrets are redacted.
pub fn json(loaded: &LoadedConfig) -> serde_json::Value {
    let values = loaded.values.iter().map(|value| {
        json!({
            "key": value.name,
            "value": value.value,
            "origin": value.origin.to_string(),
            "help": value.key.help,
        })
    });
    json!({ "values": values.collect::<Vec<_>>() })
}

fn json_text(values: &[ConfigValue]) -> String {
    let entry = |value: &ConfigValue| {
        let content = json!({ "value": value.value, "origin": value.origin.to_string(), "help": value.key.help });
        (value.name.clone(), content)
    };
    let object: serde_json::Map<_, _> = values.iter().map(entry).collect();
    format!("{:#}\n", serde_json::Value::Object(object))
}

/// Returns the assignment of one key. An unset key becomes a comment, so that the output stays valid TOML.
fn assignment(value: &ConfigValue) -> String {
    match value.render() {
        Some(rendered) => format!("{} = {rendered}", value.name),
        None => format!("# {} is not set", value.name),
    }
}
