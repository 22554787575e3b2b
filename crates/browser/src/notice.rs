//! What happened in a browser besides what a call asked for: dialogs, popups, downloads, errors of scripts. Each is told
//! once, with the result of the next call; many of a kind become one line with a count.

/// The most notices that wait to be told.
const MOST: usize = 20;
/// The longest text of a notice, in characters.
const LONGEST: usize = 300;

/// Notices that were not told yet.
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
    /// Adds one; the same again only raises its count.
    pub(crate) fn add(&mut self, text: impl AsRef<str>) {
        let text = shorten(text.as_ref());
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
        let mut told: Vec<String> = lines
            .into_iter()
            .map(|Line { text, count }| match count {
                1 => text,
                count => format!("{text} ({count} times)"),
            })
            .collect();
        if left_out > 0 {
            told.push(format!("{left_out} more of such are not shown"));
        }
        told
    }
}

/// A text of a page on one line, without control characters, cut to a length that can be read.
pub(crate) fn shorten(text: &str) -> String {
    let mut line = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == LONGEST {
            line.push('…');
            break;
        }
        line.push(if c.is_control() { ' ' } else { c });
    }
    line
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
        let told = notices.take();
        assert_eq!(told[0], "an alert said `a b` (3 times)");
        assert_eq!(told.len(), MOST + 1);
        assert_eq!(told[MOST], "81 more of such are not shown");
        assert!(notices.take().is_empty());
    }
}
