//! Rows, and the lines from which they are wrapped.

use crate::code_block::CodeLine;
use crate::container::Prefix;
use crate::wrap::{Position, Span};

/// A row of the terminal, with its escape sequences.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub text: String,
    /// Where the row starts in the source. `None` for the gap between two blocks.
    pub position: Option<Position>,
    pub code: Option<CodeRow>,
}

/// What a row of code knows besides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeRow {
    pub is_line_start: bool,
    pub line: CodeLine,
}

/// Text before a line break.
pub(super) struct Line {
    pub prefix: Prefix,
    /// Where it starts in the source.
    pub offset: usize,
    pub spans: Vec<Span>,
}

impl Line {
    /// Returns the row with this index of the line.
    pub(super) fn row(&self, index: usize, text: String, position: Position) -> Row {
        let (lead, item_offset) = match index {
            0 => (&self.prefix.first, self.prefix.item_offset),
            _ => (&self.prefix.rest, None),
        };
        // A row with a marker starts where the item does.
        let item = item_offset.map(|offset| Position {
            offset,
            is_exact: true,
        });
        Row {
            text: format!("{lead}{text}"),
            position: Some(item.unwrap_or(position)),
            code: None,
        }
    }

    /// Returns about where the line starts.
    pub(super) fn near(&self) -> Position {
        Position {
            offset: self.offset,
            is_exact: false,
        }
    }
}
