//! Masks: removes echoes of secret values from text and bytes that a model or a sandboxed program will see.
//!
//! A value is found as it is; with any of its characters escaped for URLs, JSON or HTML; in hexadecimal digits; and inside
//! base64 or base64url text at each of the three alignments. A server that knows a value and wants to reveal it can
//! always find another encoding; masks are for servers that echo what they were sent.

mod pattern;

use crate::value::SecretValue;
use pattern::{Outcome, Pattern};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Minimum length of a masked value in bytes. A shorter value would mask ordinary text.
pub const LEAST_MASKED_BYTES: usize = 6;

/// The values to mask. Clones share them.
#[derive(Clone, Default)]
pub struct Masks(Arc<RwLock<Arc<MaskSet>>>);

#[derive(Default)]
struct MaskSet {
    masks: Vec<Mask>,
    /// The patterns that can start with each byte, as indexes of a mask and of its pattern.
    starts: Vec<Vec<(usize, usize)>>,
}

struct Mask {
    /// The text that replaces an echo.
    replacement: String,
    value: SecretValue,
    patterns: Vec<Pattern>,
}

impl Masks {
    /// Masks a value from now on, as `[secret NAME]`. Values shorter than [`LEAST_MASKED_BYTES`] are not masked.
    pub fn add(&self, name: &str, value: &SecretValue) {
        if value.len() < LEAST_MASKED_BYTES {
            return;
        }
        let current = self.current();
        let is_known = |mask: &Mask| mask.value.expose() == value.expose();
        if current.masks.iter().any(is_known) {
            return;
        }
        let mut set = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut masks: Vec<Mask> = set.masks.iter().map(Mask::duplicate).collect();
        masks.push(Mask::new(format!("[secret {name}]"), value));
        *set = Arc::new(MaskSet::new(masks));
    }

    /// Returns whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.current().masks.is_empty()
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
        let mut masked = stream.push(bytes);
        masked.extend(stream.finish());
        if stream.echoes == 0 {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(masked)
        }
    }

    /// Masks bytes that arrive in pieces, with the values known now.
    pub fn stream(&self) -> MaskStream {
        MaskStream {
            set: self.current(),
            held: Vec::new(),
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
        write!(f, "Masks({})", self.current().masks.len())
    }
}

impl Mask {
    fn new(replacement: String, value: &SecretValue) -> Self {
        Self {
            replacement,
            value: SecretValue::new(value.expose()),
            patterns: Pattern::all(value.expose()),
        }
    }

    fn duplicate(&self) -> Self {
        Self::new(self.replacement.clone(), &self.value)
    }
}

impl MaskSet {
    fn new(masks: Vec<Mask>) -> Self {
        let mut starts = vec![Vec::new(); 256];
        for (mask, found) in masks.iter().enumerate() {
            for (index, pattern) in found.patterns.iter().enumerate() {
                for byte in 0..=u8::MAX {
                    if pattern.can_start(byte) {
                        starts[usize::from(byte)].push((mask, index));
                    }
                }
            }
        }
        Self { masks, starts }
    }

    /// Matches all patterns at the start of `bytes`: the longest echo, or whether more bytes could make one.
    fn match_at(&self, bytes: &[u8], is_end: bool) -> Found<'_> {
        let mut longest: Option<(usize, &Mask)> = None;
        let candidates = self.starts.get(usize::from(bytes[0]));
        for &(mask, pattern) in candidates.into_iter().flatten() {
            let mask = &self.masks[mask];
            match mask.patterns[pattern].match_at(bytes) {
                Outcome::Match(length) if longest.is_none_or(|(most, _)| length > most) => {
                    longest = Some((length, mask));
                }
                Outcome::Incomplete if !is_end => return Found::Undecided,
                _ => {}
            }
        }
        match longest {
            Some((length, mask)) => Found::Echo(length, mask),
            None => Found::Nothing,
        }
    }
}

enum Found<'a> {
    Echo(usize, &'a Mask),
    Undecided,
    Nothing,
}

/// Masks a stream of bytes. It holds bytes back only while they can be the beginning of an echo.
pub struct MaskStream {
    set: Arc<MaskSet>,
    held: Vec<u8>,
    echoes: u64,
}

impl MaskStream {
    /// Takes the next bytes, and returns those that are decided.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.set.masks.is_empty() {
            return bytes.to_vec();
        }
        self.held.extend_from_slice(bytes);
        self.release(false)
    }

    /// Returns the rest after the last piece.
    pub fn finish(&mut self) -> Vec<u8> {
        self.release(true)
    }

    /// Returns the number of echoes so far.
    pub fn echoes(&self) -> u64 {
        self.echoes
    }

    fn release(&mut self, is_end: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len());
        let mut at = 0;
        let mut kept_from = 0;
        while at < self.held.len() {
            match self.set.match_at(&self.held[at..], is_end) {
                Found::Nothing => at += 1,
                Found::Undecided => break,
                Found::Echo(length, mask) => {
                    out.extend_from_slice(&self.held[kept_from..at]);
                    out.extend_from_slice(mask.replacement.as_bytes());
                    self.echoes += 1;
                    at += length;
                    kept_from = at;
                }
            }
        }
        out.extend_from_slice(&self.held[kept_from..at]);
        self.held.drain(..at);
        out
    }
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MaskStream({} echoes)", self.echoes)
    }
}

#[cfg(test)]
mod tests;
