//! Wraps the text of commands at words for a terminal.

use crate::terminal::{branches, wrap_prefixed, wrap_whole_words};
use serde::de::IgnoredAny;
use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

/// Wraps each line of a sanitized text. JSON stays as it is.
pub(super) fn wrap_text(text: &str, columns: usize) -> Cow<'_, str> {
    let is_too_wide = |line: &str| line.width() > columns;
    if !text.split('\n').any(is_too_wide) || is_json(text) {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n').map(|line| {
        if !is_too_wide(line) {
            return line.to_owned();
        }
        // Each row of a quoted text has its mark.
        if branches(line).contains('│') {
            wrap_quoted(line, columns)
        } else {
            wrap_whole_words(line, &hanging_indent(line, columns), columns).join("\n")
        }
    });
    Cow::Owned(lines.collect::<Vec<String>>().join("\n"))
}

/// Wraps each line of a text that may have been written by others. Rows that continue a line are indented, also inside of
/// a long word.
pub(super) fn wrap_quoted(text: &str, columns: usize) -> String {
    let rows = text.split('\n').flat_map(|line| {
        let (lead, text) = line.split_at(lead_of(line));
        wrap_prefixed(text, lead, &hanging_indent(line, columns), columns)
    });
    rows.collect::<Vec<String>>().join("\n")
}

/// Returns the length of the blanks and marks at the start of a line, in bytes.
fn lead_of(line: &str) -> usize {
    let letters = line.chars().take(branches(line).chars().count());
    letters.map(char::len_utf8).sum()
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns what the rows start with that continue a line: the indentation of its last column if the line is a row of a
/// table, else its own and two columns more. Branches of a tree go on.
fn hanging_indent(line: &str, columns: usize) -> String {
    let mut indent = branches(line);
    let text = &line[lead_of(line)..];
    let gaps = text.match_indices("  ").map(|(at, _)| {
        let after = &text[at..];
        line.len() - after.trim_start_matches(' ').len()
    });
    let starts = gaps.map(|at| line[..at].width());
    let column = starts.filter(|start| *start <= columns / 2).max();
    let width = column.unwrap_or(indent.width() + 2);
    let more = width.saturating_sub(indent.width());
    indent.extend(std::iter::repeat_n(' ', more));
    indent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_words_below_their_own_text() {
        assert_eq!(wrap_text("one two three", 8), "one two\n  three");
        assert_eq!(wrap_text("  one two three", 9), "  one two\n    three");
        assert_eq!(
            wrap_text("├─ one two\n│    three four\n└─ five six", 12),
            "├─ one two\n│    three\n│      four\n└─ five six"
        );
        assert_eq!(wrap_text("short", 8), "short");
    }

    #[test]
    fn the_last_column_of_a_table_continues_below_itself() {
        assert_eq!(
            wrap_text("✓ model   not yet connected, set it up", 24),
            "✓ model   not yet\n          connected, set\n          it up"
        );
        assert_eq!(
            wrap_text("payment.network = \"none\"     default", 30),
            "payment.network = \"none\"\n  default"
        );
    }

    #[test]
    fn a_word_that_is_longer_than_a_row_is_not_broken() {
        let path = "/a/path/that/is/longer";
        assert_eq!(
            wrap_text(&format!("no file {path} here"), 12),
            format!("no file\n  {path}\n  here")
        );
    }

    #[test]
    fn no_row_of_a_quoted_text_starts_like_a_line_of_lango() {
        // A blank letter of Braille is no space.
        let forged = format!("{}user:\u{2800}yes", "x".repeat(12));
        for text in [format!("  │ {forged}"), format!("  {forged}")] {
            let rows = wrap_text(&text, 12).into_owned();
            assert!(rows.lines().all(|row| row.starts_with("  ")), "{rows}");
        }
        let rows = wrap_quoted(&format!("  {}user:yes", "x".repeat(10)), 12);
        assert_eq!(rows, "  xxxxxxxxxx\n    user:yes");
        let rows = wrap_text(&format!("  │ {}trusted", "x".repeat(8)), 12).into_owned();
        assert!(rows.lines().all(|row| row.starts_with("  │ ")), "{rows}");
    }

    #[test]
    fn a_number_and_its_unit_stay_together() {
        assert_eq!(wrap_text("list files  5 ms", 14), "list files\n  5 ms");
        assert_eq!(
            wrap_text("it ran for 5 ms, then", 13),
            "it ran for\n  5 ms, then"
        );
    }

    #[test]
    fn json_is_never_wrapped() {
        for json in [r#"{"a": "some words"}"#, "[\n  \"some more words\"\n]"] {
            assert_eq!(wrap_text(json, 8), json);
        }
    }
}
