//! What `lango config show` prints.

use serde_json::json;

use super::{Loaded, Value};

/// How to lay it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `key = value` lines with their help, fit to become a `lango.toml`.
    Toml,
    /// `key = value` lines with where each value came from beside them.
    Origins,
    /// One JSON object: name to `value` (null if not set), `origin` and `help`.
    Json,
}

/// The configuration as text that ends in a newline.
pub fn show(loaded: &Loaded, layout: Layout) -> String {
    match layout {
        Layout::Toml => toml_text(&loaded.values),
        Layout::Origins => columns(&loaded.values),
        Layout::Json => json_text(&loaded.values),
    }
}

fn toml_text(values: &[Value]) -> String {
    values
        .iter()
        .map(|value| format!("# {}\n{}\n", value.key.help, assignment(value)))
        .collect()
}

fn columns(values: &[Value]) -> String {
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
pub fn json(loaded: &Loaded) -> serde_json::Value {
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

fn json_text(values: &[Value]) -> String {
    let entry = |value: &Value| {
        let content = json!({ "value": value.value, "origin": value.origin.to_string(), "help": value.key.help });
        (value.name.clone(), content)
    };
    let object: serde_json::Map<_, _> = values.iter().map(entry).collect();
    format!("{:#}\n", serde_json::Value::Object(object))
}

/// A key that is not set is a comment, so that the whole stays valid TOML.
fn assignment(value: &Value) -> String {
    match value.rendered() {
        Some(rendered) => format!("{} = {rendered}", value.name),
        None => format!("# {} is not set", value.name),
    }
}
