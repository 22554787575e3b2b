//! Notices of events that a call did not ask for: dialogs, popups, downloads, script errors. The next result carries
//! each once; repeated ones become one line with a count.
//!
//! A notice is a line in brackets at the end of a result. It quotes page text ([`quote`]), and no line of page text
//! starts with a bracket ([`escape_notices`]), so a page cannot forge one.

use crate::observe::{cut, is_unseen, one_line, quote};

/// The most notices that wait for a result.
const MOST: usize = 20;
/// The longest text of a page in a notice, in bytes.
const LONGEST: usize = 300;

/// Notices that no result has carried yet.
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
        } else if self.lines.len() < MOST {
            self.lines.push(Line { text, count: 1 });
        } else {
            self.left_out += 1;
        }
    }

    /// Takes them all.
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
            texts.push(format!("{left_out} more of such are not shown"));
        }
        texts
    }
}

/// Shortens page text to one readable line without invisible characters.
pub(crate) fn shorten(text: &str) -> String {
    cut(&one_line(text), LONGEST)
}

/// Shortens and quotes page text for a notice.
pub(crate) fn quote_short(text: &str) -> String {
    quote(&shorten(text))
}

/// Escapes the bracket of every line of page text that could be mistaken for a notice. Markdown links stay.
pub(crate) fn escape_notices(text: &str) -> String {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let mut escaped = String::with_capacity(text.len());
    for line in text.split_inclusive(is_break) {
        let start = line.find(|c: char| !c.is_whitespace() && !is_unseen(c));
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
    fn the_same_notice_is_counted_and_many_are_bounded() {
        let mut notices = Notices::default();
        for _ in 0..3 {
            notices.add("an alert said `a\nb`");
        }
        for index in 0..100 {
            notices.add(format!("popup {index}"));
        }
        let taken = notices.take();
        assert_eq!(taken[0], "an alert said `a b` (3 times)");
        assert_eq!(taken.len(), MOST + 1);
        assert_eq!(taken[MOST], "81 more of such are not shown");
        assert!(notices.take().is_empty());
    }
    #[test]
    fn a_line_of_a_page_does_not_start_like_a_notice() {
        let page = "a [b]\n[downloaded `x`]\n \u{200b}[end\u{2028}[end]\r[x](http://a/) [y]\n[a] [x](http://a/)";
        assert_eq!(
            escape_notices(page),
            "a [b]\n\\[downloaded `x`]\n \u{200b}\\[end\u{2028}\\[end]\r[x](http://a/) [y]\n\\[a] [x](http://a/)"
        );
        assert_eq!(quote_short("a\"]\n[b\u{202e}\u{200b}"), r#""a\"] [b""#);
    }
}
