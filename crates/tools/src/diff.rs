//! Unified diffs of two texts, limited in length and safe to print on a terminal.

use crate::show;
use similar::{ChangeTag, TextDiff};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Maximum number of diff lines in a preview.
pub(crate) const PREVIEW_LINES: usize = 200;

/// Maximum number of diff lines in the result of a call.
pub(crate) const RESULT_LINES: usize = 40;

/// Number of characters after which a line is truncated.
const LINE_CHARACTERS: usize = 300;

/// Maximum size of both texts together; larger texts are not compared.
const MAX_COMPARED_BYTES: usize = 2_000_000;

/// Time after which the diff algorithm settles for a diff that is not minimal.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The mark of a space at the end of an added line.
const TRAILING_SPACE: &str = "·";

/// Returns the diff like [`unified`], for the user who approves the change: white space that looks like something else,
/// or like nothing, is visible. A model would take the marks for a part of the text.
pub(crate) fn preview(old: &str, new: &str, lines: usize) -> String {
    let diff = unified(old, new, lines);
    let mut text = String::with_capacity(diff.len());
    for line in diff.lines() {
        text.push_str(&with_visible_spaces(line));
        text.push('\n');
    }
    text
}

/// Marks white space at the end of an added line, and escapes characters that look like a space in any line.
fn with_visible_spaces(line: &str) -> String {
    let (text, ending) = match line.strip_suffix("\\r") {
        Some(text) => (text, "\\r"),
        None => (line, ""),
    };
    let end = match text.strip_prefix('+') {
        Some(added) => 1 + added.trim_end_matches([' ', '\t']).len(),
        None => text.len(),
    };
    let mut shown = String::with_capacity(line.len());
    for letter in text[..end].chars() {
        match letter {
            // The wide space of Chinese and Japanese texts is visible.
            ' ' | '\t' | '\u{3000}' => shown.push(letter),
            '\u{2800}' | '\u{3164}' | '\u{115f}' | '\u{1160}' | '\u{ffa0}' => {
                shown.extend(letter.escape_unicode());
            }
            letter if letter.is_whitespace() => shown.extend(letter.escape_unicode()),
            letter => shown.push(letter),
        }
    }
    for letter in text[end..].chars() {
        shown.push_str(if letter == '\t' {
            "\\t"
        } else {
            TRAILING_SPACE
        });
    }
    shown + ending
}

/// Returns at most `lines` lines of the diff, or an empty text if both texts are equal. With `usize::MAX`, nothing is
/// left out and no line is truncated.
pub(crate) fn unified(old: &str, new: &str, lines: usize) -> String {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        let (old, new) = (old.len() as u64, new.len() as u64);
        let (old, new) = (show::size(old), show::size(new));
        return format!("[too large to compare: {old} before, {new} after]\n");
    }
    let (old, new) = (shown_lines(old), shown_lines(new));
    let (old, new) = (borrowed(&old), borrowed(&new));
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_slices(&old, &new);
    let whole = diff.unified_diff().context_radius(3).to_string();
    // Only a line feed ends a line; other line separators are escaped.
    let mut all = whole.strip_suffix('\n').unwrap_or(&whole).split('\n');
    if whole.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let longest = match lines {
        usize::MAX => usize::MAX,
        _ => LINE_CHARACTERS,
    };
    for line in all.by_ref().take(lines) {
        text.push_str(&show::line(line, longest));
        text.push('\n');
    }
    let left = all.count() as u64;
    if left > 0 {
        text.push_str(&format!("[{} not shown]\n", show::count(left, "more line")));
    }
    text
}

/// The numbers of lines that a change adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineCounts {
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

/// Formats the counts after a path: ` +3 −1`. Zeros are left out.
impl fmt::Display for LineCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.added, self.removed) {
            (0, 0) => f.write_str(" (unchanged)"),
            (added, 0) => write!(f, " +{added}"),
            (0, removed) => write!(f, " −{removed}"),
            (added, removed) => write!(f, " +{added} −{removed}"),
        }
    }
}

/// Counts the lines that a change adds and removes. Compares only the part between the first and the last difference; if
/// that is large, all of it counts as replaced.
pub(crate) fn counts(old: &str, new: &str) -> LineCounts {
    let (old, new) = differing_lines(old, new);
    let all = LineCounts {
        added: lines_of(new).count(),
        removed: lines_of(old).count(),
    };
    if all.added == 0 || all.removed == 0 || old.len() + new.len() > MAX_COMPARED_BYTES {
        return all;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (lines_of(old).collect(), lines_of(new).collect());
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_slices(&old, &new);
    let changes = diff.iter_all_changes().map(|change| change.tag());
    let (mut added, mut removed) = (0, 0);
    for tag in changes {
        added += usize::from(tag == ChangeTag::Insert);
        removed += usize::from(tag == ChangeTag::Delete);
    }
    LineCounts { added, removed }
}

/// Returns both texts without the lines that they have in common at the start and at the end.
fn differing_lines<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let same = |(old, new): &(&str, &str)| old == new;
    let start = lines_of(old).zip(lines_of(new)).take_while(same);
    let start: usize = start.map(|(line, _)| line.len()).sum();
    let (old, new) = (&old[start..], &new[start..]);
    let end = lines_of(old).rev().zip(lines_of(new).rev());
    let end: usize = end.take_while(same).map(|(line, _)| line.len()).sum();
    (&old[..old.len() - end], &new[..new.len() - end])
}

/// Returns the lines of a text without their line feeds, as a diff shows them. Only a line feed ends a line.
fn shown_lines(text: &str) -> Vec<Cow<'_, str>> {
    let lines = lines_of(text).map(|line| match line.strip_suffix('\n') {
        Some(line) => line.into(),
        None => format!("{line}\n\\ No newline at end of file").into(),
    });
    lines.collect()
}

fn borrowed<'a>(lines: &'a [Cow<'_, str>]) -> Vec<&'a str> {
    lines.iter().map(|line| &**line).collect()
}

/// Returns the lines of a text with their line feeds.
fn lines_of(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split_inclusive('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_are_counted() {
        let of = |old, new| counts(old, new).to_string();
        assert_eq!(of("", "a\nb\n"), " +2");
        assert_eq!(of("a\nb\nc\n", "a\nc\n"), " −1");
        assert_eq!(of("a\nb\nc\n", "a\nB\nnew\nc\n"), " +2 −1");
        assert_eq!(of("a\nx\nb\n", "b\nx\na\n"), " +2 −2");
        assert_eq!(of("a", "a\n"), " +1 −1");
        assert_eq!(of("a\n", "a\n"), " (unchanged)");
        assert_eq!(of("a\na\n", "a\na\na\n"), " +1");
        assert_eq!(of("x\n", ""), " −1");
    }

    #[test]
    fn a_small_change_of_a_huge_text_is_counted_exactly() {
        let old: String = (0..1_000_000).map(|number| format!("{number}\n")).collect();
        let new = old.replacen("500000\n", "half\nway\n", 1);
        assert_eq!(counts(&old, &new).to_string(), " +2 −1");
        let other = "y\n".repeat(1_000_000);
        assert_eq!(counts(&"x\n".repeat(1_000_000), &other).added, 1_000_000);
    }

    #[test]
    fn a_change_is_shown_with_three_lines_of_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = old.replace('5', "five");
        assert_eq!(
            unified(old, &new, 100),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!(unified(old, old, 100), "");
        assert_eq!(unified("", "a\nb\n", 100), "@@ -0,0 +1,2 @@\n+a\n+b\n");
    }

    #[test]
    fn a_long_diff_is_truncated_with_a_note() {
        let new = "x\n".repeat(300);
        let shown = unified("", &new, 10);
        assert_eq!(shown.lines().count(), 11);
        assert!(
            shown.ends_with("+x\n[291 more lines not shown]\n"),
            "{shown}"
        );
    }

    #[test]
    fn line_ends_and_control_characters_are_visible() {
        let shown = unified("a\r\n", "a\n\u{1b}[2J", 10);
        assert_eq!(
            shown,
            "@@ -1 +1,2 @@\n-a\\r\n+a\n+\\u{1b}[2J\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_carriage_return_inside_a_line_ends_no_line() {
        assert_eq!(unified("", "A\rB\n", 10), "@@ -0,0 +1 @@\n+A\\rB\n");
        let shown = unified("a\r", "b", 10);
        assert_eq!(
            shown,
            "@@ -1 +1 @@\n-a\\r\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
        );
        assert_eq!(counts("", "a\rb\n").to_string(), " +1");
    }

    #[test]
    fn a_preview_shows_spaces_that_would_be_invisible() {
        let new = "a  \n\t\nb \t\r\nx\u{a0}y\n\u{2800}\nwide\u{3000}\n";
        assert_eq!(
            preview("", new, 10),
            "@@ -0,0 +1,6 @@\n+a··\n+\\t\n+b·\\t\\r\n+x\\u{a0}y\n+\\u{2800}\n+wide\u{3000}\n"
        );
        // Only added lines: the others are no news.
        assert_eq!(
            preview("a \nb\n", "a \nc\n", 10),
            "@@ -1,2 +1,2 @@\n a \n-b\n+c\n"
        );
        assert_eq!(preview("a", "a", 10), "");
    }

    #[test]
    fn huge_texts_are_not_compared() {
        let shown = unified("", &"x".repeat(3_000_000), 10);
        assert_eq!(shown, "[too large to compare: 0 B before, 3.0 MB after]\n");
    }
}
