//! Writes the events of the markdown parser to a [`Page`].

use std::collections::VecDeque;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Tag, TagEnd};

use super::code_block::CodeBlock;
use super::highlight::{LineState, is_language};
use super::page::{Page, Row};
use super::render::Style;
#[cfg(test)]
use super::source::work;
use super::source::{follows_blank_line, is_blank, parser};
use super::styled_text::{TextAttribute, TextAttributes};
use super::table::{Table, TableLayout};
use super::wrap::Span;

/// The maximum width of a horizontal rule.
const RULE_WIDTH: usize = 40;

/// How a source goes on with a text whose beginning is already rendered. The default is a text of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Continuation {
    /// The length of what was put in front of the source to open the same containers and blocks again. It is not shown.
    pub opening: usize,
    /// Whether the first block needs a gap.
    pub follows_text: bool,
    /// The numbers of the first items of the numbered lists that go on, from the outermost to the innermost.
    pub numbers: Vec<u64>,
    /// What is open in the code block that goes on.
    pub code: LineState,
    /// The layout of the table that goes on.
    pub table: Option<TableLayout>,
}

/// A rendered source.
pub(super) struct Rendered {
    pub rows: Vec<Row>,
    /// The layout of the last table.
    pub table: Option<TableLayout>,
}

/// Renders the source in rows of at most `width` columns.
pub(super) fn render_rows(
    source: &str,
    continuation: &Continuation,
    width: usize,
    style: Style,
) -> Rendered {
    let mut renderer = Renderer {
        source,
        continuation,
        numbers: continuation.numbers.iter().copied().collect(),
        page: Page::new(width, style, continuation.follows_text),
        attributes: TextAttributes::default(),
        table: None,
        cell_end: 0,
        layout: None,
        code: None,
        addresses: Vec::new(),
    };
    for (event, range) in parser(source).into_offset_iter() {
        renderer.event(event, range);
    }
    let rows = renderer.page.finish();
    #[cfg(test)]
    work::add(&work::RENDERED_ROWS, rows.len());
    Rendered {
        rows,
        table: renderer.layout,
    }
}

struct Renderer<'a> {
    source: &'a str,
    continuation: &'a Continuation,
    /// The numbers of continued lists that have not started yet.
    numbers: VecDeque<u64>,
    page: Page,
    attributes: TextAttributes,
    /// The table that is being collected.
    table: Option<Table>,
    /// The end of the last cell in the source.
    cell_end: usize,
    /// The layout of the last table.
    layout: Option<TableLayout>,
    code: Option<CodeBlock>,
    /// The addresses to show after the open links.
    addresses: Vec<String>,
}

impl Renderer<'_> {
    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.write(&text, range, self.source, &mut self.page),
                None => self.write(&text, self.attributes, range),
            },
            Event::Code(text) => self.write_code_span(&text, range),
            Event::SoftBreak | Event::HardBreak => self.write("\n", self.attributes, range),
            Event::Rule => {
                self.begin_block(&range);
                let rule = "─".repeat(RULE_WIDTH.min(self.page.room()));
                let dim = self.attributes.and(TextAttribute::Dim);
                self.write(&rule, dim, range);
                self.page.end_block();
            }
            Event::Html(_) if self.is_opening(&range) => {}
            Event::Html(text) | Event::InlineHtml(text) => {
                self.write(&text, self.attributes, range);
            }
            // These belong to extensions that are not enabled.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.write(&text, self.attributes, range);
            }
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        // Not for a tag inside a line, because it looks for the start of the line.
        let follows_blank_line = || follows_blank_line(self.source, range.start);
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(&range),
            Tag::Heading { .. } => {
                self.begin_block(&range);
                self.attributes.add(TextAttribute::Bold);
            }
            Tag::BlockQuote(_) => self.page.begin_quote(follows_blank_line()),
            Tag::CodeBlock(kind) => {
                self.begin_block(&range);
                let info = match &kind {
                    CodeBlockKind::Fenced(info) => info,
                    CodeBlockKind::Indented => "",
                };
                let state = Some(self.continuation.code).filter(|_| self.is_opening(&range));
                if !self.is_opening(&range) && !is_language(info) {
                    self.write_aside(info, range.start);
                    self.page.break_line();
                }
                self.code = Some(CodeBlock::new(info, state.unwrap_or_default()));
            }
            Tag::List(first_number) => {
                let first_number = first_number.map(|it| self.numbers.pop_front().unwrap_or(it));
                self.page.begin_list(first_number, follows_blank_line());
            }
            Tag::Item if self.is_opening(&range) => self.page.continue_item(range.start),
            Tag::Item => self.page.begin_item(range.start, follows_blank_line()),
            Tag::Table(alignments) => {
                self.begin_block(&range);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => {
                self.attributes.add(TextAttribute::Bold);
                self.in_table(|table| table.begin_row(range.start));
            }
            Tag::TableRow => self.in_table(|table| table.begin_row(range.start)),
            Tag::TableCell => self.in_table(Table::begin_cell),
            Tag::Emphasis => self.attributes.add(TextAttribute::Italic),
            Tag::Strong => self.attributes.add(TextAttribute::Bold),
            Tag::Link {
                link_type: LinkType::Autolink | LinkType::Email,
                ..
            } => {
                self.attributes.add(TextAttribute::Underlined);
                self.addresses.push(String::new());
            }
            Tag::Link {
                dest_url, title, ..
            }
            | Tag::Image {
                dest_url, title, ..
            } => {
                self.attributes.add(TextAttribute::Underlined);
                self.addresses.push(match &*title {
                    "" => dest_url.into_string(),
                    title => format!("{dest_url} \"{title}\""),
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.page.end_block(),
            TagEnd::Heading(_) => {
                self.attributes.remove(TextAttribute::Bold);
                self.page.end_block();
            }
            TagEnd::TableHead | TagEnd::Strong => self.attributes.remove(TextAttribute::Bold),
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.page.end_container(),
            TagEnd::CodeBlock => {
                if let Some(code) = self.code.take() {
                    code.finish(self.source, &mut self.page);
                }
            }
            TagEnd::TableCell => self.cell_end = range.end,
            TagEnd::TableRow => self.write_surplus_cells(&range),
            TagEnd::Table => self.draw_table(&range),
            TagEnd::Emphasis => self.attributes.remove(TextAttribute::Italic),
            TagEnd::Link | TagEnd::Image => {
                self.attributes.remove(TextAttribute::Underlined);
                if let Some(address) = self.addresses.pop().filter(|address| !address.is_empty()) {
                    self.write_aside(&format!(" ({address})"), range.start);
                }
            }
            _ => {}
        }
    }

    /// Writes the cells for which the table has no column, which the parser drops, behind the last one.
    fn write_surplus_cells(&mut self, row: &Range<usize>) {
        let rest = self.source.get(self.cell_end..row.end).unwrap_or("");
        let rest = rest.trim_matches(|letter| letter == '|' || is_blank(letter));
        if !rest.is_empty() {
            self.write_aside(&format!(" | {rest}"), self.cell_end);
        }
    }

    fn draw_table(&mut self, range: &Range<usize>) {
        let Some(table) = self.table.take() else {
            return;
        };
        let room = self.page.room();
        let layout = match &self.continuation.table {
            Some(layout) if self.is_opening(range) => layout.clone(),
            _ => table.layout(room),
        };
        let skipped = usize::from(self.is_opening(range));
        let rows = table.draw(&layout, room, skipped, self.page.style());
        self.page.write_rows(rows);
        self.page.end_block();
        self.layout = Some(layout);
    }

    /// Writes text that a browser would not show, on one line.
    fn write_aside(&mut self, text: &str, offset: usize) {
        let dim = self.attributes.and(TextAttribute::Dim);
        let text = text.replace(['\n', '\r'], " ");
        self.push(Span::near(&text, dim, offset));
    }

    /// Writes code between words.
    fn write_code_span(&mut self, text: &str, range: Range<usize>) {
        let attributes = self.attributes.and(TextAttribute::Code);
        // What is between the backticks may differ from the text by a space at either end.
        let start = self.source[range.clone()].find(text).unwrap_or(0);
        let start = range.start + start;
        self.write(text, attributes, start..start + text.len());
    }

    /// Writes text, which may contain line breaks.
    fn write(&mut self, text: &str, attributes: TextAttributes, range: Range<usize>) {
        if self.page.is_between_blocks() && self.table.is_none() {
            self.begin_block(&range);
        }
        let is_copy = self.source.get(range.clone()) == Some(text);
        let mut start = range.start;
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
                start += 1;
            }
            let span = if is_copy {
                Span::from_source(line, attributes, self.source, start..start + line.len())
            } else {
                Span::from_source(line, attributes, self.source, range.clone())
            };
            self.push(span);
            start += line.len();
        }
    }

    fn push(&mut self, span: Span) {
        match &mut self.table {
            Some(table) => table.write(span),
            None => self.page.write(span),
        }
    }

    fn break_line(&mut self) {
        match &mut self.table {
            // A cell has one line.
            Some(table) => table.write(Span::new(" ", self.attributes)),
            None => self.page.break_line(),
        }
    }

    fn begin_block(&mut self, range: &Range<usize>) {
        let follows_blank_line = follows_blank_line(self.source, range.start);
        self.page.begin_block(follows_blank_line);
    }

    fn in_table(&mut self, change: impl FnOnce(&mut Table)) {
        if let Some(table) = &mut self.table {
            change(table);
        }
    }

    /// Returns whether this part of the source only opens again what was already open.
    fn is_opening(&self, range: &Range<usize>) -> bool {
        range.start < self.continuation.opening
    }
}
