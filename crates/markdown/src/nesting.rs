//! A limit on how deep quotes and lists are nested. The parser looks at every open container in every line, so without a
//! limit a text that consists only of `>` would take quadratic time.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Tag};

use super::source::{escape, is_blank, line_start, parser};

/// The maximum number of markers at the start of a line. A marker after them is text. The indentation before a marker
/// counts as well, because it can stand for the markers of earlier lines.
const MAX_LEVELS: usize = 32;

/// How many columns of indentation count as one marker.
const COLUMNS_PER_LEVEL: usize = 4;

/// Escapes the markers that would nest too deep, so that they are text. Looks only at the line with the offset `start`
/// and those after it, and leaves the first `opening` bytes as they are.
pub(super) fn escape_deep_markers(source: &str, start: usize, opening: usize) -> Cow<'_, str> {
    let mut offset = line_start(source, start);
    let mut deep = Vec::new();
    for line in source[offset..].split_inclusive(['\n', '\r']) {
        deep.extend(first_deep_marker(line, opening.saturating_sub(offset)).map(|at| offset + at));
        offset += line.len();
    }
    if deep.is_empty() {
        return Cow::Borrowed(source);
    }
    // In code a backslash would be shown.
    let escaped = escape(source, &deep);
    let verbatim = verbatim_ranges(&escaped);
    let kept = deep.len();
    let deep: Vec<usize> = deep
        .into_iter()
        .enumerate()
        .filter(|(index, at)| {
            // Each escaped marker before this one has moved it by a backslash.
            let at = at + index;
            let next = verbatim.partition_point(|range| range.start <= at);
            next == 0 || verbatim[next - 1].end <= at
        })
        .map(|(_, at)| at)
        .collect();
    Cow::Owned(if deep.len() == kept {
        escaped
    } else {
        escape(source, &deep)
    })
}

/// Returns the ranges of code and HTML blocks, in order.
fn verbatim_ranges(source: &str) -> Vec<Range<usize>> {
    let events = parser(source).into_offset_iter();
    let verbatim = events
        .filter(|(event, _)| matches!(event, Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock)));
    verbatim.map(|(_, range)| range).collect()
}

/// Returns where to put a backslash so that the first marker of the line that nests too deep is text. It is at
/// `opening` or after it.
fn first_deep_marker(line: &str, opening: usize) -> Option<usize> {
    let rule = rule_start(line);
    let mut levels = 0;
    // The spaces after a marker belong to it.
    let mut free_columns = 0;
    let mut at = 0;
    while at < rule {
        let rest = &line[at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let columns: usize = rest[..blank].bytes().map(columns_of).sum();
        levels += columns.saturating_sub(free_columns) / COLUMNS_PER_LEVEL;
        at += blank;
        let marker = Marker::at(&line[at..]).filter(|_| at < rule)?;
        levels += 1;
        if levels > MAX_LEVELS && at >= opening {
            return Some(at + marker.escaped);
        }
        at += marker.length;
        free_columns = COLUMNS_PER_LEVEL;
    }
    None
}

fn columns_of(blank: u8) -> usize {
    if blank == b'\t' { 4 } else { 1 }
}

/// The marker of a quote or of an item.
struct Marker {
    length: usize,
    /// Where a backslash turns it into text.
    escaped: usize,
}

impl Marker {
    /// Returns the marker at the start of a text.
    fn at(text: &str) -> Option<Self> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let is_item = match text.as_bytes().get(digits)? {
            b'>' if digits == 0 => {
                return Some(Self {
                    length: 1,
                    escaped: 0,
                });
            }
            b'-' | b'+' | b'*' => digits == 0,
            b'.' | b')' => digits > 0,
            _ => false,
        };
        let is_alone = || text[digits + 1..].starts_with(is_blank);
        (is_item && is_alone()).then_some(Self {
            length: digits + 1,
            escaped: digits,
        })
    }
}

/// Returns where a horizontal rule at the end of the line starts at the earliest, or the end of the line. Its
/// characters look like markers of items.
fn rule_start(line: &str) -> usize {
    let Some(sign) = line.trim_end_matches(is_blank).chars().next_back() else {
        return line.len();
    };
    let before = line.trim_end_matches(|letter| letter == sign || is_blank(letter));
    let is_rule = "-*".contains(sign) && line[before.len()..].matches(sign).count() >= 3;
    if is_rule { before.len() } else { line.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> Cow<'_, str> {
        escape_deep_markers(text, 0, 0)
    }

    /// Returns how deep the containers of a source are nested.
    fn depth(source: &str) -> usize {
        let (mut depth, mut deepest) = (0usize, 0);
        for (event, _) in parser(source).into_offset_iter() {
            match event {
                Event::Start(Tag::BlockQuote(_) | Tag::Item) => depth += 1,
                Event::End(
                    pulldown_cmark::TagEnd::BlockQuote(_) | pulldown_cmark::TagEnd::Item,
                ) => {
                    depth -= 1;
                }
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        deepest
    }

    #[test]
    fn no_text_nests_much_deeper_than_the_limit() {
        let stairs = |indent: usize, marker: &str| -> String {
            let line = |level: usize| format!("{}{marker}x\n", " ".repeat(level * indent));
            (0..300).map(line).collect()
        };
        for text in [
            ">".repeat(1000),
            "> ".repeat(1000),
            "* > ".repeat(1000),
            "1. ".repeat(1000),
            "+\t".repeat(1000),
            format!("{}x", "- ".repeat(1000)),
            format!(
                "{}x\n{}{}x",
                "- ".repeat(32),
                " ".repeat(64),
                "- ".repeat(500)
            ),
            stairs(2, "- "),
            stairs(3, "1. "),
            stairs(4, "* "),
            format!("> {}", stairs(2, "- ").replace('\n', "\n> ")),
        ] {
            let escaped = escaped(&text);
            let start: String = text.chars().take(20).collect();
            assert!(
                depth(&escaped) <= 3 * MAX_LEVELS,
                "{start}: {}",
                depth(&escaped)
            );
            assert!(
                depth(&escaped) >= MAX_LEVELS / 2,
                "{start}: {}",
                depth(&escaped)
            );
            // An escaped text stays as it is.
            assert_eq!(escape_deep_markers(&escaped, 0, 0), escaped, "{start}");
        }
    }

    #[test]
    fn text_that_is_not_nested_stays_as_it_is() {
        let arrows = ">".repeat(100);
        let rule = "- ".repeat(100);
        for text in [
            format!("```\n{arrows}\n```\n"),
            format!("    {arrows}\n"),
            format!("<pre>\n{arrows}\n</pre>\n"),
            format!("- ```\n  {arrows}\n"),
            rule.clone(),
            format!("> {rule}\ntext"),
            "-".repeat(100),
            "*".repeat(100),
            format!("text {arrows}"),
        ] {
            assert_eq!(escaped(&text), text);
        }
        let mixed = format!("```\n{arrows}\n```\n{arrows}\n");
        let (code, quote) = mixed.split_at(mixed.len() - 101);
        let quote = format!("{}\\{}", &quote[..32], &quote[32..]);
        assert_eq!(escaped(&mixed), format!("{code}{quote}"));
    }
}
