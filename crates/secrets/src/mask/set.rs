//! The set of values to mask. Long values are masked in segments, which limits the work per byte of text and the number
//! of bytes to hold back.

use super::boundary::EchoShape;
use super::compare::Echo;
use super::pattern::{Notation, Pattern, json_texts, long_words, segments};
use super::scan::Scanner;
use crate::value::SecretValue;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(super) struct MaskSet {
    values: Vec<Arc<SecretValue>>,
    scanner: Scanner,
    shape: EchoShape,
}

impl MaskSet {
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn shape(&self) -> EchoShape {
        self.shape
    }

    pub(super) fn contains(&self, value: &[u8]) -> bool {
        self.values.iter().any(|known| known.expose() == value)
    }

    pub(super) fn is_in_lower_case(&self, text: &[u8]) -> bool {
        self.values.iter().any(|value| {
            let value = value.expose();
            let mut parts = text.windows(value.len());
            parts.any(|part| part.eq_ignore_ascii_case(value))
        })
    }

    pub(super) fn insert(&mut self, name: &str, value: &[u8]) {
        self.values.push(Arc::new(SecretValue::new(value)));
        let replacement = format!("[secret {name}]").into();
        let texts = json_texts(value);
        let words = texts.iter().map(|text| text.as_bytes()).chain([value]);
        let words: Vec<&[u8]> = words.flat_map(long_words).collect();
        let own_words = words.into_iter().filter(|word| word.len() < value.len());
        for segment in segments(value).chain(own_words.flat_map(segments)) {
            for pattern in Pattern::all(segment, &replacement) {
                if pattern.notation == Notation::Plain {
                    self.shape.extend(segment, &pattern.units);
                }
                self.scanner.insert(pattern);
            }
        }
    }

    /// Returns the echoes that start in `range`, in the order of their starts.
    pub(super) fn echoes(&self, bytes: &[u8], range: Range<usize>, is_end: bool) -> Vec<Echo<'_>> {
        self.scanner.echoes(bytes, range, is_end)
    }
}
