//! Messages about lines that cannot be read.

use serde_json::{Error, Value};

/// The fields that are whole numbers, zero or more. All others are text.
const NUMBERS: [&str; 7] = [
    "lango_session",
    "lango_attachment",
    "seq",
    "time",
    "created",
    "updated",
    "events",
];

/// Describes why a line could not be read as `what`, which has these fields.
pub(super) fn unread(line: &str, error: &Error, what: &str, fields: &[&str]) -> String {
    if line.trim().is_empty() {
        return "it is empty".to_owned();
    }
    let column = error.column();
    if error.is_eof() {
        return format!("it is cut off after column {column}");
    }
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        return format!("it cannot be read as JSON from column {column} on");
    };
    let Value::Object(object) = value else {
        return format!("it is not {what}, which stands in curly brackets");
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
