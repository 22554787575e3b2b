//! The output of a command as a terminal would leave it.

use std::borrow::Cow;

/// Returns the output without the states that a progress bar has overwritten, and without colours. A model would pay
/// for each of them.
pub(crate) fn as_left(output: &str) -> Cow<'_, str> {
    if !output.contains(['\r', '\u{1b}']) {
        return Cow::Borrowed(output);
    }
    let lines = output.split_inclusive('\n').map(|line| {
        let (content, end) = match line.strip_suffix('\n') {
            Some(content) => (content, "\n"),
            None => (line, ""),
        };
        let content = content.trim_end_matches('\r');
        let last = content.rsplit('\r').next().unwrap_or(content);
        without_colours(last) + end
    });
    Cow::Owned(lines.collect())
}

/// Removes the sequences that select colours: `ESC [`, numbers, `m`.
fn without_colours(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        shown.push_str(before);
        let end = after.find(|letter: char| !letter.is_ascii_digit() && letter != ';');
        match end.filter(|end| after[*end..].starts_with('m')) {
            Some(end) => rest = &after[end + 1..],
            None => {
                shown.push_str("\u{1b}[");
                rest = after;
            }
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_state_of_a_line_is_left() {
        assert_eq!(
            as_left("\r 10%\r 50%\r100%\nready\r\n"),
            "100%\nready\n",
            "a line break of Windows is one, too"
        );
        assert_eq!(as_left("a 1%\ra 2%\r"), "a 2%");
    }

    #[test]
    fn colours_are_removed_and_everything_else_stays() {
        assert_eq!(as_left("\u{1b}[1;31mred\u{1b}[0m\u{1b}[mx"), "redx");
        assert_eq!(as_left("\u{1b}[2Jx \u{1b}["), "\u{1b}[2Jx \u{1b}[");
        assert!(matches!(as_left("plain\ttext\n"), Cow::Borrowed(_)));
    }
}
