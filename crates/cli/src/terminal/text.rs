//! Fits text into columns. Widths are those of a terminal: wide characters count twice, attributes count nothing.

use lango_core::text::sanitize;
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns the beginning of a line that fits into this many columns, with `…` if something was cut. Escape sequences
/// of the palette have no width, and those of a cut line are closed.
pub fn fit(line: &str, columns: usize) -> Cow<'_, str> {
    if width(line) <= columns {
        return Cow::Borrowed(line);
    }
    let room = columns.saturating_sub(1);
    let (mut shown, mut used, mut has_attributes) = (String::new(), 0, false);
    for piece in pieces(line) {
        match piece {
            Piece::Escape(escape) => {
                has_attributes = true;
                shown.push_str(escape);
            }
            Piece::Glyph(glyph) => {
                let next = used + glyph.width();
                if next > room {
                    break;
                }
                used = next;
                shown.push_str(glyph);
            }
        }
    }
    shown.push('…');
    if has_attributes {
        shown.push_str("\u{1b}[0m");
    }
    Cow::Owned(shown)
}

/// Replaces everything that a terminal would obey, except line breaks and the attributes of a palette (`ESC [ 1 m`).
/// Text is sanitized where it enters; this is the last line of defence.
pub(super) fn only_attributes(text: &str) -> Cow<'_, str> {
    // Every frame is checked, so the usual case does not look for glyphs.
    let is_obeyed = |(at, letter): (usize, char)| match letter {
        '\n' | '\t' => false,
        '\u{1b}' => attribute_length(&text[at..]).is_none(),
        _ => letter.is_control(),
    };
    if !text.char_indices().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let shown = pieces(text).map(|piece| match piece {
        Piece::Escape(escape) => Cow::Borrowed(escape),
        Piece::Glyph(glyph) => sanitize(glyph),
    });
    Cow::Owned(shown.collect())
}

/// Returns the width of a line in columns, without its attributes.
pub fn width(line: &str) -> usize {
    if line.contains('\u{1b}') {
        let glyphs = pieces(line).map(|piece| match piece {
            Piece::Escape(_) => 0,
            Piece::Glyph(glyph) => glyph.width(),
        });
        return glyphs.sum();
    }
    line.width()
}

/// Wraps text at words. Line breaks stay; a word that is longer than a line is broken.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_prefixed(text, "", "", columns)
}

/// Wraps text at words, with a prefix for the first line and one for all others. A word that is longer than a line is broken.
pub fn wrap_prefixed(text: &str, first: &str, next: &str, columns: usize) -> Vec<String> {
    wrap_words(text, first, next, columns, LongWords::Broken)
}

/// Wraps text at words, with a prefix for all lines but the first. A path or an address that is longer than a line stays in
/// one piece: the terminal breaks it, and a copy of it has no line break. Other long words are broken, because some letters
/// look like spaces, and what follows them in the next row would look like a line of lango.
pub fn wrap_whole_words(text: &str, next: &str, columns: usize) -> Vec<String> {
    wrap_words(text, "", next, columns, LongWords::Whole)
}

/// What happens to a word that is longer than a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LongWords {
    Broken,
    Whole,
}

fn wrap_words(
    text: &str,
    first: &str,
    next: &str,
    columns: usize,
    long_words: LongWords,
) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = if lines.is_empty() { first } else { next }.to_owned();
        let mut used = width(&line);
        let mut is_empty = true;
        for word in words(paragraph) {
            if used + width(word.trim_end()) > columns && !is_empty {
                let full = std::mem::replace(&mut line, next.to_owned());
                lines.push(full.trim_end().to_owned());
                used = width(next);
                is_empty = true;
            }
            if long_words == LongWords::Whole && word.trim_end().is_ascii() {
                line.push_str(word);
                used += width(word);
                is_empty &= word.trim().is_empty();
                continue;
            }
            for piece in pieces(word) {
                let glyph = match piece {
                    Piece::Escape(escape) => {
                        line.push_str(escape);
                        continue;
                    }
                    Piece::Glyph(glyph) => glyph,
                };
                if used + glyph.width() > columns && !glyph.trim().is_empty() && !is_empty {
                    lines.push(std::mem::replace(&mut line, next.to_owned()));
                    used = width(next);
                }
                used += glyph.width();
                line.push_str(glyph);
                is_empty = false;
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Splits a line into words with the space behind them. A number and its unit are one word.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let spaces = rest.match_indices(char::is_whitespace);
        let mut ends = spaces.map(|(at, space)| (at, at + space.len()));
        let end = ends.find(|(at, after)| !is_measure(&rest[..*at], &rest[*after..]));
        let (word, after) = rest.split_at(end.map_or(rest.len(), |(_, after)| after));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// Whether a number is followed by its unit.
fn is_measure(word: &str, rest: &str) -> bool {
    const UNITS: [&str; 8] = ["ms", "s", "min", "h", "d", "B", "KiB", "MiB"];
    if !word.ends_with(|letter: char| letter.is_ascii_digit()) {
        return false;
    }
    let ends = |letter: char| letter.is_whitespace() || letter == '\u{1b}';
    let next = rest.split(ends).next().unwrap_or_default();
    UNITS.contains(&next.trim_end_matches([',', ';', '.', ')', ':']))
}

/// Wraps each line at words. Rows that continue a line are indented below its text, and branches of a tree go on.
pub fn wrap_lines(text: &str, columns: usize) -> String {
    let rows = text
        .split('\n')
        .flat_map(|line| wrap_prefixed(line, "", &(branches(line) + "  "), columns));
    rows.collect::<Vec<String>>().join("\n")
}

/// Returns what the row after a line starts with: its indentation, and the branches of a tree that go on.
pub fn branches(line: &str) -> String {
    let glyphs = pieces(line).filter_map(|piece| match piece {
        Piece::Escape(_) => None,
        Piece::Glyph(glyph) => Some(glyph),
    });
    let lead = glyphs.take_while(|glyph| matches!(*glyph, " " | "│" | "├" | "└" | "─"));
    lead.map(|glyph| match glyph {
        "│" | "├" => '│',
        _ => ' ',
    })
    .collect()
}

enum Piece<'a> {
    Escape(&'a str),
    Glyph(&'a str),
}

/// Splits a line into glyphs and the escape sequences that set attributes (`ESC [ … m`).
fn pieces(line: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(length) = attribute_length(rest) {
            let (escape, after) = rest.split_at(length);
            rest = after;
            return Some(Piece::Escape(escape));
        }
        let glyph = rest.graphemes(true).next()?;
        rest = &rest[glyph.len()..];
        Some(Piece::Glyph(glyph))
    })
}

/// Returns the length of the escape sequence that sets attributes (`ESC [ … m`) at the start of a text.
fn attribute_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
    let is_attribute = parameters[end..].starts_with('m');
    is_attribute.then_some(end + "\u{1b}[m".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_columns_and_its_attributes_are_closed() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("日本語です", 6), "日本…");
        assert_eq!(
            fit("\u{1b}[31mred text\u{1b}[0m", 5),
            "\u{1b}[31mred …\u{1b}[0m"
        );
    }

    #[test]
    fn only_attributes_of_a_palette_reach_the_terminal() {
        let safe = "\u{1b}[1;31mred\u{1b}[0m\ttext\n";
        assert_eq!(only_attributes(safe), safe);
        assert_eq!(
            only_attributes("a\u{1b}]52;c;eA==\u{7}\u{1b}[2Jm\u{1b}[1m"),
            "a␛]52;c;eA==␇␛[2Jm\u{1b}[1m"
        );
    }

    #[test]
    fn a_long_line_without_spaces_is_wrapped_in_linear_time() {
        let table = "12\tab\t".repeat(40_000);
        let started = std::time::Instant::now();
        assert_eq!(words(&table).count(), 80_000);
        // With quadratic time it takes minutes.
        assert!(started.elapsed().as_secs() < 10);
    }

    #[test]
    fn text_is_wrapped_at_words_and_long_words_are_broken() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 8), ["a", "", "b"]);
        assert_eq!(
            wrap("it ran for 5 ms, then", 13),
            ["it ran for", "5 ms, then"]
        );
        assert_eq!(
            wrap_whole_words("no abcdefghij", "  ", 4),
            ["no", "  abcdefghij"]
        );
        assert_eq!(
            wrap_lines("├─ one two\n│    three four\n└─ five six", 12),
            "├─ one two\n│    three\n│      four\n└─ five six"
        );
        assert_eq!(
            wrap_lines("\u{1b}[33m│\u{1b}[0m one two", 8),
            "\u{1b}[33m│\u{1b}[0m one\n│   two"
        );
        assert_eq!(
            wrap_prefixed("one two three", "> ", "  ", 8),
            ["> one", "  two", "  three"]
        );
    }
}
