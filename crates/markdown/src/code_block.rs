//! A code block: collects its lines and colours them.

use std::ops::Range;

use super::highlight::{Highlighter, LineState};
use super::page::Page;
use super::source::line_end;
use super::styled_text::{TextAttribute, TextAttributes};
use super::wrap::Span;

/// The code block that is being read.
pub(super) struct CodeBlock {
    /// `None` if the language is not known.
    highlighter: Option<Highlighter>,
    /// What is open where the line starts.
    state: LineState,
    line: String,
    /// Where the line starts in the source.
    start: Option<usize>,
}

/// The start of a line of code, from where the state at any position in it can be found.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeLine {
    highlighter: Option<Highlighter>,
    state: LineState,
    offset: usize,
}

impl CodeLine {
    /// Returns what is open at this offset of the source, which must be in the line.
    pub(crate) fn state_at(self, offset: usize, source: &str) -> LineState {
        let before = source.get(self.offset..offset).unwrap_or("");
        self.highlighter.map_or(self.state, |highlighter| {
            highlighter.state_after(before, self.state)
        })
    }

    /// Returns whether the line looks the same if it is cut at this offset of the source. It does not if a short token
    /// is cut, such as the start of a comment.
    pub(crate) fn can_be_cut_at(self, offset: usize, source: &str) -> bool {
        let (Some(highlighter), Some(rest)) = (self.highlighter, source.get(offset..)) else {
            return true;
        };
        let rest = &rest[..line_end(rest, 0)];
        let before = source.get(self.offset..offset).unwrap_or("");
        let (whole, _) = highlighter.colour(&format!("{before}{rest}"), self.state);
        let (cut, _) = highlighter.colour(rest, self.state_at(offset, source));
        cut.iter().all(|(part, attributes)| {
            let (start, end) = (part.start + before.len(), part.end + before.len());
            let mut same_place = whole
                .iter()
                .filter(|(part, _)| part.start < end && start < part.end);
            same_place.all(|(_, other)| other == attributes)
        })
    }
}

impl CodeBlock {
    /// Starts a block. `info` is what follows the fence; `state` is what is open where the block starts or goes on.
    pub(crate) fn new(info: &str, state: LineState) -> Self {
        Self {
            highlighter: Highlighter::find(info),
            state,
            line: String::new(),
            start: None,
        }
    }

    /// Adds code, and writes the lines that it completes.
    pub(crate) fn write(&mut self, text: &str, range: Range<usize>, source: &str, page: &mut Page) {
        let mut start = range.start;
        for (index, part) in text.split('\n').enumerate() {
            if index > 0 {
                self.end_line(source, page);
                start += 1;
            }
            if !part.is_empty() {
                self.line.push_str(part);
                self.start.get_or_insert(start);
            }
            start += part.len();
        }
    }

    /// Writes the last line, if it has no line break.
    pub(crate) fn finish(mut self, source: &str, page: &mut Page) {
        if !self.line.is_empty() {
            self.end_line(source, page);
        }
        page.end_block();
    }

    fn end_line(&mut self, source: &str, page: &mut Page) {
        let line = std::mem::take(&mut self.line);
        let start = self.start.take().unwrap_or(0);
        let state = self.state;
        let parts = match self.highlighter {
            Some(highlighter) => {
                let (parts, next) = highlighter.colour(&line, state);
                self.state = next;
                parts
            }
            None => vec![(
                0..line.len(),
                TextAttributes::default().and(TextAttribute::Dim),
            )],
        };
        let is_copy = source.get(start..start + line.len()) == Some(line.as_str());
        let span = |(part, attributes): (Range<usize>, TextAttributes)| {
            let text = &line[part.clone()];
            if is_copy {
                let range = start + part.start..start + part.end;
                Span::from_source(text, attributes, source, range)
            } else {
                Span::near(text, attributes, start)
            }
        };
        let spans: Vec<Span> = parts
            .into_iter()
            .filter(|(part, _)| !part.is_empty())
            .map(span)
            .collect();
        let code_line = CodeLine {
            highlighter: self.highlighter,
            state,
            offset: start,
        };
        page.write_code(&spans, code_line);
    }
}
