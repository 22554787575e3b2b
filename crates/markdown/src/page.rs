//! The rows of a rendered text: where blocks start, and the prefix of each row inside quotes and lists.
//!
//! The gap before a block is written together with the block's first row, so that an empty block leaves no trace.

mod row;

use std::cmp::Reverse;

use super::code_block::CodeLine;
use super::container::{Container, blank_prefix, prefix_width, take_prefix};
use super::render::{MIN_WIDTH, Style};
use super::wrap::{self, Position, Span};
use row::Line;
pub(super) use row::{CodeRow, Row};

/// The indentation of code.
const CODE_INDENT: &str = "    ";

/// The rows written so far.
pub(super) struct Page {
    width: usize,
    style: Style,
    rows: Vec<Row>,
    containers: Vec<Container>,
    /// The line that is being collected.
    line: Option<Line>,
    /// White space at the start of a line that has no text yet.
    indentation: Vec<Span>,
    /// The gap before the current block, until its first row is written.
    gap: Option<Gap>,
    /// Blank lines inside the block that are written if something follows.
    blank_lines: usize,
    /// Whether there is text before the page or on it, so that the next block needs a gap.
    has_text: bool,
    /// Whether the last block has ended and no other has started.
    is_between_blocks: bool,
}

/// What separates a block from the one before it.
enum Gap {
    /// Only the end of the row.
    LineEnd,
    /// A blank row with this prefix.
    BlankRow(String),
}

impl Page {
    /// Returns an empty page. `follows_text` is whether its first block needs a gap.
    pub(crate) fn new(width: usize, style: Style, follows_text: bool) -> Self {
        Self {
            width: width.max(MIN_WIDTH),
            style,
            rows: Vec::new(),
            containers: Vec::new(),
            line: None,
            indentation: Vec::new(),
            gap: None,
            blank_lines: 0,
            has_text: follows_text,
            is_between_blocks: false,
        }
    }

    /// Starts a block, separated from the previous one. The first block in a container shares the container's gap.
    /// In a list, `follows_blank_line` decides whether there is a blank row.
    pub(crate) fn begin_block(&mut self, follows_blank_line: bool) {
        self.end_line();
        self.indentation.clear();
        self.blank_lines = 0;
        if self.gap.is_some() && !self.is_between_blocks {
            return;
        }
        let has_blank_row = self.has_text && (follows_blank_line || !self.is_in_list());
        let gap = if has_blank_row {
            self.loosen_item();
            Gap::BlankRow(blank_prefix(&self.containers, self.width, self.style))
        } else {
            Gap::LineEnd
        };
        // An empty block may have left a gap: the larger one wins, or else the one of the outer container.
        let rank = |gap: &Gap| match gap {
            Gap::LineEnd => None,
            Gap::BlankRow(prefix) => Some(Reverse(prefix.len())),
        };
        self.gap = self.gap.take().into_iter().chain([gap]).max_by_key(rank);
        self.is_between_blocks = false;
    }

    /// Returns whether text now would be a block of its own.
    pub(crate) fn is_between_blocks(&self) -> bool {
        self.is_between_blocks
    }

    pub(crate) fn begin_quote(&mut self, follows_blank_line: bool) {
        self.begin_block(follows_blank_line);
        self.containers.push(Container::Quote);
    }

    pub(crate) fn begin_list(&mut self, first_number: Option<u64>, follows_blank_line: bool) {
        self.begin_block(follows_blank_line);
        self.containers.push(Container::List {
            next_number: first_number,
            is_loose: false,
        });
    }

    /// Starts the item at this offset of the source.
    pub(crate) fn begin_item(&mut self, offset: usize, follows_blank_line: bool) {
        let (number, is_loose) = match self.containers.last_mut() {
            Some(Container::List {
                next_number,
                is_loose,
            }) => {
                let number = *next_number;
                *next_number = number.map(|number| number.saturating_add(1));
                (number, std::mem::take(is_loose))
            }
            _ => (None, false),
        };
        self.begin_block(follows_blank_line || is_loose);
        let marker = number.map_or("• ".into(), |number| format!("{number}. "));
        self.containers.push(Container::Item {
            indent: marker.chars().count(),
            marker: Some((marker, offset)),
            is_loose: false,
        });
    }

    /// Starts an item whose marker is on an earlier page.
    pub(crate) fn continue_item(&mut self, offset: usize) {
        self.begin_item(offset, false);
        if let Some(Container::Item { marker, .. }) = self.containers.last_mut() {
            *marker = None;
        }
    }

    pub(crate) fn end_block(&mut self) {
        self.end_line();
        self.is_between_blocks = true;
    }

    /// Leaves the innermost quote, list or item. An empty item still shows its marker.
    pub(crate) fn end_container(&mut self) {
        if let Some(Container::Item {
            marker: Some((_, offset)),
            ..
        }) = self.containers.last()
        {
            self.begin_line(*offset);
        }
        self.end_block();
        let ended = self.containers.pop();
        if let (
            Some(Container::Item { is_loose: true, .. }),
            Some(Container::List { is_loose, .. }),
        ) = (ended, self.containers.last_mut())
        {
            *is_loose = true;
        }
    }

    /// Adds text to the current line.
    pub(crate) fn write(&mut self, span: Span) {
        if self.line.is_none() && span.is_blank() {
            self.indentation.push(span);
            return;
        }
        let indentation = std::mem::take(&mut self.indentation);
        self.begin_line(indentation.first().unwrap_or(&span).offset());
        if let Some(line) = &mut self.line {
            line.spans.extend(indentation);
            line.spans.push(span);
        }
    }

    /// Ends the current line. If it is empty, a blank row takes its place.
    pub(crate) fn break_line(&mut self) {
        self.indentation.clear();
        if self.line.is_some() {
            self.end_line();
        } else {
            self.blank_lines += 1;
        }
    }

    /// Writes a line of code, which is wrapped at the last column.
    pub(crate) fn write_code(&mut self, spans: &[Span], code_line: CodeLine) {
        let Some(offset) = spans.first().map(Span::offset) else {
            return self.break_line();
        };
        self.begin_line(offset);
        let Some(line) = self.line.take() else {
            return;
        };
        let room = self.width - line.prefix.width - CODE_INDENT.len();
        for (index, row) in wrap::columns(spans, room).into_iter().enumerate() {
            let position = row.position.unwrap_or(line.near());
            let text = CODE_INDENT.to_owned() + &row.paint(self.style);
            let mut row = line.row(index, text, position);
            row.code = Some(CodeRow {
                is_line_start: index == 0,
                line: code_line,
            });
            self.rows.push(row);
        }
    }

    /// Returns the columns that are left for a row in the current containers.
    pub(crate) fn room(&self) -> usize {
        self.width - prefix_width(&self.containers, self.width)
    }

    /// Writes rows that already contain their escape sequences and are not wider than [`Self::room`].
    pub(crate) fn write_rows(&mut self, rows: impl IntoIterator<Item = (String, Position)>) {
        for (text, position) in rows {
            self.begin_line(position.offset);
            if let Some(line) = self.line.take() {
                self.rows.push(line.row(0, text, position));
            }
        }
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }

    pub(crate) fn finish(mut self) -> Vec<Row> {
        self.end_line();
        self.rows
    }

    /// Opens a line with text from this offset of the source.
    fn begin_line(&mut self, offset: usize) {
        if self.line.is_some() {
            return;
        }
        if let Some(Gap::BlankRow(prefix)) = self.gap.take() {
            self.rows.push(Row {
                text: prefix,
                position: None,
                code: None,
            });
        }
        for _ in 0..std::mem::take(&mut self.blank_lines) {
            let prefix = take_prefix(&mut self.containers, self.width, self.style);
            let position = Position {
                offset: prefix.item_offset.unwrap_or(offset),
                is_exact: false,
            };
            self.rows.push(Row {
                text: prefix.first.trim_end().into(),
                position: Some(position),
                code: None,
            });
        }
        let prefix = take_prefix(&mut self.containers, self.width, self.style);
        self.line = Some(Line {
            prefix,
            offset,
            spans: Vec::new(),
        });
        self.has_text = true;
    }

    /// Wraps and writes the line that is being collected.
    fn end_line(&mut self) {
        let Some(line) = self.line.take() else {
            return;
        };
        let rows = wrap::words(&line.spans, self.width - line.prefix.width);
        for (index, row) in rows.iter().enumerate() {
            let position = row.position.unwrap_or(line.near());
            self.rows
                .push(line.row(index, row.paint(self.style), position));
        }
    }

    fn loosen_item(&mut self) {
        if let Some(Container::Item { is_loose, .. }) = self.containers.last_mut() {
            *is_loose = true;
        }
    }

    fn is_in_list(&self) -> bool {
        let container = self
            .containers
            .iter()
            .rev()
            .find(|container| !matches!(container, Container::Item { .. }));
        matches!(container, Some(Container::List { .. }))
    }
}
