//! Messages about lines that cannot be read.

use serde_json::{Error, Value};

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// A whole number, zero or more.
    Number,
    /// Text.
    Text,
}

impl Holds {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Number => value.is_u64(),
            Self::Text => value.is_string(),
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Number => "a whole number",
            Self::Text => "text",
        }
    }
}

/// Describes why a line could not be read as `what`, which has these fields.
pub(super) fn unread(line: &str, error: &Error, what: &str, fields: &[(&str, Holds)]) -> String {
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
    for (name, holds) in fields {
        match object.get(*name) {
            None => return format!("it is not {what}: `{name}` is missing"),
            Some(value) if !holds.fits(value) => {
                return format!("it is not {what}: `{name}` should be {}", holds.described());
            }
            Some(_) => {}
        }
    }
    format!("it is not {what} as lango writes it: something is wrong in column {column}")
}
