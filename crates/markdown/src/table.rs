//! Tables: collects the cells, then draws them in columns that fit the width, or as one line per cell.

mod fit;

use pulldown_cmark::Alignment;

use super::render::Style;
use super::styled_text::{TextAttribute, TextAttributes};
use super::wrap::{self, Position, Span, WrappedRow};
use fit::ColumnNeed;

/// What separates two columns.
const SEPARATOR: &str = " │ ";

/// What separates two columns of the rule under the heading.
const RULE_SEPARATOR: &str = "─┼─";

/// The columns that a separator takes.
const SEPARATOR_WIDTH: usize = 3;

/// The maximum width of a heading that is repeated in each record. Rows of a few bytes would otherwise repeat pages.
const MAX_HEADING: usize = 40;

/// The cells collected so far.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<TableRow>,
}

struct TableRow {
    /// Where it starts in the source.
    offset: usize,
    cells: Vec<Vec<Span>>,
}

/// How a table is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TableLayout {
    /// In columns of these widths.
    Columns(Vec<usize>),
    /// As a line `heading: value` for each cell that has text, because there are too many columns.
    Records,
}

/// A drawn row, and where it starts in the source.
type DrawnRow = (String, Position);

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
        }
    }

    /// Starts the row at this offset of the source.
    pub(crate) fn begin_row(&mut self, offset: usize) {
        self.rows.push(TableRow {
            offset,
            cells: Vec::new(),
        });
    }

    pub(crate) fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.cells.push(Vec::new());
        }
    }

    /// Adds text to the last cell.
    pub(crate) fn write(&mut self, span: Span) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.cells.last_mut()) {
            cell.push(span);
        }
    }

    /// Returns how to draw the table in rows of `width` columns.
    pub(crate) fn layout(&self, width: usize) -> TableLayout {
        let mut needs = vec![ColumnNeed::default(); self.alignments.len()];
        for row in &self.rows {
            for (need, cell) in needs.iter_mut().zip(&row.cells) {
                need.width = need.width.max(wrap::line_width(cell));
                need.longest_word = need.longest_word.max(wrap::longest_word(cell));
            }
        }
        let separators = SEPARATOR_WIDTH * needs.len().saturating_sub(1);
        width
            .checked_sub(separators)
            .and_then(|width| fit::column_widths(&needs, width))
            .map_or(TableLayout::Records, TableLayout::Columns)
    }

    /// Draws the table without its first `skipped` rows. The first row is the heading.
    pub(crate) fn draw(
        &self,
        layout: &TableLayout,
        width: usize,
        skipped: usize,
        style: Style,
    ) -> Vec<DrawnRow> {
        let rows = self.rows.iter().enumerate().skip(skipped);
        match layout {
            TableLayout::Columns(widths) => rows
                .flat_map(|(index, row)| self.draw_columns(index, row, widths, style))
                .collect(),
            TableLayout::Records if self.rows.len() == 1 => rows
                .flat_map(|(_, row)| row.draw_record(&[], width, 0, style))
                .collect(),
            TableLayout::Records => {
                let headings = self.rows[0].cells.iter();
                let max_width = MAX_HEADING.min(width / 2);
                let is_cut = headings.clone().any(|it| wrap::line_width(it) > max_width);
                let short: Vec<Vec<Span>> = headings.map(|it| wrap::fit(it, max_width)).collect();
                // Headings that are not repeated in full are shown once.
                let skipped_heading = usize::from(!is_cut);
                rows.skip_while(|(index, _)| *index < skipped_heading)
                    .flat_map(|(index, row)| {
                        let separators = usize::from(index > skipped_heading || skipped > 0);
                        let headings = if index == 0 { &[][..] } else { &short };
                        let record = row.draw_record(headings, width, separators, style);
                        let has_text = !record.is_empty();
                        let separator = (String::new(), row.position_of_line(0));
                        std::iter::repeat_n(separator, separators)
                            .filter(move |_| has_text)
                            .chain(record)
                    })
                    .collect()
            }
        }
    }

    /// Draws a row whose cells are wrapped in their columns, and the rule under the heading.
    fn draw_columns(
        &self,
        index: usize,
        row: &TableRow,
        widths: &[usize],
        style: Style,
    ) -> Vec<DrawnRow> {
        let dim = TextAttributes::default().and(TextAttribute::Dim);
        let mut bar = String::new();
        dim.paint(SEPARATOR, style, &mut bar);
        let cells: Vec<Vec<WrappedRow>> = row
            .cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| wrap::words(cell, (*width).max(2)))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut drawn: Vec<DrawnRow> = (0..height)
            .map(|line| {
                let parts: Vec<String> = cells
                    .iter()
                    .zip(widths.iter().zip(&self.alignments))
                    .map(|(cell, (width, alignment))| {
                        pad(cell.get(line), *width, *alignment, style)
                    })
                    .collect();
                let text = parts.join(&bar).trim_end().into();
                (text, row.position_of_line(line))
            })
            .collect();
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            let mut rule = String::new();
            dim.paint(&rules.join(RULE_SEPARATOR), style, &mut rule);
            drawn.push((rule, row.position_of_line(height)));
        }
        drawn
    }
}

impl TableRow {
    /// Returns the position of a line of the drawn row. The source can be cut only before the first.
    fn position_of_line(&self, line: usize) -> Position {
        Position {
            offset: self.offset,
            is_exact: line == 0,
        }
    }

    /// Draws a line for each cell that has text, below `separators` others.
    fn draw_record(
        &self,
        headings: &[Vec<Span>],
        width: usize,
        separators: usize,
        style: Style,
    ) -> Vec<DrawnRow> {
        let separator = |text| Span::new(text, TextAttributes::default());
        let no_heading = Vec::new();
        let cells = self.cells.iter().enumerate();
        // The parser adds as many empty cells as the heading has, also to a line with a single letter.
        let with_text = cells.filter(|(_, cell)| !cell.iter().all(Span::is_blank));
        let lines = with_text.flat_map(|(index, cell)| {
            let heading = headings.get(index).unwrap_or(&no_heading);
            let colon = (!heading.is_empty()).then(|| separator(": "));
            let spans: Vec<Span> = heading
                .iter()
                .cloned()
                .chain(colon)
                .chain(cell.clone())
                .collect();
            wrap::words(&spans, width)
        });
        lines
            .filter(|row| row.width > 0)
            .enumerate()
            .map(|(line, row)| {
                let position = self.position_of_line(separators + line);
                (row.paint(style), position)
            })
            .collect()
    }
}

fn pad(row: Option<&WrappedRow>, width: usize, alignment: Alignment, style: Style) -> String {
    let text = row.map(|row| row.paint(style)).unwrap_or_default();
    let room = width.saturating_sub(row.map_or(0, |row| row.width));
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => room / 2,
        Alignment::Right => room,
    };
    let spaces = |count| " ".repeat(count);
    format!("{}{text}{}", spaces(before), spaces(room - before))
}
