//! Tables: cells are collected, then drawn in columns that line up.

use pulldown_cmark::Alignment;

use super::ink::{Ink, Look, Painted};
use super::page::Page;

/// The widest a column is made. A longer cell sticks out of it, rather than widening every other line.
const WIDEST_COLUMN: usize = 60;

/// The cells so far.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Painted>>,
}

impl Table {
    pub fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
        }
    }

    pub fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(Painted::default());
        }
    }

    /// Adds text to the last cell. A cell has one line.
    pub fn write(&mut self, text: &str, ink: Ink) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.push(&text.replace(['\n', '\t'], " "), ink);
        }
    }

    /// Draws it: the heading, a rule, the rows.
    pub fn draw(&self, page: &mut Page) {
        let widths = self.column_widths();
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                page.break_line();
            }
            page.write_painted(&self.line(row, &widths));
            if index == 0 {
                page.break_line();
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                page.write(&rules.join("─┼─"), Ink::default().and(Look::Dim));
            }
        }
    }

    fn column_widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.alignments.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width.clamp(*width, WIDEST_COLUMN.max(*width));
            }
        }
        widths
    }

    fn line(&self, row: &[Painted], widths: &[usize]) -> String {
        let mut bar = Painted::default();
        bar.push(" │ ", Ink::default().and(Look::Dim));
        let cells: Vec<String> = row
            .iter()
            .zip(widths.iter().zip(&self.alignments))
            .map(|(cell, (width, alignment))| padded(cell, *width, *alignment))
            .collect();
        cells.join(&bar.text).trim_end().into()
    }
}

fn padded(cell: &Painted, width: usize, alignment: Alignment) -> String {
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
