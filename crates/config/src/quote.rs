//! Values as text: always one line, always valid TOML, and free of terminal control characters.

use toml::de::DeValue;

use crate::redact::redact;
use lango_core::text::is_disruptive;

/// The maximum number of characters of a value that an error message repeats.
const MAX_VALUE_CHARS: usize = 60;

/// Renders a value as in a configuration file.
pub(super) fn render(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("\"{}\"", escape(text)),
        other => other.to_string(),
    }
}

/// Describes an unexpected value, short enough for an error.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", shorten(text)),
        DeValue::Integer(number) => shorten(&number.to_string()),
        DeValue::Float(number) => shorten(&number.to_string()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "[…]".into(),
        DeValue::Table(_) => "{…}".into(),
    }
}

/// Returns the beginning of a text, escaped and without secrets.
pub(super) fn shorten(text: &str) -> String {
    let text = &*redact(text);
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", escape(&text[..end])),
        None => escape(text),
    }
}

/// Returns a name as part of a dotted TOML key: bare if possible, otherwise quoted.
pub(super) fn segment(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if !name.is_empty() && name.chars().all(is_bare) {
        name.into()
    } else {
        format!("\"{}\"", escape(name))
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            _ if is_disruptive(letter) => out.push_str(&format!("\\U{:08X}", u32::from(letter))),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_rendered_value_is_one_line_and_parses_back_to_the_same_value(text in "(?s).{0,40}") {
            let value = toml::Value::String(text);
            let line = render(&value);
            prop_assert!(!line.contains(char::is_control), "{line:?}");
            prop_assert_eq!(line.parse::<toml::Value>().unwrap(), value);
        }
    }
}
