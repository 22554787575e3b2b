//! Unified diffs of two texts, limited in length and safe to print on a terminal.

use crate::show;
use similar::TextDiff;
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

/// Returns at most `lines` lines of the diff, or an empty text if both texts are equal. With `usize::MAX`, nothing is
/// left out and no line is truncated.
pub(crate) fn unified(old: &str, new: &str, lines: usize) -> String {
    if old.len() + new.len() > MAX_COMPARED_BYTES {
        let (old, new) = (old.len() as u64, new.len() as u64);
        let (old, new) = (show::size(old), show::size(new));
        return format!("[too large to compare: {old} before, {new} after]\n");
    }
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(old, new);
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn huge_texts_are_not_compared() {
        let shown = unified("", &"x".repeat(3_000_000), 10);
        assert_eq!(shown, "[too large to compare: 0 B before, 3.0 MB after]\n");
    }
}
