//! All patterns of all values, and the search for them.
//!
//! A filter by two bytes finds where an echo can start. From there a [`Walk`] reads the text unit by unit, and narrows the
//! sorted patterns to those that agree so far. After [`ECHO_UNITS`] units it is an echo, and as much as the rest of the value
//! is removed with it, whatever it is: to compare it would tell how much of a guess is right. So the work for each byte of a
//! text is bounded, whatever the text.

use super::boundary::Shape;
use super::pattern::{Notation, Pattern};
use super::reader;
use crate::value::SecretValue;
use std::ops::Range;
use std::sync::Arc;

/// Number of units that make an echo of a longer value.
pub(super) const ECHO_UNITS: usize = 64;

/// Maximum number of bytes between two units, such as a line break and an indentation.
const MOST_SKIPPED: usize = 16;

/// Number of backslashes before one at which no echo starts: the search started at the first one of them.
const RUN: usize = reader::MOST_ESCAPE / 2;

#[derive(Clone)]
pub(super) struct MaskSet {
    values: Vec<Arc<SecretValue>>,
    /// The patterns by notation, sorted by their units.
    patterns: [Vec<Arc<Pattern>>; Notation::ALL.len()],
    /// The pairs of bytes that can be the first and second byte of an echo.
    starts: PairFilter,
    /// The pairs that can be its second and third byte.
    follows: PairFilter,
    /// The units that an echo can start with.
    firsts: [bool; 256],
    shape: Shape,
}

impl Default for MaskSet {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            patterns: Default::default(),
            starts: PairFilter::default(),
            follows: PairFilter::default(),
            firsts: [false; 256],
            shape: Shape::default(),
        }
    }
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
            self.firsts[usize::from(pattern.units[0])] = true;
            self.starts.insert(&pattern, 0);
            self.follows.insert(&pattern, 1);
            let patterns = &mut self.patterns[pattern.notation as usize];
            let at = patterns.partition_point(|other| other.order(&pattern).is_lt());
            patterns.insert(at, Arc::new(pattern));
        }
    }

    /// Returns the first position from `at` on where an echo can start.
    pub fn candidate(&self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(&first) = bytes.get(at) {
            let can_start = match &bytes[at + 1..] {
                _ if reader::can_escape(first) => !is_inside_run(bytes, at),
                [second, third, ..] => {
                    self.starts.contains(first, *second) && self.follows.contains(*second, *third)
                }
                [second] => self.starts.contains(first, *second),
                [] => true,
            };
            if can_start {
                break;
            }
            at += 1;
        }
        at
    }

    /// Searches for an echo at the start of `bytes`. Returns its walk as well if the rest of its value can follow.
    pub fn match_at(&self, bytes: &[u8], is_end: bool) -> Option<(Echo, Option<Walk>)> {
        let first = reader::read(bytes, is_end)?.bytes()[0];
        for notation in Notation::ALL {
            if !self.firsts[usize::from(notation.fold(first))] {
                continue;
            }
            let mut walk = Walk::new(notation, self);
            let progress = walk.read(self, bytes, is_end);
            if let Some(echo) = walk.echo.clone() {
                let is_open = walk.depth >= ECHO_UNITS && matches!(progress, Progress::Cut);
                return Some((echo, is_open.then_some(walk)));
            }
        }
        None
    }

    fn patterns(&self, notation: Notation) -> &[Arc<Pattern>] {
        &self.patterns[notation as usize]
    }
}

/// A set of pairs of bytes, one bit each.
#[derive(Clone)]
struct PairFilter(Box<[u64; 1 << 10]>);

impl Default for PairFilter {
    fn default() -> Self {
        Self(Box::new([0; 1 << 10]))
    }
}

impl PairFilter {
    /// Adds the pairs of bytes that a pattern can have at `index` and after it.
    fn insert(&mut self, pattern: &Pattern, index: usize) {
        for first in (0..=u8::MAX).filter(|first| pattern.can_have(index, *first)) {
            for second in 0..=u8::MAX {
                if pattern.is_loose(index, first) || pattern.can_have(index + 1, second) {
                    let (word, bit) = Self::position(first, second);
                    self.0[word] |= bit;
                }
            }
        }
    }

    fn contains(&self, first: u8, second: u8) -> bool {
        let (word, bit) = Self::position(first, second);
        self.0[word] & bit != 0
    }

    fn position(first: u8, second: u8) -> (usize, u64) {
        let index = usize::from(first) << 8 | usize::from(second);
        (index / 64, 1 << (index % 64))
    }
}

/// The beginning of a text that is an echo.
#[derive(Clone)]
pub(super) struct Echo {
    pub length: usize,
    pub replacement: Arc<str>,
}

pub(super) enum Progress {
    /// The bytes ended before the patterns did.
    Cut,
    /// No pattern goes on.
    Ended,
}

/// The comparison of a text with all patterns of one notation.
pub(super) struct Walk {
    notation: Notation,
    /// The patterns that agree so far.
    range: Range<usize>,
    /// The number of units that agree.
    depth: usize,
    /// The position after these units.
    pub end: usize,
    /// The longest echo so far.
    echo: Option<Echo>,
}

impl Walk {
    fn new(notation: Notation, set: &MaskSet) -> Self {
        Self {
            notation,
            range: 0..set.patterns(notation).len(),
            depth: 0,
            end: 0,
            echo: None,
        }
    }

    /// Goes on at `end` in `bytes`.
    pub fn read(&mut self, set: &MaskSet, bytes: &[u8], is_end: bool) -> Progress {
        let patterns = set.patterns(self.notation);
        let mut at = self.end;
        while self.can_go_on(patterns) {
            let Some(unit) = reader::read(&bytes[at..], is_end) else {
                return if is_end {
                    Progress::Ended
                } else {
                    Progress::Cut
                };
            };
            at += unit.length;
            if self.depth >= ECHO_UNITS {
                self.remove(unit.bytes(), at);
            } else if self.take(patterns, unit.bytes(), at) {
                self.end = at;
            } else if !self.can_skip(unit.bytes()[0], at) {
                return Progress::Ended;
            }
        }
        Progress::Ended
    }

    /// Returns whether one of the patterns is longer.
    fn can_go_on(&self, patterns: &[Arc<Pattern>]) -> bool {
        let mut agreed = patterns[self.range.clone()].iter();
        agreed.any(|pattern| pattern.units.len() > self.depth)
    }

    /// Takes a unit after the first [`ECHO_UNITS`] into the echo, whatever it is.
    fn remove(&mut self, bytes: &[u8], end: usize) {
        if !self.notation.can_skip(bytes[0], self.depth) {
            self.depth += bytes.len();
        }
        self.end = end;
        if let Some(echo) = &mut self.echo {
            echo.length = end;
        }
    }

    fn can_skip(&self, byte: u8, at: usize) -> bool {
        self.depth > 0
            && !self.range.is_empty()
            && at - self.end <= MOST_SKIPPED
            && self.notation.can_skip(byte, self.depth)
    }

    /// Compares the bytes of a unit that ends at `end`. Returns whether a pattern agrees.
    fn take(&mut self, patterns: &[Arc<Pattern>], bytes: &[u8], end: usize) -> bool {
        for byte in bytes {
            let byte = Some(self.notation.fold(*byte));
            let depth = self.depth;
            let agreed = &patterns[self.range.clone()];
            let unit = |pattern: &Arc<Pattern>| pattern.units.get(depth).copied();
            let first = agreed.partition_point(|pattern| unit(pattern) < byte);
            let count = agreed[first..].partition_point(|pattern| unit(pattern) == byte);
            if count == 0 {
                return false;
            }
            let start = self.range.start + first;
            self.range = start..start + count;
            self.depth += 1;
            self.note_echo(&patterns[start], end);
        }
        true
    }

    fn note_echo(&mut self, first: &Pattern, end: usize) {
        if self.depth == ECHO_UNITS || self.depth == first.units.len() {
            self.echo = Some(Echo {
                length: end,
                replacement: Arc::clone(&first.replacement),
            });
        }
    }
}

fn is_inside_run(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev().take(RUN);
    let run = before.take_while(|byte| **byte == b'\\').count();
    bytes[at] == b'\\' && (1..RUN).contains(&run)
}
