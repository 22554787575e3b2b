//! Masks: removes echoes of secret values from text and bytes that a model or a sandboxed program will see.
//!
//! A value is found as it is, in hexadecimal digits, and inside base64 or base64url text at each of the three alignments; each
//! with any of its characters escaped for URLs, JSON or HTML, in any order. A server that knows a value and wants to
//! reveal it can always find another encoding; masks are for servers that echo what they were sent.

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
pub use text::MaskText;

/// Minimum length of a masked value in bytes. A shorter value would mask ordinary text.
pub const LEAST_MASKED_BYTES: usize = pattern::LEAST_UNITS;

/// The values to mask. Clones share them.
#[derive(Clone, Default)]
pub struct Masks(Arc<RwLock<Arc<MaskSet>>>);

impl Masks {
    /// Masks a value from now on, as `[secret NAME]`. Values shorter than [`LEAST_MASKED_BYTES`] are not masked. White space
    /// around a value does not count: it is not sent either.
    pub fn add(&self, name: &str, value: &SecretValue) {
        let value = value.expose().trim_ascii();
        if value.len() < LEAST_MASKED_BYTES || self.current().contains(value) {
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

    /// Returns whether a text that was turned into lower case, as the names of headers are, has a value in it.
    pub fn is_in_lower_case(&self, text: &str) -> bool {
        self.current().is_in_lower_case(text.as_bytes())
    }

    /// Replaces echoes in a text.
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Echoes start and end at characters, unless the value itself is no text.
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

    /// Masks bytes that arrive in pieces, with the values known now.
    pub fn stream(&self) -> MaskStream {
        MaskStream {
            set: self.current(),
            held: Vec::new(),
            removed: 0,
            replacement: None,
            echoes: 0,
        }
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

/// Masks a stream of bytes. It holds back the last word, or some of them: see [`boundary`].
pub struct MaskStream {
    set: Arc<MaskSet>,
    held: Vec<u8>,
    /// Number of held bytes that belong to an echo which was replaced already. Another echo can start in them.
    removed: usize,
    /// The text that replaced the last echo, if nothing came after it.
    replacement: Option<Arc<str>>,
    echoes: u64,
}

impl MaskStream {
    /// Takes the next bytes, and returns those that are decided.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.advance(bytes, false)
    }

    /// Returns the rest after the last piece.
    pub fn finish(&mut self) -> Vec<u8> {
        self.advance(&[], true)
    }

    /// Returns the number of echoes so far.
    pub fn echoes(&self) -> u64 {
        self.echoes
    }

    fn advance(&mut self, bytes: &[u8], is_end: bool) -> Vec<u8> {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let limit = if is_end || self.set.is_empty() {
            held.len()
        } else {
            self.set.shape().boundary(&held)
        };
        let mut out = Vec::with_capacity(held.len());
        let copied = self.mask(&held, limit, is_end, &mut out);
        if copied < limit {
            out.extend_from_slice(&held[copied..limit]);
            self.replacement = None;
        }
        self.removed = copied.saturating_sub(limit);
        held.drain(..limit);
        self.held = held;
        out
    }

    /// Writes the bytes up to the last echo that starts before `limit` to `out`, with echoes replaced. Returns the position
    /// after that echo.
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
            // An echo that starts inside another one, or right after it, extends what is removed.
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
