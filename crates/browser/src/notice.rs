//! Notices about events that a call did not ask for: dialogs, popups, downloads, script errors. The next result
//! includes each of them once; repeated notices become one line with a count.
//!
//! A notice is a line in brackets at the end of a result. Page text inside it is quoted ([`quote`]), and lines of page
//! text elsewhere never start with a bracket ([`escape_notices`]), so a page cannot forge a notice.

use crate::observe::{cut, is_invisible, one_line, quote};

/// Maximum number of pending notices; further ones are only counted.
const MAX_NOTICES: usize = 20;
/// Maximum length of page text in a notice, in bytes.
const MAX_TEXT_BYTES: usize = 300;

/// Notices that no result has included yet.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    lines: Vec<Line>,
    left_out: usize,
}

#[derive(Debug)]
struct Line {
    text: String,
    count: usize,
}

impl Notices {
    /// Adds a notice; a repeated one only increments its count.
    pub(crate) fn add(&mut self, text: impl AsRef<str>) {
        let text = one_line(text.as_ref());
        if let Some(line) = self.lines.iter_mut().find(|line| line.text == text) {
            line.count += 1;
        } else if self.lines.len() < MAX_NOTICES {
            self.lines.push(Line { text, count: 1 });
        } else {
            self.left_out += 1;
        }
    }

    /// Removes and returns all notices.
    pub(crate) fn take(&mut self) -> Vec<String> {
        let Self { lines, left_out } = std::mem::take(self);
        let mut texts: Vec<String> = lines
            .into_iter()
            .map(|Line { text, count }| match count {
                1 => text,
                count => format!("{text} ({count} times)"),
            })
            .collect();
        if left_out > 0 {
            texts.push(format!("{left_out} more notices are not shown"));
        }
        texts
    }
}

/// Shortens page text to one readable line without invisible characters.
pub(crate) fn shorten(text: &str) -> String {
    cut(&one_line(text), MAX_TEXT_BYTES)
}

/// Shortens and quotes page text for a notice.
pub(crate) fn quote_short(text: &str) -> String {
    quote(&shorten(text))
}

/// Escapes the opening bracket of every line of page text that could be mistaken for a notice. Leaves Markdown links
/// unchanged.
pub(crate) fn escape_notices(text: &str) -> String {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut escaped = String::with_capacity(text.len());
    for line in text.split_inclusive(is_break) {
        let start = line.find(|c: char| !c.is_whitespace() && !is_invisible(c));
        let (before, rest) = line.split_at(start.unwrap_or(line.len()));
        escaped.push_str(before);
        let is_link = rest
            .split_once(']')
            .is_some_and(|(_, after)| after.starts_with('('));
        if rest.starts_with('[') && !is_link {
            escaped.push('\\');
        }
        escaped.push_str(rest);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_notices_are_counted_and_their_number_is_limited() {
        let mut notices = Notices::default();
        for _ in 0..3 {
            notices.add("an alert said `a\nb`");
        }
        for index in 0..100 {
            notices.add(format!("popup {index}"));
        }
        let taken = notices.take();
        assert_eq!(taken[0], "an alert said `a b` (3 times)");
        assert_eq!(taken.len(), MAX_NOTICES + 1);
        assert_eq!(taken[MAX_NOTICES], "81 more notices are not shown");
        assert!(notices.take().is_empty());
    }

    #[test]
    fn lines_of_page_text_cannot_look_like_notices() {
        let page = "a [b]\n[downloaded `x`]\n \u{200b}[end\u{2028}[end]\r[x](http://a/) [y]\n[a] [x](http://a/)";
        assert_eq!(
            escape_notices(page),
            "a [b]\n\\[downloaded `x`]\n \u{200b}\\[end\u{2028}\\[end]\r[x](http://a/) [y]\n\\[a] [x](http://a/)"
        );
        assert_eq!(quote_short("a\"]\n[b\u{202e}\u{200b}"), r#""a\"] [b""#);
    }
}
