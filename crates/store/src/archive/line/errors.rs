//! Error messages for lines that cannot be parsed.

use serde_json::{Error, Value};

/// The fields that are non-negative integers. All others are text.
const NUMBERS: [&str; 7] = [
    "lango_session",
    "lango_attachment",
    "seq",
    "time",
    "created",
    "updated",
    "events",
];

/// Explains why a line could not be parsed as `what`, which has these fields.
pub(super) fn describe(line: &str, error: &Error, what: &str, fields: &[&str]) -> String {
    if line.trim().is_empty() {
        return "it is empty".to_owned();
    }
    let column = error.column();
    if error.is_eof() {
        return format!("it ends too early, after column {column}");
    }
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        return format!("it cannot be read as JSON from column {column} on");
    };
    let Value::Object(object) = value else {
        return format!("it is not {what}, which is a JSON object");
    };
    for name in fields {
        let problem = match (object.get(*name), NUMBERS.contains(name)) {
            (None, _) => "is missing",
            (Some(value), true) if !value.is_u64() => "should be a whole number",
            (Some(value), false) if !value.is_string() => "should be text",
            _ => continue,
        };
        return format!("it is not {what}: `{name}` {problem}");
    }
    format!("it is not {what} as lango writes it: something is wrong in column {column}")
}
