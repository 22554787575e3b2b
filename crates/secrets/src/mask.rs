//! Masks: removes echoes of secret values from text and bytes that a model or a sandboxed program will see.
//!
//! A value is found as it is, in hexadecimal digits, and inside base64 or base64url text at each of the three alignments; each
//! with any of its characters escaped for URLs, JSON or HTML, in any order. A server that knows a value and wants to
//! reveal it can always find another encoding; masks are for servers that echo what they were sent.

mod boundary;
mod pattern;
mod reader;
mod scan;
mod set;
mod text;
mod units;

use crate::value::SecretValue;
use set::{MaskSet, Rest};
use std::borrow::Cow;
use std::fmt;
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
        let (copied, _) = stream.release(bytes, true, &mut masked);
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
            open: None,
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
    /// What is left to remove of the echo that was replaced last.
    open: Option<Rest>,
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
        let mut out = Vec::with_capacity(held.len());
        let (copied, decided) = self.release(&held, is_end, &mut out);
        out.extend_from_slice(&held[copied..decided]);
        held.drain(..decided);
        self.held = held;
        out
    }

    /// Searches `bytes`, and writes everything up to the end of the last echo to `out`. Returns the position of that end, and
    /// the position up to which the bytes are decided.
    fn release(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<u8>) -> (usize, usize) {
        let set = Arc::clone(&self.set);
        if set.is_empty() {
            return (0, bytes.len());
        }
        let limit = if is_end {
            bytes.len()
        } else {
            set.shape().boundary(bytes)
        };
        let mut copied = 0;
        if let Some(mut rest) = self.open.take() {
            copied = rest.remove(bytes, 0, is_end);
            if !rest.is_empty() {
                self.open = Some(rest);
                return (copied, copied);
            }
        }
        for start in set.candidates(bytes, copied..limit, is_end) {
            if start < copied {
                continue;
            }
            let Some(mut echo) = set.echo_at(bytes, start, is_end) else {
                continue;
            };
            out.extend_from_slice(&bytes[copied..start]);
            out.extend_from_slice(echo.replacement.as_bytes());
            self.echoes += 1;
            copied = echo.rest.remove(bytes, echo.end, is_end);
            if !echo.rest.is_empty() {
                self.open = Some(echo.rest);
                return (copied, copied);
            }
        }
        (copied, copied.max(limit))
    }
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaskStream({} echoes)", self.echoes)
    }
}

#[cfg(test)]
mod tests;
