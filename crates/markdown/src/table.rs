//! Tables: collects the cells, then draws them in aligned columns.

use pulldown_cmark::Alignment;

use super::page::Page;
use super::styled_text::{StyledText, TextAttribute, TextAttributes};

/// The maximum width of a column. A longer cell sticks out, instead of widening every other line.
const MAX_COLUMN_WIDTH: usize = 60;

/// The cells collected so far.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<StyledText>>,
}

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
        }
    }

    pub(crate) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(crate) fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(StyledText::default());
        }
    }

    /// Adds text to the last cell. A cell has one line.
    pub(crate) fn write(&mut self, text: &str, attributes: TextAttributes) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.push(&text.replace(['\n', '\t'], " "), attributes);
        }
    }

    /// Writes the table to a page: the heading, a rule, the rows.
    pub(crate) fn draw(&self, page: &mut Page) {
        let widths = self.column_widths();
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                page.break_line();
            }
            page.write_styled(&self.line(row, &widths));
            if index == 0 {
                page.break_line();
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                page.write(
                    &rules.join("─┼─"),
                    TextAttributes::default().and(TextAttribute::Dim),
                );
            }
        }
    }

    fn column_widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width.clamp(*width, MAX_COLUMN_WIDTH.max(*width));
            }
        }
        widths
    }

    fn line(&self, row: &[StyledText], widths: &[usize]) -> String {
        let mut bar = StyledText::default();
        bar.push(" │ ", TextAttributes::default().and(TextAttribute::Dim));
        let cells: Vec<String> = row
            .iter()
            .zip(widths.iter().zip(&self.alignments))
            .map(|(cell, (width, alignment))| pad(cell, *width, *alignment))
            .collect();
        cells.join(&bar.text).trim_end().into()
    }
}

fn pad(cell: &StyledText, width: usize, alignment: Alignment) -> String {
    let room = width.saturating_sub(cell.width);
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => room / 2,
        Alignment::Right => room,
    };
    format!(
        "{}{}{}",
        " ".repeat(before),
        cell.text,
        " ".repeat(room - before)
    )
}
