//! Writes the events of the markdown parser to a [`Page`].

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Tag, TagEnd};

use super::page::Page;
use super::styled_text::{TextAttribute, TextAttributes};
use super::table::Table;

/// The prefix of each line of a code block.
const CODE_INDENT: &str = "    ";

/// The width of a horizontal rule.
const RULE_WIDTH: usize = 40;

/// Returns the text that the events describe, without trailing line breaks.
pub(super) fn render_events<'a>(events: impl Iterator<Item = Event<'a>>) -> String {
    let mut renderer = Renderer::default();
    for event in events {
        renderer.event(event);
    }
    renderer.page.finish()
}

#[derive(Default)]
struct Renderer {
    page: Page,
    attributes: TextAttributes,
    /// The table that is being collected.
    table: Option<Table>,
    /// The code block that is being collected.
    code: Option<String>,
    /// The addresses to show after the open links.
    addresses: Vec<String>,
}

impl Renderer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.write(&text, self.attributes),
            },
            Event::Code(text) => self.write(&text, self.attributes.and(TextAttribute::Code)),
            Event::SoftBreak | Event::HardBreak => self.write("\n", self.attributes),
            Event::Rule => {
                self.page.begin_block();
                self.write(
                    &"─".repeat(RULE_WIDTH),
                    self.attributes.and(TextAttribute::Dim),
                );
            }
            Event::Html(text) | Event::InlineHtml(text) => self.write(&text, self.attributes),
            // These belong to extensions that are not enabled.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.write(&text, self.attributes);
            }
            Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.page.begin_paragraph(),
            Tag::Heading { .. } => {
                self.page.begin_block();
                self.attributes.add(TextAttribute::Bold);
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
                self.attributes.add(TextAttribute::Bold);
                self.in_table(Table::begin_row);
            }
            Tag::TableRow => self.in_table(Table::begin_row),
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
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.attributes.add(TextAttribute::Underlined);
                self.addresses.push(dest_url.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.page.end_block(),
            TagEnd::Heading(_) => {
                self.attributes.remove(TextAttribute::Bold);
                self.page.end_block();
            }
            TagEnd::TableHead | TagEnd::Strong => self.attributes.remove(TextAttribute::Bold),
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.page.end_container(),
            TagEnd::CodeBlock => self.draw_code(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    table.draw(&mut self.page);
                }
                self.page.end_block();
            }
            TagEnd::Emphasis => self.attributes.remove(TextAttribute::Italic),
            TagEnd::Link | TagEnd::Image => {
                self.attributes.remove(TextAttribute::Underlined);
                if let Some(address) = self.addresses.pop().filter(|address| !address.is_empty()) {
                    self.write(
                        &format!(" ({address})"),
                        self.attributes.and(TextAttribute::Dim),
                    );
                }
            }
            _ => {}
        }
    }

    /// Writes the code block line by line, unchanged but indented and dim.
    fn draw_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        for (index, line) in code.trim_end_matches('\n').split('\n').enumerate() {
            if index > 0 {
                self.page.break_line();
            }
            if !line.is_empty() {
                self.page.write_styled(CODE_INDENT);
                self.page
                    .write(line, self.attributes.and(TextAttribute::Dim));
            }
        }
        self.page.end_block();
    }

    fn write(&mut self, text: &str, attributes: TextAttributes) {
        match &mut self.table {
            Some(table) => table.write(text, attributes),
            None => self.page.write(text, attributes),
        }
    }

    fn in_table(&mut self, change: impl FnOnce(&mut Table)) {
        if let Some(table) = &mut self.table {
            change(table);
        }
    }
}
