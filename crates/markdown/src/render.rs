//! Renders a whole text.

use super::nesting::escape_deep_markers;
use super::renderer::{Continuation, render_rows};
use super::source::{escape_definitions, is_blank};
use super::styled_text::TextAttributes;
use super::wrap::{self, Span, WrappedRow};

/// The minimum number of columns. A narrower terminal wraps the rows itself.
pub(super) const MIN_WIDTH: usize = 20;

/// The destination of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A file or a pipe: the text byte for byte.
    Plain,
    /// A terminal that knows no escape sequences (`TERM=dumb`): the markdown source, [sanitized](lango_core::text::sanitize) and
    /// wrapped.
    Source,
    /// A terminal without colours (`NO_COLOR`): formatted, with bold, dim, italic and underlined text.
    Uncoloured,
    /// A terminal with colours: formatted and coloured.
    Coloured,
}

/// Renders the text in the given style, in rows of at most `width` columns (at least 20).
///
/// Formatted text has one blank line between blocks. It ends in as many newlines as `text` did, but at most two.
pub fn render(text: &str, style: Style, width: usize) -> String {
    match style {
        Style::Plain => text.into(),
        Style::Source => {
            let rows: Vec<String> = text
                .split('\n')
                .flat_map(|line| wrap_source_line(line, width))
                .map(|row| row.paint(style))
                .collect();
            rows.join("\n")
        }
        Style::Uncoloured | Style::Coloured => format(text, style, width),
    }
}

/// Sanitizes a line of markdown source and wraps it.
pub(super) fn wrap_source_line(line: &str, width: usize) -> Vec<WrappedRow> {
    let text = line.strip_suffix('\r').unwrap_or(line);
    let span = Span::from_source(text, TextAttributes::default(), line, 0..text.len());
    wrap::words(&[span], width.max(MIN_WIDTH))
}

fn format(text: &str, style: Style, width: usize) -> String {
    let nested = escape_deep_markers(text, 0, 0);
    let source = escape_definitions(&nested);
    let rows = render_rows(&source, &Continuation::default(), width, style).rows;
    let rows: Vec<String> = rows.into_iter().map(|row| row.text).collect();
    let mut body = rows.join("\n");
    if !body.is_empty() {
        let ending = &text[text.trim_end_matches(is_blank).len()..];
        let newlines = ending.matches('\n').count().min(2);
        body.extend(std::iter::repeat_n('\n', newlines));
    }
    body
}
