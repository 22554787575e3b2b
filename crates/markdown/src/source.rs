//! The markdown source and its parser.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

/// How many times to search for link definitions. One pass finds all; another one is needed only if escaping them
/// turns other text into definitions.
const MAX_PASSES: usize = 8;

/// Parses the text. Every parse goes through here.
pub(super) fn parser(source: &str) -> Parser<'_> {
    #[cfg(test)]
    work::add(&work::PARSED_BYTES, source.len());
    Parser::new_ext(source, Options::ENABLE_TABLES)
}

/// Returns whether a character can be part of a blank line. Markdown treats other white space as text.
pub(super) fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

/// Returns the start of the line that contains this offset.
pub(super) fn line_start(source: &str, offset: usize) -> usize {
    source[..offset]
        .rfind(['\n', '\r'])
        .map_or(0, |line_end| line_end + 1)
}

/// Returns the end of the line that contains this offset, before its line break.
pub(super) fn line_end(source: &str, offset: usize) -> usize {
    source[offset..]
        .find(['\n', '\r'])
        .map_or(source.len(), |length| offset + length)
}

/// Returns whether the line before the one with this offset is blank, apart from the bars of quotes.
pub(super) fn follows_blank_line(source: &str, offset: usize) -> bool {
    let before = &source[..line_start(source, offset)];
    let Some(before) = before.strip_suffix(['\n', '\r']) else {
        return false;
    };
    let before = before.strip_suffix('\r').unwrap_or(before);
    before[line_start(before, before.len())..]
        .chars()
        .all(|letter| is_blank(letter) || letter == '>')
}

/// Escapes link definitions, so that they are shown as text. Otherwise they would be swallowed, along with whatever a
/// model hides in them, and a link would change its meaning if its definition is in another block.
pub(super) fn escape_definitions(text: &str) -> Cow<'_, str> {
    let mut source = Cow::Borrowed(text);
    if !text.contains("]:") {
        return source;
    }
    for _ in 0..MAX_PASSES {
        let starts = definitions(&source);
        if starts.is_empty() {
            return source;
        }
        source = Cow::Owned(escape(&source, &starts));
    }
    // Rather a backslash too many than hidden text.
    let starts: Vec<usize> = source
        .match_indices('[')
        .map(|(start, _)| start)
        .filter(|start| !source[..*start].ends_with('\\'))
        .collect();
    Cow::Owned(escape(&source, &starts))
}

/// Returns the offsets of the brackets that start a definition. Of those with the same label the parser reports only
/// one; the others are lines that it swallowed, which means that no event has them.
fn definitions(source: &str) -> Vec<usize> {
    let mut starts: Vec<usize> = parser(source)
        .reference_definitions()
        .iter()
        .map(|(_, definition)| definition.span.start)
        .collect();
    if starts.is_empty() {
        return starts;
    }
    let shown = shown_ranges(source);
    let is_shown = |offset: &usize| {
        let next = shown.partition_point(|range| range.start <= *offset);
        next > 0 && shown[next - 1].end > *offset
    };
    let bracket = |line: &str, start: usize| {
        let lead = line.trim_start_matches(|letter: char| {
            is_blank(letter) || letter.is_ascii_digit() || ">-+*.)".contains(letter)
        });
        lead.starts_with('[')
            .then(|| start + line.len() - lead.len())
    };
    let mut start = 0;
    for line in source.split_inclusive(['\n', '\r']) {
        starts.extend(bracket(line, start).filter(|offset| !is_shown(offset)));
        start += line.len();
    }
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Returns the parts of the source that are shown, in order.
fn shown_ranges(source: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (event, range) in parser(source).into_offset_iter() {
        let is_container = matches!(
            event,
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) | Event::End(_)
        );
        match ranges.last_mut() {
            _ if is_container => {}
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => ranges.push(range),
        }
    }
    ranges
}

/// Puts a backslash before each of these offsets, which are in order.
pub(super) fn escape(source: &str, starts: &[usize]) -> String {
    let mut escaped = String::with_capacity(source.len() + starts.len());
    let mut done = 0;
    for start in starts {
        escaped.push_str(&source[done..*start]);
        escaped.push('\\');
        done = *start;
    }
    escaped.push_str(&source[done..]);
    escaped
}

/// How much was parsed and rendered, for tests of the cost.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;
    use std::thread::LocalKey;

    thread_local! {
        pub(crate) static PARSED_BYTES: Cell<usize> = const { Cell::new(0) };
        pub(crate) static RENDERED_ROWS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn add(counter: &'static LocalKey<Cell<usize>>, amount: usize) {
        counter.set(counter.get() + amount);
    }
}
