//! Markers that are half written: what to show of a text that ends in the middle of a word.
//!
//! A `**` without its counterpart is text, until the counterpart arrives. So that rows do not change back and forth,
//! the open block is shown as if its open markers were closed at its end, and markers at its end are not shown yet.

use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use std::borrow::Cow;
use std::ops::Range;

use crate::source::{line_start, parser};

/// The maximum distance of an open marker from the end in bytes. An older one probably means itself.
const MAX_DISTANCE: usize = 400;

/// The characters of which markers of blocks consist, apart from numbers.
const BLOCK_MARKERS: &str = " \t*-_=+>#`~|:";

/// Returns whether no more text can change which block the last, incomplete line belongs to.
pub(super) fn is_decided(source: &str) -> bool {
    let line = &source[source.rfind('\n').map_or(0, |end| end + 1)..];
    // A fence may turn out to be code between words, and a tag to be text.
    let text = line.trim_start_matches([' ', '\t']);
    let is_open = text.starts_with("```") || text.starts_with('<');
    let decides = |letter: char| {
        !BLOCK_MARKERS.contains(letter) && !letter.is_ascii_digit() && !".)<[".contains(letter)
    };
    !is_open && !line.contains('\r') && line.contains(decides)
}

/// Returns the source without markers at its end, and with its open markers closed.
pub(super) fn complete_markers(source: &str) -> Cow<'_, str> {
    let line = last_line(source);
    let before_line = &source[..source.len() - line.len()];
    let mut ending = Ending::find(source);
    let shown = match ending.leaf {
        Leaf::Verbatim => return Cow::Borrowed(source),
        Leaf::Fenced(fence) => {
            let is_fence = !line.trim().is_empty() && line.trim().chars().all(|it| it == fence);
            return Cow::Borrowed(if is_fence { before_line } else { source });
        }
        Leaf::Text if is_only_marker(line) => before_line,
        Leaf::Text => without_last_marker(source),
    };
    if shown.len() < source.len() {
        ending = Ending::find(shown);
    }
    let closing = closing_markers(shown, &ending.open_markers);
    if closing.is_empty() {
        return Cow::Borrowed(shown);
    }
    let text = shown.trim_end();
    let completed = format!("{text}{closing}");
    let is_text = |(event, range): (Event<'_>, Range<usize>)| {
        matches!(event, Event::Text(_)) && range.end > text.len()
    };
    if parser(&completed).into_offset_iter().any(is_text) {
        Cow::Borrowed(shown)
    } else {
        Cow::Owned(completed)
    }
}

/// The innermost block at the end of a source.
enum Leaf {
    /// Code or HTML, in which nothing is marked.
    Verbatim,
    /// Code after a fence of this character.
    Fenced(char),
    Text,
}

/// A marker that the parser takes for text.
struct Marker {
    letter: char,
    range: Range<usize>,
}

/// What is at the end of a source.
struct Ending {
    leaf: Leaf,
    /// The markers near the end of the last block that are not closed, in order.
    open_markers: Vec<Marker>,
}

impl Ending {
    fn find(source: &str) -> Self {
        let mut ending = Self {
            leaf: Leaf::Text,
            open_markers: Vec::new(),
        };
        for (event, range) in parser(source).into_offset_iter() {
            match &event {
                Event::Start(tag) => ending.start(tag, &source[range.start..]),
                Event::End(TagEnd::CodeBlock | TagEnd::HtmlBlock) if range.end < source.len() => {
                    ending.leaf = Leaf::Text;
                }
                Event::Text(text) if source.len() - range.start <= MAX_DISTANCE => {
                    ending.add_text(text, range);
                }
                _ => {}
            }
        }
        ending
    }

    fn start(&mut self, tag: &Tag<'_>, source: &str) {
        self.leaf = match tag {
            Tag::Strong | Tag::Emphasis | Tag::Link { .. } | Tag::Image { .. } => return,
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
                Leaf::Fenced(source.chars().next().unwrap_or('`'))
            }
            Tag::CodeBlock(CodeBlockKind::Indented) | Tag::HtmlBlock => Leaf::Verbatim,
            _ => Leaf::Text,
        };
        self.open_markers.clear();
    }

    fn add_text(&mut self, text: &str, range: Range<usize>) {
        match (marker_letter(text), self.open_markers.last_mut()) {
            (Some(letter), Some(last))
                if last.letter == letter && last.range.end == range.start =>
            {
                last.range.end = range.end;
            }
            (Some(letter), _) => self.open_markers.push(Marker { letter, range }),
            (None, _) => {}
        }
    }
}

fn last_line(source: &str) -> &str {
    &source[line_start(source, source.len())..]
}

/// Returns whether the line is the start of a marker and nothing else.
fn is_only_marker(line: &str) -> bool {
    let number = line.trim().trim_end_matches(['.', ')']);
    let is_number = !number.is_empty() && number.len() < 10;
    line.chars().all(|it| BLOCK_MARKERS.contains(it))
        || (is_number && number.bytes().all(|it| it.is_ascii_digit()))
}

/// Returns the source without a marker at its end, of which more may arrive.
fn without_last_marker(source: &str) -> &str {
    let shown = source.trim_end_matches(['*', '_', '`']);
    let shown = shown.strip_suffix('[').unwrap_or(shown);
    if shown.ends_with('\\') { source } else { shown }
}

/// Returns what closes the open markers of a source.
fn closing_markers(source: &str, open_markers: &[Marker]) -> String {
    let mut closing = Vec::new();
    for marker in open_markers {
        closing.extend(closing_marker(source, marker));
        if marker.letter == '`' {
            // What follows is code.
            break;
        }
    }
    closing.reverse();
    closing.concat()
}

fn marker_letter(text: &str) -> Option<char> {
    match text {
        "*" | "_" | "`" | "[" | "![" => text.chars().next_back(),
        _ if !text.is_empty() && text.bytes().all(|it| it == b'`') => Some('`'),
        _ => None,
    }
}

/// Returns what closes this marker, if it can be the start of something.
fn closing_marker(source: &str, marker: &Marker) -> Option<String> {
    let text = &source[marker.range.clone()];
    let before = source[..marker.range.start].chars().next_back();
    let after = &source[marker.range.end..];
    let is_in_word = before.is_some_and(char::is_alphanumeric);
    if before == Some('\\') || !after.starts_with(|it: char| !it.is_whitespace()) {
        return None;
    }
    match marker.letter {
        '[' => closing_bracket(after),
        '*' | '_' if is_in_word => None,
        _ => Some(text.into()),
    }
}

/// Returns what completes a link after its opening bracket.
fn closing_bracket(after: &str) -> Option<String> {
    match after.split_once(']') {
        None => Some("]()".into()),
        Some((_, "")) => Some("()".into()),
        Some((_, address)) => {
            let address = address.strip_prefix('(')?;
            let is_open = !address.contains(|it: char| it.is_whitespace() || it == ')');
            is_open.then(|| ")".into())
        }
    }
}
