//! JSON output that may also be shown on a terminal: control characters are escaped, which means the same to a
//! parser.

use super::is_disruptive;
use serde::Serialize;
use std::fmt::Write;

/// The layout of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Line,
    Indented,
}

/// Formats a value as JSON without control characters, except for the newlines of the layout.
pub fn json(value: &impl Serialize, layout: Layout) -> serde_json::Result<String> {
    let text = match layout {
        Layout::Line => serde_json::to_string(value)?,
        Layout::Indented => serde_json::to_string_pretty(value)?,
    };
    if !text.contains(is_disruptive) {
        return Ok(text);
    }
    // JSON has such characters only inside strings.
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_disruptive(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(letter);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_output_has_no_control_characters_and_parses_to_the_same_value(text in "(?s).{0,40}") {
            let value = vec![text, "\u{9b}31m\u{202e}\u{e0041}\u{7f}".to_owned()];
            for layout in [Layout::Line, Layout::Indented] {
                let shown = json(&value, layout).unwrap();
                prop_assert!(!shown.contains(is_disruptive));
                prop_assert_eq!(&serde_json::from_str::<Vec<String>>(&shown).unwrap(), &value);
            }
        }
    }
}
