//! Masks: remove echoes of secret values from text and bytes that a model or a sandboxed program will see.
//!
//! A value is recognized as it is, in hexadecimal digits, and inside base64 or base64url text at each of the three
//! alignments. In each form, any characters may be escaped for URLs, JSON or HTML, in any order. A server that wants to
//! reveal a value can always find another encoding; masks protect against servers that echo what they received.

mod boundary;
mod compare;
mod pattern;
mod reader;
mod scan;
mod set;
mod text;
mod units;

use crate::value::SecretValue;
use set::MaskSet;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
pub use text::MaskTextStream;

/// Minimum length of a value to mask, in bytes. Masking a shorter value would mask ordinary text.
pub const MIN_MASKED_BYTES: usize = pattern::MIN_UNITS;

/// A set of values to mask. Clones share it.
#[derive(Clone, Default)]
pub struct Masks(Arc<RwLock<Arc<MaskSet>>>);

impl Masks {
    /// Masks a value as `[secret NAME]` from now on. Values shorter than [`MIN_MASKED_BYTES`] are not masked. White
    /// space around a value is ignored, because it is not sent either.
    pub fn add(&self, name: &str, value: &SecretValue) {
        let value = value.expose().trim_ascii();
        if value.len() < MIN_MASKED_BYTES || self.current().contains(value) {
            return;
        }
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !current.contains(value) {
            let mut set = MaskSet::clone(&current);
            set.insert(name, value);
            *current = Arc::new(set);
        }
    }

    /// Returns whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.current().is_empty()
    }

    /// Returns whether a lower-case text, such as a header name, contains a value, ignoring case.
    pub fn is_in_lower_case(&self, text: &str) -> bool {
        self.current().is_in_lower_case(text.as_bytes())
    }

    /// Replaces echoes in a text.
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Echoes start and end at character boundaries, unless the value itself is binary.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Replaces echoes in bytes.
    pub fn mask_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut stream = self.stream();
        let mut masked = Vec::new();
        let copied = stream.mask(bytes, bytes.len(), true, &mut masked);
        if stream.echoes == 0 {
            Cow::Borrowed(bytes)
        } else {
            masked.extend_from_slice(&bytes[copied..]);
            Cow::Owned(masked)
        }
    }

    /// Returns a stream that masks bytes arriving in chunks, with the values known now.
    pub fn stream(&self) -> MaskStream {
        MaskStream {
            set: self.current(),
            pending: Vec::new(),
            removed: 0,
            replacement: None,
            echoes: 0,
        }
    }

    /// Returns the maximum length of an echo, in bytes.
    pub fn max_echo_bytes(&self) -> usize {
        self.current().shape().limit()
    }

    fn current(&self) -> Arc<MaskSet> {
        let set = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&set)
    }
}

impl fmt::Debug for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masks({})", self.current().len())
    }
}

/// Masks a stream of bytes. It holds back the last word or words, because an echo may continue after them; see
/// `boundary`.
pub struct MaskStream {
    set: Arc<MaskSet>,
    pending: Vec<u8>,
    /// Number of pending bytes that belong to an echo that is already replaced. They are kept because another echo can
    /// start in them.
    removed: usize,
    /// The text that replaced the last echo, if no other output followed it.
    replacement: Option<Arc<str>>,
    echoes: u64,
}

impl MaskStream {
    /// Adds the next bytes, and returns the output so far that later bytes cannot change.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.advance(bytes, false)
    }

    /// Returns the complete lines of what is held back, because nothing has followed them for a while. An echo that
    /// started in them and goes on in later lines is no longer found.
    pub fn end_lines(&mut self) -> Vec<u8> {
        let Some(last) = self.pending.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.pending.split_off(last + 1);
        let lines = self.advance(&[], true);
        self.pending = rest;
        lines
    }

    /// Returns the rest of the output after the last chunk.
    pub fn finish(&mut self) -> Vec<u8> {
        self.advance(&[], true)
    }

    /// Starts again after a gap in the stream. `hidden` is what follows the gap; it is not part of the output, because an
    /// echo that started in the gap may end in it. It needs [`Masks::max_echo_bytes`].
    fn restart(&mut self, hidden: &[u8]) {
        self.pending = hidden.to_vec();
        self.removed = hidden.len();
        self.replacement = None;
    }

    /// Also masks the values that were added since the stream was created.
    fn update(&mut self, masks: &Masks) {
        self.set = masks.current();
    }

    /// Returns the number of replaced echoes so far.
    pub fn echoes(&self) -> u64 {
        self.echoes
    }

    fn advance(&mut self, bytes: &[u8], is_end: bool) -> Vec<u8> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let limit = if is_end || self.set.is_empty() {
            pending.len()
        } else {
            self.set.shape().boundary(&pending)
        };
        let mut out = Vec::with_capacity(pending.len());
        let copied = self.mask(&pending, limit, is_end, &mut out);
        if copied < limit {
            out.extend_from_slice(&pending[copied..limit]);
            self.replacement = None;
        }
        self.removed = copied.saturating_sub(limit);
        pending.drain(..limit);
        self.pending = pending;
        out
    }

    /// Writes to `out` the bytes up to the end of the last echo that starts before `limit`, with all echoes replaced.
    /// Returns the position after that echo.
    fn mask(&mut self, bytes: &[u8], limit: usize, is_end: bool, out: &mut Vec<u8>) -> usize {
        let set = Arc::clone(&self.set);
        let mut copied = self.removed;
        if set.is_empty() {
            return copied;
        }
        for echo in set.echoes(bytes, 0..limit, is_end) {
            let Range { start, end } = echo.with_margin(bytes);
            if end <= copied {
                continue;
            }
            out.extend_from_slice(&bytes[copied.min(start)..start]);
            // An echo that starts inside another one or right after it extends the removed part.
            let is_same = self.replacement.as_ref() == Some(echo.replacement);
            if start > copied || !is_same {
                out.extend_from_slice(echo.replacement.as_bytes());
                self.replacement = Some(Arc::clone(echo.replacement));
                self.echoes += 1;
            }
            copied = end;
        }
        copied
    }
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaskStream({} echoes)", self.echoes)
    }
}

#[cfg(test)]
mod tests;
