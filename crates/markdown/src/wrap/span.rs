//! A piece of text with one set of attributes, which knows where it came from.

use lango_core::text::sanitize;
use std::ops::Range;

use crate::styled_text::TextAttributes;

/// A piece of sanitized text without line breaks.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(super) text: String,
    pub(super) attributes: TextAttributes,
    origin: Origin,
}

/// Where the text of a span is in the source.
#[derive(Debug, Clone)]
enum Origin {
    /// Not in the source, but written because of what is there.
    Near(usize),
    /// There, but spelled differently, for example as an entity.
    At(usize),
    /// A copy of the source from there on. If sanitizing changed it, where each character is in the span and in the
    /// original, which has as many.
    Copy(usize, Option<Box<[(usize, usize)]>>),
}

/// A position in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub offset: usize,
    /// Whether the text can be cut here. Otherwise the offset is only near.
    pub is_exact: bool,
}

impl Span {
    /// Returns a span that has no place in the source.
    pub(crate) fn new(text: &str, attributes: TextAttributes) -> Self {
        Self::near(text, attributes, 0)
    }

    /// Returns a span that is not in the source, but follows from what is at `offset`.
    pub(crate) fn near(text: &str, attributes: TextAttributes, offset: usize) -> Self {
        Self {
            text: sanitize(text).into_owned(),
            attributes,
            origin: Origin::Near(offset),
        }
    }

    /// Returns a span with the text of this range of the source.
    pub(crate) fn from_source(
        text: &str,
        attributes: TextAttributes,
        source: &str,
        range: Range<usize>,
    ) -> Self {
        let clean = sanitize(text).into_owned();
        let origin = if source.get(range.clone()) == Some(text) {
            let offsets = || {
                let original = text.char_indices().map(|(at, _)| at);
                let shown = clean.char_indices().map(|(at, _)| at);
                shown.zip(original).collect()
            };
            Origin::Copy(range.start, (clean != text).then(offsets))
        } else {
            Origin::At(range.start)
        };
        Self {
            text: clean,
            attributes,
            origin,
        }
    }

    /// Returns whether the span is empty or only white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.chars().all(|letter| matches!(letter, ' ' | '\t'))
    }

    /// Returns where the span is in the source, at least approximately.
    pub(crate) fn offset(&self) -> usize {
        self.position(0).offset
    }

    /// Returns the position of the character at `at`.
    pub(super) fn position(&self, at: usize) -> Position {
        let (offset, is_exact) = match &self.origin {
            Origin::Near(offset) => (*offset, false),
            Origin::At(start) => (*start, at == 0),
            Origin::Copy(start, None) => (start + at, true),
            Origin::Copy(start, Some(offsets)) => {
                let index = offsets.partition_point(|(shown, _)| *shown < at);
                let before = offsets.get(index).map_or(at, |(_, original)| *original);
                (start + before, true)
            }
        };
        Position { offset, is_exact }
    }
}
