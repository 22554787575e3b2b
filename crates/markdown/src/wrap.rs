//! Wraps text with attributes into rows, measured in columns of the terminal.

mod break_rules;
mod span;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::render::Style;
use super::styled_text::TextAttributes;
use break_rules::can_break_between;
pub(super) use span::{Position, Span};

/// The distance of tab stops in code.
const CODE_TAB: usize = 4;

/// A tab between words is as wide as a space.
const WORD_TAB: usize = 1;

/// A row of text that fits the width.
#[derive(Debug, Clone, Default)]
pub(super) struct WrappedRow {
    pieces: Vec<(String, TextAttributes)>,
    pub width: usize,
    /// Where the row starts in the source. `None` if it is empty.
    pub position: Option<Position>,
}

impl WrappedRow {
    /// Returns the row with its escape sequences.
    pub(crate) fn paint(&self, style: Style) -> String {
        let mut out = String::new();
        for (piece, attributes) in &self.pieces {
            attributes.paint(piece, style, &mut out);
        }
        out
    }
}

/// A grapheme of a span.
#[derive(Clone, Copy)]
struct Glyph<'a> {
    text: &'a str,
    span: &'a Span,
    /// The offset in the span's text.
    at: usize,
    width: usize,
}

impl Glyph<'_> {
    fn is_space(&self) -> bool {
        matches!(self.text, " " | "\t")
    }
}

/// Wraps a line at words. A word that is longer than the width is broken between graphemes. Returns at least one row.
pub(super) fn words(spans: &[Span], width: usize) -> Vec<WrappedRow> {
    let glyphs = glyphs(spans, WORD_TAB);
    let mut rows = Vec::new();
    // The glyphs of the current row, and their width.
    let (mut start, mut end, mut used) = (0, 0, 0);
    let mut next = 0;
    while next < glyphs.len() {
        let spaces = run(&glyphs, next, |_, glyph| glyph.is_space());
        let word_start = next + spaces;
        let word = run(&glyphs, word_start, |before, glyph| {
            !glyph.is_space() && before.is_none_or(|it| !can_break_between(it.text, glyph.text))
        });
        next = word_start + word;
        if word == 0 {
            break;
        }
        let word_width = width_of(&glyphs[word_start..next]);
        let added = width_of(&glyphs[end..next]);
        if used + added <= width {
            (end, used) = (next, used + added);
            continue;
        }
        if end > start {
            rows.push(row(&glyphs[start..end]));
        }
        (start, end, used) = (word_start, next, word_width);
        if word_width > width {
            let mut parts = columns_of(&glyphs[word_start..next], width);
            let last = parts.pop().unwrap_or_default();
            start = next - last.len();
            used = width_of(last);
            rows.extend(parts.into_iter().map(row));
        }
    }
    if end > start || rows.is_empty() {
        rows.push(row(&glyphs[start..end]));
    }
    rows
}

/// Wraps a line of code. Every row keeps its spaces, so that rows can be copied and joined. Returns at least one row.
pub(super) fn columns(spans: &[Span], width: usize) -> Vec<WrappedRow> {
    let glyphs = glyphs(spans, CODE_TAB);
    let rows: Vec<WrappedRow> = columns_of(&glyphs, width).into_iter().map(row).collect();
    if rows.is_empty() {
        vec![WrappedRow::default()]
    } else {
        rows
    }
}

/// Returns the start of a line that fits the width. If something is cut, the last span is `…`.
pub(super) fn fit(spans: &[Span], width: usize) -> Vec<Span> {
    if line_width(spans) <= width {
        return spans.to_vec();
    }
    let glyphs = glyphs(spans, WORD_TAB);
    let first = columns_of(&glyphs, width.saturating_sub(1))
        .first()
        .copied();
    let pieces = first.map(row).unwrap_or_default().pieces;
    let mut fitting: Vec<Span> = pieces
        .iter()
        .map(|(text, attributes)| Span::new(text, *attributes))
        .collect();
    fitting.push(Span::new("…", TextAttributes::default()));
    fitting
}

/// Returns the width of a line that is not wrapped.
pub(super) fn line_width(spans: &[Span]) -> usize {
    width_of(&glyphs(spans, WORD_TAB))
}

/// Returns the width of the widest part of a line that should not be broken.
pub(super) fn longest_word(spans: &[Span]) -> usize {
    glyphs(spans, WORD_TAB)
        .chunk_by(|before, glyph| {
            !before.is_space() && !glyph.is_space() && !can_break_between(before.text, glyph.text)
        })
        .map(width_of)
        .max()
        .unwrap_or(0)
}

fn glyphs(spans: &[Span], tab: usize) -> Vec<Glyph<'_>> {
    let mut glyphs = Vec::new();
    let mut column = 0;
    for span in spans {
        let mut push = |at: usize, text| {
            let width = match text {
                "\t" => tab - column % tab,
                _ => text.width(),
            };
            column += width;
            glyphs.push(Glyph {
                text,
                span,
                at,
                width,
            });
        };
        // Most text is ASCII, and finding graphemes takes most of the time.
        if span.text.is_ascii() {
            (0..span.text.len()).for_each(|at| push(at, &span.text[at..=at]));
        } else {
            let graphemes = span.text.grapheme_indices(true);
            graphemes.for_each(|(at, text)| push(at, text));
        }
    }
    glyphs
}

/// Returns how many glyphs from `start` on belong together. The condition sees each glyph and the one before it.
fn run(
    glyphs: &[Glyph<'_>],
    start: usize,
    belongs: impl Fn(Option<&Glyph<'_>>, &Glyph<'_>) -> bool,
) -> usize {
    let run = &glyphs[start..];
    let ends = |index: &usize| !belongs(index.checked_sub(1).map(|it| &run[it]), &run[*index]);
    (0..run.len()).find(ends).unwrap_or(run.len())
}

/// Splits glyphs into rows that fit the width: after a space, or within a word if the row would be less than half full.
fn columns_of<'a, 'b>(glyphs: &'b [Glyph<'a>], width: usize) -> Vec<&'b [Glyph<'a>]> {
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    // Where the last word of the row starts, and the width before it.
    let mut last_word = (0, 0);
    for (index, glyph) in glyphs.iter().enumerate() {
        if used + glyph.width > width && index > start {
            let (at, before) = match last_word {
                (at, before) if !glyph.is_space() && before * 2 >= width => (at, before),
                _ => (index, used),
            };
            rows.push(&glyphs[start..at]);
            (start, used) = (at, used - before);
            last_word = (at, 0);
        }
        used += glyph.width;
        if glyph.is_space() {
            last_word = (index + 1, used);
        }
    }
    if start < glyphs.len() {
        rows.push(&glyphs[start..]);
    }
    rows
}

fn width_of(glyphs: &[Glyph<'_>]) -> usize {
    glyphs.iter().map(|glyph| glyph.width).sum()
}

fn row(glyphs: &[Glyph<'_>]) -> WrappedRow {
    let mut pieces: Vec<(String, TextAttributes)> = Vec::new();
    for glyph in glyphs {
        let text = match glyph.text {
            "\t" => &"    "[..glyph.width],
            text => text,
        };
        match pieces.last_mut() {
            Some((piece, attributes)) if *attributes == glyph.span.attributes => {
                piece.push_str(text);
            }
            _ => pieces.push((text.into(), glyph.span.attributes)),
        }
    }
    WrappedRow {
        pieces,
        width: width_of(glyphs),
        position: glyphs.first().map(|glyph| glyph.span.position(glyph.at)),
    }
}
