//! Wraps the text of commands at words for a terminal.
//!
//! A word that is longer than a row stays in one piece: the terminal breaks it, and a copy of it has no line break.

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
        if is_too_wide(line) {
            wrap_line(line, columns)
        } else {
            line.to_owned()
        }
    });
    Cow::Owned(lines.collect::<Vec<String>>().join("\n"))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn wrap_line(line: &str, columns: usize) -> String {
    let indent = hanging_indent(line, columns);
    let mut rows = String::new();
    let mut used = 0;
    let mut is_row_empty = true;
    for word in words(line) {
        let (text, space) = word.split_at(word.trim_end_matches(' ').len());
        if used + text.width() > columns && !is_row_empty && !text.is_empty() {
            rows.truncate(rows.trim_end_matches(' ').len());
            rows.push('\n');
            rows.push_str(&indent);
            used = indent.width();
        }
        is_row_empty &= text.is_empty();
        rows.push_str(text);
        rows.push_str(space);
        used += word.width();
    }
    rows.truncate(rows.trim_end_matches(' ').len());
    rows
}

/// Splits a line into words with the spaces behind them. A number and its unit are one word.
fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    let mut start = 0;
    for (space, _) in line.match_indices(' ') {
        let (word, rest) = (&line[start..space], &line[space + 1..]);
        if !is_measure(word, rest) {
            words.push(&line[start..=space]);
            start = space + 1;
        }
    }
    words.push(&line[start..]);
    words
}

/// Whether a number is followed by its unit.
fn is_measure(word: &str, rest: &str) -> bool {
    const UNITS: [&str; 8] = ["ms", "s", "min", "h", "d", "B", "KiB", "MiB"];
    let next = rest.split(' ').next().unwrap_or_default();
    let next = next.trim_end_matches([',', ';', '.', ')', ':']);
    let is_number = word.ends_with(|letter: char| letter.is_ascii_digit());
    is_number && UNITS.contains(&next)
}

/// Returns what the rows start with that continue a line: the indentation of its last column if the line is a row of a
/// table, else its own and two columns more. Branches of a tree go on.
fn hanging_indent(line: &str, columns: usize) -> String {
    let is_lead = |letter: &char| matches!(letter, ' ' | '│' | '├' | '└' | '─');
    let lead: String = line.chars().take_while(is_lead).collect();
    let branches = lead.chars().map(|letter| match letter {
        '│' | '├' => '│',
        _ => ' ',
    });
    let mut indent: String = branches.collect();
    let text = &line[lead.len()..];
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
