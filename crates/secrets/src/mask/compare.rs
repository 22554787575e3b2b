//! Compares a text with patterns, one block of [`BLOCK_BYTES`] of the value at a time.
//!
//! A block is compared in constant time and matches completely or not at all, so neither the output nor the timing
//! reveals how much of a guessed block is right.

use super::pattern::Pattern;
use super::reader::Unit;
use super::units::Units;
use std::ops::Range;
use std::sync::Arc;

/// Block size, in bytes of the value; the last block is up to twice as long. A truncated echo of a longer value is
/// masked up to its last full block. With smaller blocks, an attacker who knows most of a value could guess the rest in
/// two halves.
pub(super) const BLOCK_BYTES: usize = 128;

/// An echo in a text.
pub(super) struct Echo<'a> {
    pub start: usize,
    pub end: usize,
    /// Maximum number of characters on each side that can contain bits of the value.
    pub margin: usize,
    /// The text that replaces the echo.
    pub replacement: &'a Arc<str>,
}

impl Echo<'_> {
    /// Returns the range of the echo, including adjacent characters that can contain bits of the value.
    pub(super) fn with_margin(&self, bytes: &[u8]) -> Range<usize> {
        let is_digit = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        let before = bytes[..self.start].iter().rev().take(self.margin);
        let after = bytes[self.end..].iter().take(self.margin);
        let before = before.take_while(is_digit).count();
        self.start - before..self.end + after.take_while(is_digit).count()
    }
}

/// A position where an echo can start.
pub(super) struct Candidate<'a> {
    pub start: usize,
    /// The patterns whose first units match there. All have the same notation.
    pub patterns: &'a [Arc<Pattern>],
}

impl<'a> Candidate<'a> {
    /// Returns the longest echo that starts at the position; `read` returns the unit at a position.
    pub(super) fn echo(&self, read: &impl Fn(usize) -> Option<Unit>) -> Option<Echo<'a>> {
        let notation = self.patterns.first()?.notation;
        let units = Units::new(read, self.start, notation);
        let mut text = TextPrefix {
            rest: units.map_while(|written| Some((written.unit?, written.end))),
            units: Vec::new(),
            ends: Vec::new(),
        };
        let echoes = self.patterns.iter().filter_map(|pattern| {
            let units = text.matching_units(pattern);
            Some(Echo {
                start: self.start,
                end: *text.ends.get(units.checked_sub(1)?)?,
                margin: pattern.margin,
                replacement: &pattern.replacement,
            })
        });
        echoes.max_by_key(|echo| echo.end)
    }
}

/// The start of a text in one notation, read as far as needed.
struct TextPrefix<R> {
    rest: R,
    units: Vec<u8>,
    /// The end of each unit in the text.
    ends: Vec<usize>,
}

impl<R: Iterator<Item = (u8, usize)>> TextPrefix<R> {
    /// Returns the number of units in the leading blocks that match a pattern.
    fn matching_units(&mut self, pattern: &Pattern) -> usize {
        let mut matched = 0;
        while matched < pattern.units.len() {
            let all = pattern.units.len();
            let is_last = all - matched < 2 * pattern.block;
            let end = if is_last {
                all
            } else {
                matched + pattern.block
            };
            let missing = end.saturating_sub(self.units.len());
            for (unit, written_end) in self.rest.by_ref().take(missing) {
                self.units.push(unit);
                self.ends.push(written_end);
            }
            let Some(block) = self.units.get(matched..end) else {
                break;
            };
            if !is_equal(&pattern.units[matched..end], block) {
                break;
            }
            matched = end;
        }
        matched
    }
}

/// Compares in constant time: always compares all units, even after a difference.
fn is_equal(pattern: &[u8], text: &[u8]) -> bool {
    let units = pattern.iter().zip(text);
    let differences = units.fold(0, |all, (one, other)| all | (one ^ other));
    std::hint::black_box(differences) == 0
}
