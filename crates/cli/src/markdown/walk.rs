//! Goes through the events of the markdown parser and writes them on a [`Page`].

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Tag, TagEnd};

use super::ink::{Ink, Look};
use super::page::Page;
use super::table::Table;

/// What stands before each line of a code block.
const CODE_INDENT: &str = "    ";

/// How long a rule is drawn.
const RULE_WIDTH: usize = 40;

/// The text that the events describe, without line breaks at its end.
pub(super) fn page<'a>(events: impl Iterator<Item = Event<'a>>) -> String {
    let mut walk = Walk::default();
    for event in events {
        walk.event(event);
    }
    walk.page.finish()
}

#[derive(Default)]
struct Walk {
    page: Page,
    ink: Ink,
    /// The table that is being collected.
    table: Option<Table>,
    /// The code block that is being collected.
    code: Option<String>,
    /// The address to show after each open link.
    addresses: Vec<String>,
}

impl Walk {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.write(&text, self.ink),
            },
            Event::Code(text) => self.write(&text, self.ink.and(Look::Code)),
            Event::SoftBreak | Event::HardBreak => self.write("\n", self.ink),
            Event::Rule => {
                self.page.begin_block();
                self.write(&"─".repeat(RULE_WIDTH), self.ink.and(Look::Dim));
            }
            Event::Html(text) | Event::InlineHtml(text) => self.write(&text, self.ink),
            // These belong to extensions that are not turned on.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.write(&text, self.ink);
            }
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.page.begin_paragraph(),
            Tag::Heading { .. } => {
                self.page.begin_block();
                self.ink.add(Look::Bold);
            }
            Tag::BlockQuote(_) => self.page.begin_quote(),
            Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) => {
                self.page.begin_block();
                self.code = Some(String::new());
            }
            Tag::HtmlBlock => self.page.begin_block(),
            Tag::List(first_number) => self.page.begin_list(first_number),
            Tag::Item => self.page.begin_item(),
            Tag::Table(alignments) => {
                self.page.begin_block();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => {
                self.ink.add(Look::Bold);
                self.in_table(Table::begin_row);
            }
            Tag::TableRow => self.in_table(Table::begin_row),
            Tag::TableCell => self.in_table(Table::begin_cell),
            Tag::Emphasis => self.ink.add(Look::Italic),
            Tag::Strong => self.ink.add(Look::Bold),
            Tag::Link {
                link_type: LinkType::Autolink | LinkType::Email,
                ..
            } => {
                self.ink.add(Look::Underlined);
                self.addresses.push(String::new());
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.ink.add(Look::Underlined);
                self.addresses.push(dest_url.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.page.end_block(),
            TagEnd::Heading(_) => {
                self.ink.remove(Look::Bold);
                self.page.end_block();
            }
            TagEnd::TableHead | TagEnd::Strong => self.ink.remove(Look::Bold),
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.page.end_container(),
            TagEnd::CodeBlock => self.draw_code(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    table.draw(&mut self.page);
                }
                self.page.end_block();
            }
            TagEnd::Emphasis => self.ink.remove(Look::Italic),
            TagEnd::Link | TagEnd::Image => {
                self.ink.remove(Look::Underlined);
                if let Some(address) = self.addresses.pop().filter(|address| !address.is_empty()) {
                    self.write(&format!(" ({address})"), self.ink.and(Look::Dim));
                }
            }
            _ => {}
        }
    }

    /// Code stands as it was written, line by line, indented and dim.
    fn draw_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        for (index, line) in code.trim_end_matches('\n').split('\n').enumerate() {
            if index > 0 {
                self.page.break_line();
            }
            if !line.is_empty() {
                self.page.write_painted(CODE_INDENT);
                self.page.write(line, self.ink.and(Look::Dim));
            }
        }
        self.page.end_block();
    }

    fn write(&mut self, text: &str, ink: Ink) {
        match &mut self.table {
            Some(table) => table.write(text, ink),
            None => self.page.write(text, ink),
        }
    }

    fn in_table(&mut self, change: impl FnOnce(&mut Table)) {
        if let Some(table) = &mut self.table {
            change(table);
        }
    }
}
