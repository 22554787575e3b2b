//! Renders a text that is still arriving.
//!
//! The markdown parser decides what is complete, not a second set of rules. Only the last block (and of a list only
//! its last item, of a code block only its last line) is kept as source. It is rendered again with each piece; all
//! before it is settled. A block with more rows than the live region is cut at a row: its oldest rows settle as they
//! look, and the rest goes on as a source that opens the same containers again.

mod cut;
mod live_text;
#[cfg(test)]
mod tests;

use pulldown_cmark::{CodeBlockKind, Event, Tag};
use std::borrow::Cow;

use super::nesting::escape_deep_markers;
use super::page::{CodeRow, Row};
use super::render::{MIN_WIDTH, Style, wrap_source_line};
use super::renderer::{Continuation, Rendered, render_rows};
use super::source::{escape_definitions, parser};
use cut::{continue_at, rest_at};
use live_text::{complete_markers, is_decided};

/// The maximum length of the source of the open block in bytes, in a live region of any size. If a longer one cannot be
/// cut at a row, it ends.
const MAX_OPEN: usize = 64 * 1024;

/// The maximum number of bytes of source for a column of the live region.
const BYTES_PER_COLUMN: usize = 6;

/// The maximum number of rows that are tried as a cut, in each direction; each try in code colours the whole line.
const MAX_CUT_TRIES: usize = 32;

/// A longer line is processed in pieces of this length, so that the open block stays short.
const MAX_PIECE: usize = 2048;

/// The renderer of a text that grows.
#[derive(Debug)]
pub struct Stream {
    style: Style,
    width: usize,
    live_rows: usize,
    /// The source of the open block, and of blocks whose end is not certain yet.
    open: String,
    /// How the source goes on with what is settled.
    continuation: Continuation,
    /// Whether the start of the last, incomplete line has been checked.
    has_checked_line: bool,
    /// The open block as it looks now.
    live: Vec<String>,
}

impl Stream {
    /// Returns an empty stream for a terminal with `width` columns (at least 20), of which the `live_rows` lowest rows
    /// are redrawn. [`Style::Plain`] text is not wrapped.
    pub fn new(style: Style, width: usize, live_rows: usize) -> Self {
        Self {
            style,
            width,
            live_rows: live_rows.max(1),
            open: String::new(),
            continuation: Continuation::default(),
            has_checked_line: false,
            live: Vec::new(),
        }
    }

    /// Adds the next piece of the text. Returns the rows that are settled: they will never change again.
    pub fn push(&mut self, text: &str) -> Vec<String> {
        let mut settled = Vec::new();
        for part in text.split_inclusive('\n').flat_map(pieces) {
            let start = self.open.len();
            self.open.push_str(part);
            if self.is_formatted() {
                self.limit_nesting(start);
                self.settle_blocks(&mut settled);
                self.settle_overflow(&mut settled);
            } else {
                self.settle_lines(&mut settled);
            }
        }
        settled
    }

    /// Returns the rows of the open block as it looks now, at most as many as the live region has. They may change
    /// with the next [`push`](Self::push).
    pub fn live(&self) -> Vec<String> {
        if !self.is_formatted() {
            return self.open_line();
        }
        let hidden = self.live.len().saturating_sub(self.live_rows);
        self.live[hidden..].to_vec()
    }

    /// Adds the last piece of the text, which may be long, and returns the remaining rows. It renders the piece at once
    /// and not line by line.
    pub fn finish(mut self, rest: &str) -> Vec<String> {
        if self.is_formatted() {
            let start = self.open.len();
            self.open.push_str(rest);
            self.limit_nesting(start);
            texts(self.render(&escape_definitions(&self.open)).rows)
        } else {
            let mut rows = self.push(rest);
            rows.extend(self.open_line());
            rows
        }
    }

    /// Changes the width of the rows that are not settled.
    pub fn resize(&mut self, width: usize) {
        self.width = width;
        self.continuation.table = None;
        if self.is_formatted() {
            self.live = texts(self.render(&complete_markers(&self.open)).rows);
        }
    }

    fn is_formatted(&self) -> bool {
        matches!(self.style, Style::Uncoloured | Style::Coloured)
    }

    fn max_open(&self) -> usize {
        let columns = self.width.max(MIN_WIDTH).saturating_mul(self.live_rows);
        columns.saturating_mul(BYTES_PER_COLUMN).min(MAX_OPEN)
    }

    fn render(&self, source: &str) -> Rendered {
        render_rows(source, &self.continuation, self.width, self.style)
    }

    /// Turns markers that nest too deep into text, from the line with this offset on.
    fn limit_nesting(&mut self, start: usize) {
        let opening = self.continuation.opening;
        if let Cow::Owned(escaped) = escape_deep_markers(&self.open, start, opening) {
            self.open = escaped;
        }
    }

    /// Settles what is before the last block, item or line of code.
    fn settle_blocks(&mut self, settled: &mut Vec<String>) {
        let is_complete = self.open.ends_with('\n');
        if !is_complete && (self.has_checked_line || !is_decided(&self.open)) {
            return;
        }
        self.has_checked_line = !is_complete;
        if let Cow::Owned(escaped) = escape_definitions(&self.open) {
            self.open = escaped;
        }
        let mut last = last_start(&self.open);
        if last.offset > self.continuation.opening {
            let rendered = self.render(&self.open);
            let is_after = |row: &Row| row.position.is_some_and(|it| it.offset >= last.offset);
            let first_open = rendered.rows.iter().position(is_after);
            self.cut(rendered, first_open, last.offset, settled);
            last = last_start(&self.open);
        }
        if last.is_fenced_code {
            self.settle_code_lines(settled);
        }
    }

    /// Settles what is before the last line of the open code block.
    fn settle_code_lines(&mut self, settled: &mut Vec<String>) {
        let rendered = self.render(&self.open);
        let starts_line = |row: &Row| row.code.is_some_and(|code| code.is_line_start);
        let Some(line) = rendered.rows.iter().rposition(starts_line) else {
            return;
        };
        let has_text_above = rendered.rows[..line]
            .iter()
            .any(|row| row.position.is_some());
        match rendered.rows[line].position {
            Some(position) if position.is_exact && has_text_above => {
                self.cut(rendered, Some(line), position.offset, settled);
            }
            _ => {}
        }
    }

    /// Renders the open block, and settles its oldest rows if there are more than the live region has.
    fn settle_overflow(&mut self, settled: &mut Vec<String>) {
        let visible = complete_markers(&self.open);
        let rendered = self.render(&visible);
        let surplus = rendered.rows.len().saturating_sub(self.live_rows);
        let can_cut = |row: &Row| {
            row.position.is_some_and(|position| {
                let is_code_kept =
                    |code: CodeRow| code.line.can_be_cut_at(position.offset, &visible);
                row.code.is_none_or(is_code_kept)
            })
        };
        let is_exact = |row: &Row| row.position.is_some_and(|position| position.is_exact);
        let rows = rendered.rows.iter().enumerate().skip(1);
        let exact = rows.filter(|(_, row)| is_exact(row));
        let fitting = exact.clone().filter(|(index, _)| *index >= surplus);
        let earlier = exact.rev().filter(|(index, _)| *index < surplus);
        let mut tries = fitting
            .take(MAX_CUT_TRIES)
            .chain(earlier.take(MAX_CUT_TRIES));
        let cut = match surplus {
            0 => None,
            // The first one that leaves no more rows than fit, or else the last one before it.
            _ => tries.find(|(_, row)| can_cut(row)),
        };
        let cut = cut.and_then(|(index, row)| Some((index, row.position?.offset)));
        if let Some((index, offset)) = cut {
            self.live = texts(rendered.rows[index..].to_vec());
            let visible = visible.into_owned();
            self.cut_visible(&visible, rendered, Some(index), offset, settled);
        } else if self.open.len() > self.max_open() {
            let rows = self.render(&self.open).rows;
            settled.extend(texts(rows));
            self.open.clear();
            self.continuation = Continuation::default();
            self.live.clear();
        } else {
            self.live = texts(rendered.rows);
        }
    }

    fn cut(
        &mut self,
        rendered: Rendered,
        first_open: Option<usize>,
        offset: usize,
        settled: &mut Vec<String>,
    ) {
        // The gap before a block belongs to it, because the block may turn out to be empty.
        let gap = first_open
            .and_then(|index| index.checked_sub(1))
            .filter(|above| rendered.rows[*above].position.is_none());
        let source = self.open.clone();
        self.cut_visible(&source, rendered, gap.or(first_open), offset, settled);
        self.continuation.follows_text |= gap.is_some();
    }

    /// Settles the rows before `first_open`, and goes on with the source from `offset`. `visible` is the source that
    /// was rendered: the open one up to there, or further.
    fn cut_visible(
        &mut self,
        visible: &str,
        mut rendered: Rendered,
        first_open: Option<usize>,
        offset: usize,
        settled: &mut Vec<String>,
    ) {
        let open_rows = first_open.map_or(Vec::new(), |index| rendered.rows.split_off(index));
        let follows_text = self.continuation.follows_text || !rendered.rows.is_empty();
        let (opening, mut continuation) = continue_at(visible, offset, &self.continuation);
        continuation.follows_text = follows_text && open_rows.is_empty();
        continuation.code = open_rows
            .first()
            .and_then(|row| row.code)
            .map(|code| code.line.state_at(offset, visible))
            .unwrap_or_default();
        continuation.table = rendered.table;
        self.open = opening + rest_at(&self.open, offset);
        self.continuation = continuation;
        // A marker in the middle of a line is at the start of one now.
        self.limit_nesting(0);
        settled.extend(texts(rendered.rows));
    }

    /// Settles complete lines of text that is not formatted, and the oldest rows of a long line.
    fn settle_lines(&mut self, settled: &mut Vec<String>) {
        if let Some(line) = self.open.strip_suffix('\n') {
            settled.extend(self.unformatted_rows(line));
            self.open.clear();
            return;
        }
        if self.style == Style::Plain {
            return;
        }
        let rows = wrap_source_line(&self.open, self.width);
        let surplus = rows.len().saturating_sub(self.live_rows);
        let first_open = rows.get(surplus).and_then(|row| row.position);
        if let Some(position) = first_open {
            let oldest = rows[..surplus].iter();
            settled.extend(oldest.map(|row| row.paint(self.style)));
            self.open.drain(..position.offset);
        }
    }

    fn open_line(&self) -> Vec<String> {
        match self.open.as_str() {
            "" => Vec::new(),
            line => self.unformatted_rows(line),
        }
    }

    fn unformatted_rows(&self, line: &str) -> Vec<String> {
        match self.style {
            Style::Plain => vec![line.into()],
            _ => wrap_source_line(line, self.width)
                .iter()
                .map(|row| row.paint(self.style))
                .collect(),
        }
    }
}

/// The start of the last thing that is not settled.
struct LastStart {
    offset: usize,
    is_fenced_code: bool,
}

/// Returns where the last block starts, or if it is a list, its last item.
fn last_start(source: &str) -> LastStart {
    let mut last = LastStart {
        offset: 0,
        is_fenced_code: false,
    };
    let mut depth = 0;
    for (event, range) in parser(source).into_offset_iter() {
        let is_block = depth == 0 && matches!(event, Event::Start(_) | Event::Rule);
        let is_item = depth == 1 && matches!(event, Event::Start(Tag::Item));
        if is_block || is_item {
            last.offset = range.start;
            last.is_fenced_code = matches!(
                event,
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_)))
            );
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    last
}

/// Splits a line into pieces of bounded length.
fn pieces(mut line: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (piece, rest) = line.split_at(line.floor_char_boundary(MAX_PIECE));
        line = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

fn texts(rows: Vec<Row>) -> Vec<String> {
    rows.into_iter().map(|row| row.text).collect()
}
