//! Writes Markdown block by block. It collapses spaces, separates blocks (except list items) by an empty line, and
//! prefixes every line with the quote marks and indentation of its containers.

use super::markdown::Link;

/// Maximum depth of indentation; deeper lists and quotes are written at this depth.
const MAX_INDENTATION: usize = 8;

/// Maximum number of listed links.
const MAX_LINKS: usize = 3000;

#[derive(Default)]
pub(super) struct Writer {
    out: String,
    /// The inline text of the block that is being written.
    line: String,
    heading: usize,
    containers: Vec<Container>,
    link: Option<OpenLink>,
    links: Vec<Link>,
    /// Whether the last block was inside a container, such as a list item.
    was_item: bool,
}

enum Container {
    Quote {
        is_written: bool,
    },
    Item {
        marker: String,
        is_written: bool,
    },
    /// A container that is too deep to be indented.
    Flat,
}

struct OpenLink {
    url: String,
    /// Where the link's text starts in the line.
    start: usize,
    is_written: bool,
}

impl Writer {
    /// Adds text, collapsing spaces and line breaks to one space.
    pub(super) fn text(&mut self, text: &str) {
        for character in text.chars() {
            if !character.is_whitespace() {
                // Zero-width characters can hide text from a reader, and direction marks can reorder it.
                if !is_invisible(character) {
                    self.line.push(character);
                }
            } else if !self.line.ends_with([' ', '\n']) && !self.line.is_empty() {
                self.line.push(' ');
            }
        }
    }

    pub(super) fn line_break(&mut self) {
        let length = self.line.trim_end_matches(' ').len();
        self.line.truncate(length);
        if !self.line.is_empty() && self.heading == 0 {
            self.line.push('\n');
        } else if self.heading > 0 {
            self.text(" ");
        }
    }

    pub(super) fn code(&mut self, text: &str) {
        let fence = if text.contains('`') { "``" } else { "`" };
        self.line.push_str(fence);
        self.line.push_str(text);
        self.line.push_str(fence);
    }

    pub(super) fn start_heading(&mut self, level: usize) {
        self.end_block();
        self.heading = level;
    }

    pub(super) fn start_quote(&mut self) {
        self.start(Container::Quote { is_written: false });
    }

    pub(super) fn start_item(&mut self, marker: &str) {
        self.start(Container::Item {
            marker: marker.to_owned(),
            is_written: false,
        });
    }

    fn start(&mut self, container: Container) {
        self.end_block();
        let is_deep = self.containers.len() >= MAX_INDENTATION;
        self.containers
            .push(if is_deep { Container::Flat } else { container });
    }

    pub(super) fn end_container(&mut self) {
        self.end_block();
        self.containers.pop();
    }

    pub(super) fn start_link(&mut self, url: String) {
        self.end_link();
        self.link = Some(OpenLink {
            url,
            start: self.line.len(),
            is_written: false,
        });
    }

    pub(super) fn end_link(&mut self) {
        self.write_link();
        self.link = None;
    }

    /// Turns the text since the start of the open link into a link. A link around several blocks is written only in the
    /// first one.
    fn write_link(&mut self) {
        let Some(link) = self.link.as_mut().filter(|link| !link.is_written) else {
            return;
        };
        let inside = self.line.split_off(link.start.min(self.line.len()));
        let text = inside.trim();
        if text.is_empty() {
            self.line.push_str(&inside);
            return;
        }
        link.is_written = true;
        let text = text.replace('\n', " ");
        if inside.starts_with(' ') && !self.line.is_empty() {
            self.line.push(' ');
        }
        self.line.push('[');
        self.line.push_str(&text.replace(['[', ']'], ""));
        self.line.push_str("](");
        self.line.push_str(&link.url.replace(')', "%29"));
        self.line.push(')');
        if inside.ends_with(' ') {
            self.line.push(' ');
        }
        let url = link.url.clone();
        self.add_links([Link { text, url }]);
    }

    /// Adds links to the list, except those that repeat one of the last 50.
    pub(super) fn add_links(&mut self, links: impl IntoIterator<Item = Link>) {
        for link in links {
            let is_new = !self
                .links
                .iter()
                .rev()
                .take(50)
                .any(|known| known.url == link.url);
            if is_new && self.links.len() < MAX_LINKS {
                self.links.push(link);
            }
        }
    }

    /// Ends the current block, if there is one.
    pub(super) fn end_block(&mut self) {
        self.write_link();
        let line = std::mem::take(&mut self.line);
        let text = line.trim();
        if let Some(link) = &mut self.link {
            link.start = 0;
        }
        let heading = std::mem::take(&mut self.heading);
        if text.is_empty() {
            return;
        }
        if heading > 0 {
            self.block(&format!("{} {text}", "#".repeat(heading)));
        } else {
            self.block(text);
        }
    }

    pub(super) fn code_block(&mut self, language: &str, text: &str) {
        self.end_block();
        let text = text.trim_matches('\n').trim_end();
        if !text.is_empty() {
            let fence = if text.contains("```") { "````" } else { "```" };
            let language: String = language.chars().take(20).collect();
            self.block(&format!("{fence}{language}\n{text}\n{fence}"));
        }
    }

    /// Writes a complete block, with the quote marks and indentation of its containers on every line.
    pub(super) fn block(&mut self, text: &str) {
        let starts_item = self.containers.iter().any(
            |container| matches!(container, Container::Item { is_written, .. } if !is_written),
        );
        if !self.out.is_empty() {
            self.out.push('\n');
            let is_tight = self.was_item && starts_item;
            if !is_tight {
                let quotes = self.containers.iter();
                let quotes = quotes.take_while(|container| {
                    matches!(container, Container::Quote { is_written: true })
                });
                let blank = "> ".repeat(quotes.count());
                self.out.push_str(blank.trim_end());
                self.out.push('\n');
            }
        }
        self.was_item = !self.containers.is_empty();
        for (number, line) in text.lines().enumerate() {
            if number > 0 {
                self.out.push('\n');
            }
            for container in &mut self.containers {
                match container {
                    Container::Quote { is_written } => {
                        *is_written = true;
                        self.out.push_str("> ");
                    }
                    Container::Item { marker, is_written } if !*is_written => {
                        *is_written = true;
                        self.out.push_str(marker);
                    }
                    Container::Item { marker, .. } => {
                        self.out.extend(std::iter::repeat_n(' ', marker.len()));
                    }
                    Container::Flat => {}
                }
            }
            self.out.push_str(line.trim_end());
        }
    }

    pub(super) fn finish(mut self) -> (String, Vec<Link>) {
        self.end_link();
        self.end_block();
        (self.out, self.links)
    }
}

fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}' | '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}')
}
