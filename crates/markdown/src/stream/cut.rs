//! Cuts the source of an open block in two, and returns the markup that the second part needs to look the same.

use pulldown_cmark::{CodeBlockKind, Event, Tag};
use std::ops::Range;

use crate::renderer::Continuation;
use crate::source::{line_end, line_start, parser};

/// The distance of tab stops in markdown.
const TAB: usize = 4;

/// The maximum number of spaces between the marker of an item and its text. With more, the text is indented code.
const MAX_MARKER_SPACES: usize = 4;

/// A tag that is open at the cut.
struct OpenTag<'a> {
    tag: Tag<'a>,
    range: Range<usize>,
    /// Where its content starts: at the next event, or at the cut.
    content: usize,
    /// The number of the first item of a numbered list.
    first_number: Option<u64>,
    /// How many items of the list start before the cut.
    items: u64,
}

/// Returns what to write before the rest of the source from `offset` on, and how that goes on. `before` is how the
/// source itself goes on with an earlier text.
pub(super) fn continue_at(
    source: &str,
    offset: usize,
    before: &Continuation,
) -> (String, Continuation) {
    if offset == 0 {
        // Only a gap above the source is cut off.
        let continuation = Continuation {
            opening: before.opening,
            numbers: before.numbers.clone(),
            ..Continuation::default()
        };
        return (String::new(), continuation);
    }
    let at_cut = find_open_tags(source, offset, before);
    let mut opening = Opening::default();
    let mut numbers = Vec::new();
    let mut tags = at_cut.tags.iter().peekable();
    while let Some(open) = tags.next() {
        let has_open_item = tags.peek().is_some();
        let items = open.items.saturating_sub(u64::from(has_open_item));
        numbers.extend(open.first_number.map(|first| first.saturating_add(items)));
        opening.add(source, open);
    }
    opening.text.push_str(at_cut.backticks);
    let continuation = Continuation {
        opening: opening.text.len(),
        numbers,
        ..Continuation::default()
    };
    if at_cut.keeps_indentation {
        opening.indent(source, offset);
    }
    (opening.text, continuation)
}

/// Returns the source from `offset` on. Text that is not there yet is empty.
pub(super) fn rest_at(source: &str, offset: usize) -> &str {
    source.get(offset..).unwrap_or("")
}

struct AtCut<'a> {
    tags: Vec<OpenTag<'a>>,
    /// The backticks of the code between words that is cut.
    backticks: &'a str,
    /// Whether white space before the cut has a meaning: in code and before a block.
    keeps_indentation: bool,
}

fn find_open_tags<'a>(source: &'a str, offset: usize, before: &Continuation) -> AtCut<'a> {
    let mut at_cut = AtCut {
        tags: Vec::new(),
        backticks: "",
        keeps_indentation: false,
    };
    let mut numbers = before.numbers.iter().copied();
    for (event, range) in parser(source).into_offset_iter() {
        if range.start >= offset {
            at_cut.keeps_indentation |= is_block(&event);
            break;
        }
        let is_end = matches!(event, Event::End(_));
        if let Some(parent) = at_cut.tags.last_mut().filter(|_| !is_end) {
            parent.content = parent.content.min(range.start);
        }
        match event {
            Event::Start(tag) => {
                let first_number = match (&tag, at_cut.tags.last_mut()) {
                    (Tag::List(Some(first)), _) => Some(numbers.next().unwrap_or(*first)),
                    (Tag::Item, Some(list)) => {
                        list.items += 1;
                        None
                    }
                    _ => None,
                };
                at_cut.tags.push(OpenTag {
                    tag,
                    range,
                    content: offset,
                    first_number,
                    items: 0,
                });
            }
            Event::End(_) if range.end > offset => break,
            Event::End(_) => {
                at_cut.tags.pop();
            }
            Event::Code(_) if range.end > offset => {
                let code = &source[range];
                let length = code.len() - code.trim_start_matches('`').len();
                at_cut.backticks = &code[..length];
            }
            _ => {}
        }
    }
    let innermost = at_cut.tags.last().map(|open| &open.tag);
    at_cut.keeps_indentation |= matches!(innermost, Some(Tag::CodeBlock(_)));
    at_cut
}

/// Returns whether the event starts a block that is not a paragraph. An item includes its indentation.
fn is_block(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock | Tag::Heading { .. } | Tag::Table(_))
    )
}

/// The text that opens containers and blocks again.
#[derive(Default)]
struct Opening {
    text: String,
    /// The width of its last line.
    columns: usize,
    /// What a further line starts with.
    continued: String,
}

impl Opening {
    fn add(&mut self, source: &str, open: &OpenTag<'_>) {
        let range = &open.range;
        match &open.tag {
            Tag::BlockQuote(_) => self.push("> ", "> "),
            Tag::Item => {
                let marker = marker(&source[range.clone()]);
                self.push(&marker, &" ".repeat(columns(&marker)));
            }
            Tag::Heading { .. } => {
                let text = &source[range.clone()];
                let length = text.len() - text.trim_start_matches('#').len();
                if length > 0 {
                    self.push(&format!("{} ", &text[..length]), "");
                }
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
                // The code has at least the indentation of its fence.
                self.indent(source, range.start);
                self.push_line(&source[range.start..line_end(source, range.start)]);
            }
            Tag::Table(_) => {
                let heading_end = line_end(source, range.start);
                let rule = source[heading_end..].trim_start_matches(['\r', '\n']);
                let rule_start = source.len() - rule.len();
                self.push_line(&source[range.start..line_end(source, rule_start)]);
            }
            Tag::HtmlBlock => {
                let text = &source[range.clone()];
                let length = text.find(|it: char| it.is_whitespace() || it == '>');
                self.push_line(&text[..length.unwrap_or(text.len())]);
            }
            Tag::Strong | Tag::Emphasis | Tag::Link { .. } | Tag::Image { .. } => {
                self.text.push_str(&source[range.start..open.content]);
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str, continued: &str) {
        self.text.push_str(text);
        self.columns += columns(text);
        self.continued.push_str(continued);
    }

    /// Adds spaces up to the column of this offset, if only indentation is before it on its line.
    fn indent(&mut self, source: &str, offset: usize) {
        let lead = &source[line_start(source, offset)..offset];
        if lead.chars().all(|it| " \t>".contains(it)) {
            let missing = columns(lead).saturating_sub(self.columns);
            self.text.push_str(&" ".repeat(missing));
        }
    }

    fn push_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.text.push_str(&self.continued);
        self.columns = columns(&self.continued);
    }
}

/// Returns the marker at the start of an item, with its indentation and the spaces after it.
fn marker(item: &str) -> String {
    let marker = item.trim_start_matches([' ', '\t']);
    let indentation = columns(&item[..item.len() - marker.len()]);
    let end = marker
        .find(|it: char| it.is_whitespace())
        .unwrap_or(marker.len());
    let (marker, text) = marker.split_at(end);
    let spaces = text.len() - text.trim_start_matches([' ', '\t']).len();
    let has_text = !text[spaces..].starts_with(['\n', '\r']) && spaces < text.len();
    let spaces = match columns(&text[..spaces]) {
        spaces @ 1..=MAX_MARKER_SPACES if has_text => spaces,
        _ => 1,
    };
    format!("{}{marker}{}", " ".repeat(indentation), " ".repeat(spaces))
}

/// Returns the width of the start of a line as markdown counts it.
fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, letter| match letter {
        '\t' => column + TAB - column % TAB,
        _ => column + 1,
    })
}
