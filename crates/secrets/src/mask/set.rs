//! All patterns of all values, and the comparison of a text with them.
//!
//! A [`Scanner`] finds where an echo can start. There as many units are read as a pattern has, [`ECHO_UNITS`] at most, and all
//! of them are compared. If they agree it is an echo, and as much as the rest of a longer value is removed with it, whatever it
//! is: to compare it would tell how much of a guess is right.

use super::boundary::Shape;
use super::pattern::{Notation, Pattern};
use super::reader;
use super::scan::Scanner;
use super::units::Units;
use crate::value::SecretValue;
use std::ops::Range;
use std::sync::Arc;

/// Number of units that make an echo of a longer value.
pub(super) const ECHO_UNITS: usize = 64;

#[derive(Clone, Default)]
pub(super) struct MaskSet {
    values: Vec<Arc<SecretValue>>,
    patterns: [Vec<Arc<Pattern>>; Notation::ALL.len()],
    scanner: Scanner,
    shape: Shape,
}

impl MaskSet {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn contains(&self, value: &[u8]) -> bool {
        self.values.iter().any(|known| known.expose() == value)
    }

    pub fn insert(&mut self, name: &str, value: &[u8]) {
        self.values.push(Arc::new(SecretValue::new(value)));
        self.shape.extend(reader::prefix(value, ECHO_UNITS));
        let replacement = format!("[secret {name}]").into();
        for pattern in Pattern::all(value, &replacement) {
            self.scanner.insert(&pattern);
            self.patterns[pattern.notation as usize].push(Arc::new(pattern));
        }
    }

    /// Returns the positions in `range` where an echo can start, in order.
    pub fn candidates(&self, bytes: &[u8], range: Range<usize>, is_end: bool) -> Vec<usize> {
        self.scanner.candidates(bytes, range, is_end)
    }

    /// Returns the longest echo that starts at `start`.
    pub fn echo_at(&self, bytes: &[u8], start: usize, is_end: bool) -> Option<Echo> {
        Notation::ALL.into_iter().find_map(|notation| {
            let read = |at: usize| reader::read(&bytes[at..], is_end);
            let units = Units::new(read, start, notation);
            let units = units.map_while(|written| Some((written.unit?, written.end)));
            let (units, ends): (Vec<u8>, Vec<usize>) = units.take(ECHO_UNITS).unzip();
            let patterns = self.patterns[notation as usize].iter();
            let agreed = patterns.filter(|pattern| is_equal(compared(pattern), &units));
            let longest = agreed.max_by_key(|pattern| pattern.units.len())?;
            let compared = compared(longest).len();
            Some(Echo {
                end: ends[compared - 1],
                replacement: Arc::clone(&longest.replacement),
                rest: Rest {
                    notation,
                    units: longest.units.len() - compared,
                },
            })
        })
    }
}

/// A part of a text that is an echo.
pub(super) struct Echo {
    pub end: usize,
    pub replacement: Arc<str>,
    pub rest: Rest,
}

/// The rest of a long value: what is removed after the units that make the echo.
pub(super) struct Rest {
    notation: Notation,
    units: usize,
}

impl Rest {
    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// Takes away from the rest what `bytes` have from `start` on, and returns the position after it.
    pub fn remove(&mut self, bytes: &[u8], start: usize, is_end: bool) -> usize {
        let mut end = start;
        let read = |at: usize| reader::read(&bytes[at..], is_end);
        let written = Units::new(read, start, self.notation);
        for written in written.take(self.units) {
            self.units -= 1;
            end = written.end;
        }
        end
    }
}

/// The units of a pattern that decide.
fn compared(pattern: &Pattern) -> &[u8] {
    &pattern.units[..pattern.units.len().min(ECHO_UNITS)]
}

/// Compares all units, whichever differ, so that the time is the same.
fn is_equal(pattern: &[u8], text: &[u8]) -> bool {
    let differences = pattern.iter().zip(text);
    let differences = differences.fold(0, |all, (one, other)| all | (one ^ other));
    pattern.len() <= text.len() && std::hint::black_box(differences) == 0
}
