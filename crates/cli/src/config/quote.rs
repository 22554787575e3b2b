//! Values as text: always one line, always valid TOML, and nothing in it that a terminal would obey.

use toml::de::DeValue;

use crate::markdown::is_disruptive;
use crate::redact::redact;

/// How much of a value an error repeats.
const LONGEST_FOUND: usize = 60;

/// A value as it would be written in a file.
pub(super) fn rendered(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("\"{}\"", escaped(text)),
        other => other.to_string(),
    }
}

/// A value that was found where another was expected, short enough for an error.
pub(super) fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", shortened(text)),
        DeValue::Integer(number) => shortened(&number.to_string()),
        DeValue::Float(number) => shortened(&number.to_string()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "[…]".into(),
        DeValue::Table(_) => "{…}".into(),
    }
}

/// The beginning of a text, escaped and without secrets.
pub(super) fn shortened(text: &str) -> String {
    let text = &*redact(text);
    match text.char_indices().nth(LONGEST_FOUND) {
        Some((end, _)) => format!("{}…", escaped(&text[..end])),
        None => escaped(text),
    }
}

/// A name as TOML wants it in a dotted key: bare if it can be, else quoted.
pub(super) fn segment(name: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if !name.is_empty() && name.chars().all(is_bare) {
        name.into()
    } else {
        format!("\"{}\"", escaped(name))
    }
}

fn escaped(text: &str) -> String {
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
        fn what_is_rendered_is_one_line_and_reads_back_the_same(text in "(?s).{0,40}") {
            let value = toml::Value::String(text);
            let line = rendered(&value);
            prop_assert!(!line.contains(char::is_control), "{line:?}");
            prop_assert_eq!(line.parse::<toml::Value>().unwrap(), value);
        }
    }
}
