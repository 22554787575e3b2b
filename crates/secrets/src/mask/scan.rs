//! Finds where an echo can start, in a time that does not depend on the values.
//!
//! A text is read once for each notation, with a rolling hash over its last units. Only where the hash is that of the first
//! units of a pattern is the text compared, so the time it takes tells nothing about guesses that are shorter than that.

use super::pattern::{LEAST_UNITS, Notation, Pattern};
use super::reader::{self, Unit};
use super::units::{Units, WrittenUnit};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of units in a window.
const MOST_UNITS: usize = 16;

/// Number of possible window lengths.
const LENGTHS: usize = MOST_UNITS - LEAST_UNITS + 1;

/// Number of bytes to search at once.
const BLOCK: usize = 16 << 10;

/// Number of bytes after a block in which a window that starts in it ends.
const LOOKAHEAD: usize = 2 << 10;

/// Number of backslashes before one at which no echo starts: the search started at the first one of them.
const RUN: usize = reader::MOST_ESCAPE / 2;

/// The hashes of the first units of all patterns.
#[derive(Clone)]
pub(super) struct Scanner {
    /// A random number for each unit.
    table: Arc<[u64; 256]>,
    windows: [Windows; Notation::ALL.len()],
}

impl Default for Scanner {
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            table: Arc::new(std::array::from_fn(|unit| random.hash_one(unit))),
            windows: Default::default(),
        }
    }
}

impl Scanner {
    pub fn insert(&mut self, pattern: &Pattern) {
        let units = &pattern.units[..pattern.units.len().min(MOST_UNITS)];
        let hash = units.iter().fold(0, |hash, unit| self.append(hash, *unit));
        self.windows[pattern.notation as usize].insert(units.len(), hash);
    }

    /// Returns the positions in `range` where an echo can start, in order.
    pub fn candidates(&self, bytes: &[u8], range: Range<usize>, is_end: bool) -> Vec<usize> {
        let mut candidates = Vec::new();
        for block in range.clone().step_by(BLOCK) {
            let length = BLOCK.min(range.end - block);
            let seen = bytes.len().min(block + length + LOOKAHEAD);
            let is_end = is_end && seen == bytes.len();
            let starts = self.search(&bytes[block..seen], length, is_end);
            candidates.extend(starts.into_iter().map(|start| block + start));
        }
        candidates
    }

    /// Returns the positions before `limit` where an echo can start, in order.
    fn search(&self, bytes: &[u8], limit: usize, is_end: bool) -> Vec<usize> {
        let units: Vec<_> = (0..bytes.len())
            .map(|at| reader::read(&bytes[at..], is_end))
            .collect();
        let mut starts = Vec::new();
        for notation in Notation::ALL {
            let mut lane = Lane::new(self, notation);
            for written in Units::new(|at| *units.get(at)?, 0, notation) {
                lane.push(&written, &mut starts);
                if lane.first_open(&written) >= limit {
                    break;
                }
            }
        }
        let mut at = 0;
        while let Some(Some(unit)) = units.get(at).filter(|_| at < limit) {
            let inside = at + 1..at + unit.length();
            let inside = inside.filter(|at| !is_inside_run(bytes, *at));
            starts.extend(inside.filter(|at| self.can_start(&units, *at)));
            at += unit.length();
        }
        starts.retain(|start| *start < limit);
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    fn can_start(&self, units: &[Option<Unit>], start: usize) -> bool {
        Notation::ALL.into_iter().any(|notation| {
            let units = Units::new(|at| *units.get(at)?, start, notation);
            let units = units.map_while(|written| written.unit).take(MOST_UNITS);
            let hashes = units.scan(0, |hash, unit| {
                *hash = self.append(*hash, unit);
                Some(*hash)
            });
            let windows = &self.windows[notation as usize];
            (1..)
                .zip(hashes)
                .any(|(length, hash)| windows.contains(length, hash))
        })
    }

    fn append(&self, hash: u64, unit: u8) -> u64 {
        hash.rotate_left(1) ^ self.table[usize::from(unit)]
    }
}

/// The hashes of the windows of one notation.
#[derive(Clone)]
struct Windows {
    lengths: Vec<u32>,
    hashes: HashSet<(u32, u64)>,
    /// One bit for the first 16 bits of each hash, so that few hashes are looked up.
    filter: Box<[u64; 1 << 10]>,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            lengths: Vec::new(),
            hashes: HashSet::new(),
            filter: Box::new([0; 1 << 10]),
        }
    }
}

impl Windows {
    fn insert(&mut self, length: usize, hash: u64) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        if !self.lengths.contains(&length) {
            self.lengths.push(length);
        }
        self.hashes.insert((length, hash));
        let (word, bit) = Self::position(hash);
        self.filter[word] |= bit;
    }

    fn contains(&self, length: u32, hash: u64) -> bool {
        let (word, bit) = Self::position(hash);
        self.filter[word] & bit != 0 && self.hashes.contains(&(length, hash))
    }

    fn position(hash: u64) -> (usize, u64) {
        let index = usize::from((hash >> 48) as u16);
        (index / 64, 1 << (index % 64))
    }
}

/// The last units of a text, and the hashes of the windows that end with them.
struct Lane<'a> {
    scanner: &'a Scanner,
    windows: &'a Windows,
    units: [u8; MOST_UNITS],
    /// Where these units start in the text.
    starts: [usize; MOST_UNITS],
    /// Number of units since the last interruption.
    count: usize,
    hashes: [u64; LENGTHS],
}

impl<'a> Lane<'a> {
    fn new(scanner: &'a Scanner, notation: Notation) -> Self {
        Self {
            scanner,
            windows: &scanner.windows[notation as usize],
            units: [0; MOST_UNITS],
            starts: [0; MOST_UNITS],
            count: 0,
            hashes: [0; LENGTHS],
        }
    }

    /// Takes the next unit, and adds the starts of the windows that can be echoes.
    fn push(&mut self, written: &WrittenUnit, starts: &mut Vec<usize>) {
        let Some(unit) = written.unit else {
            self.count = 0;
            self.hashes = [0; LENGTHS];
            return;
        };
        let last = self.count % MOST_UNITS;
        self.starts[last] = written.start;
        self.count += 1;
        for (hash, length) in self.hashes.iter_mut().zip(&self.windows.lengths) {
            *hash = self.scanner.append(*hash, unit);
            let units = *length as usize;
            if self.count > units {
                let gone = self.units[(self.count - units - 1) % MOST_UNITS];
                *hash ^= self.scanner.table[usize::from(gone)].rotate_left(*length);
            }
            if self.count >= units && self.windows.contains(*length, *hash) {
                starts.push(self.starts[(self.count - units) % MOST_UNITS]);
            }
        }
        self.units[last] = unit;
    }

    /// Returns where the first window starts that the next unit can complete.
    fn first_open(&self, last: &WrittenUnit) -> usize {
        match self.count {
            0 => last.end,
            count if count < MOST_UNITS => self.starts[0],
            count => self.starts[(count + 1) % MOST_UNITS],
        }
    }
}

fn is_inside_run(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev().take(RUN);
    let run = before.take_while(|byte| **byte == b'\\').count();
    bytes[at] == b'\\' && (1..RUN).contains(&run)
}
