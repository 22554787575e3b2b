//! Finds the positions where echoes can start, in a time that does not depend on the values.
//!
//! A text is read once for each notation, with a rolling hash over its last units. It is compared with a pattern only
//! where the hash equals that of the pattern's first units, so the timing reveals nothing about guesses of fewer bytes.

use super::compare::{Candidate, Echo};
use super::pattern::{MAX_WINDOW, MIN_UNITS, Notation, Pattern};
use super::reader::{self, Unit};
use super::units::{Units, WrittenUnit};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

/// Number of possible window lengths.
const LENGTHS: usize = MAX_WINDOW - MIN_UNITS + 1;

/// Number of bytes to search in one pass.
const SEARCH_BLOCK_BYTES: usize = 16 << 10;

/// Number of bytes to read beyond a block. Most echoes that start in the block end within them.
const LOOKAHEAD_BYTES: usize = 4 << 10;

/// Maximum length of a run of backslashes in which only the first one is searched as the start of an echo.
const MAX_BACKSLASH_RUN: usize = reader::MAX_ESCAPE / 2;

/// The hashes of the first units of all patterns.
#[derive(Clone)]
pub(super) struct Scanner {
    /// A random number for each possible unit.
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
    pub(super) fn insert(&mut self, pattern: Pattern) {
        let units = &pattern.units[..pattern.window];
        let hash = units.iter().fold(0, |hash, unit| self.append(hash, *unit));
        self.windows[pattern.notation as usize].insert(pattern, hash);
    }

    /// Returns the echoes that start in `range`, in order; the longest one at each position.
    pub(super) fn echoes(&self, bytes: &[u8], range: Range<usize>, is_end: bool) -> Vec<Echo<'_>> {
        let mut echoes = Vec::new();
        for block in range.clone().step_by(SEARCH_BLOCK_BYTES) {
            let length = SEARCH_BLOCK_BYTES.min(range.end - block);
            for echo in self.search(&bytes[block..], length, is_end) {
                echoes.push(Echo {
                    start: block + echo.start,
                    end: block + echo.end,
                    ..echo
                });
            }
        }
        echoes
    }

    /// Returns the echoes that start before `limit`.
    fn search(&self, bytes: &[u8], limit: usize, is_end: bool) -> Vec<Echo<'_>> {
        let seen = bytes.len().min(limit + LOOKAHEAD_BYTES);
        // Each escape is read only once, although it can be part of many windows and patterns.
        let units: Vec<_> = (0..seen)
            .map(|at| reader::read(&bytes[at..], is_end))
            .collect();
        let read = |at: usize| match units.get(at) {
            Some(unit) => *unit,
            None => reader::read(bytes.get(at..)?, is_end),
        };
        let candidates = self.candidates(bytes, limit, &read);
        let groups = candidates.chunk_by(|left, right| left.start == right.start);
        let longest = groups.filter_map(|group| {
            let echoes = group.iter().filter_map(|found| found.echo(&read));
            echoes.max_by_key(|echo| echo.end)
        });
        longest.collect()
    }

    /// Returns the positions before `limit` where an echo can start, in order.
    fn candidates(
        &self,
        bytes: &[u8],
        limit: usize,
        read: &impl Fn(usize) -> Option<Unit>,
    ) -> Vec<Candidate<'_>> {
        let mut starts = Vec::new();
        for notation in Notation::ALL {
            let mut window = RollingWindow::new(self, notation);
            for written in Units::new(read, 0, notation) {
                window.push(&written, &mut starts);
                if window.first_open(&written) >= limit {
                    break;
                }
            }
        }
        let mut at = 0;
        while let Some(unit) = read(at).filter(|_| at < limit) {
            let inside = at + 1..at + unit.length();
            for at in inside.filter(|at| !is_inside_run(bytes, *at)) {
                self.add_starts(read, at, &mut starts);
            }
            at += unit.length();
        }
        starts.retain(|found| found.start < limit);
        starts.sort_by_key(|found| found.start);
        starts
    }

    /// Adds the patterns whose echoes can start at one position.
    fn add_starts<'a>(
        &'a self,
        read: &impl Fn(usize) -> Option<Unit>,
        start: usize,
        starts: &mut Vec<Candidate<'a>>,
    ) {
        for notation in Notation::ALL {
            let windows = &self.windows[notation as usize];
            let longest = windows
                .lengths
                .iter()
                .max()
                .map_or(0, |length| *length as usize);
            let units = Units::new(read, start, notation);
            let units = units.map_while(|written| written.unit).take(longest);
            let hashes = units.scan(0, |hash, unit| {
                *hash = self.append(*hash, unit);
                Some(*hash)
            });
            let found = (1..)
                .zip(hashes)
                .filter_map(|(length, hash)| windows.find(length, hash));
            starts.extend(found.map(|patterns| Candidate { start, patterns }));
        }
    }

    fn append(&self, hash: u64, unit: u8) -> u64 {
        hash.rotate_left(1) ^ self.table[usize::from(unit)]
    }
}

/// The patterns of one notation, by the hashes of their windows.
#[derive(Clone)]
struct Windows {
    lengths: Vec<u32>,
    patterns: HashMap<(u32, u64), Vec<Arc<Pattern>>>,
    /// One bit for the first 16 bits of each hash, to avoid most lookups.
    filter: Box<[u64; 1 << 10]>,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            lengths: Vec::new(),
            patterns: HashMap::new(),
            filter: Box::new([0; 1 << 10]),
        }
    }
}

impl Windows {
    fn insert(&mut self, pattern: Pattern, hash: u64) {
        let length = u32::try_from(pattern.window).unwrap_or(u32::MAX);
        if !self.lengths.contains(&length) {
            self.lengths.push(length);
        }
        let patterns = self.patterns.entry((length, hash)).or_default();
        if patterns.iter().all(|known| known.units != pattern.units) {
            patterns.push(Arc::new(pattern));
        }
        let (word, bit) = Self::position(hash);
        self.filter[word] |= bit;
    }

    fn find(&self, length: u32, hash: u64) -> Option<&[Arc<Pattern>]> {
        let (word, bit) = Self::position(hash);
        if self.filter[word] & bit == 0 {
            return None;
        }
        self.patterns.get(&(length, hash)).map(Vec::as_slice)
    }

    fn position(hash: u64) -> (usize, u64) {
        let index = usize::from((hash >> 48) as u16);
        (index / 64, 1 << (index % 64))
    }
}

/// The last units of a text, and the hashes of the windows that end with them.
struct RollingWindow<'a> {
    scanner: &'a Scanner,
    windows: &'a Windows,
    units: [u8; MAX_WINDOW],
    /// The positions of these units in the text.
    starts: [usize; MAX_WINDOW],
    /// Number of units since the last interruption.
    count: usize,
    hashes: [u64; LENGTHS],
}

impl<'a> RollingWindow<'a> {
    fn new(scanner: &'a Scanner, notation: Notation) -> Self {
        Self {
            scanner,
            windows: &scanner.windows[notation as usize],
            units: [0; MAX_WINDOW],
            starts: [0; MAX_WINDOW],
            count: 0,
            hashes: [0; LENGTHS],
        }
    }

    /// Adds the next unit, and appends to `starts` the starts of windows that can be echoes.
    fn push(&mut self, written: &WrittenUnit, starts: &mut Vec<Candidate<'a>>) {
        let Some(unit) = written.unit else {
            self.count = 0;
            self.hashes = [0; LENGTHS];
            return;
        };
        let last = self.count % MAX_WINDOW;
        self.starts[last] = written.start;
        self.count += 1;
        for (hash, length) in self.hashes.iter_mut().zip(&self.windows.lengths) {
            *hash = self.scanner.append(*hash, unit);
            let units = *length as usize;
            if self.count > units {
                let gone = self.units[(self.count - units - 1) % MAX_WINDOW];
                *hash ^= self.scanner.table[usize::from(gone)].rotate_left(*length);
            }
            if self.count >= units
                && let Some(patterns) = self.windows.find(*length, *hash)
            {
                let start = self.starts[(self.count - units) % MAX_WINDOW];
                starts.push(Candidate { start, patterns });
            }
        }
        self.units[last] = unit;
    }

    /// Returns the start of the first window that the next unit can complete.
    fn first_open(&self, last: &WrittenUnit) -> usize {
        match self.count {
            0 => last.end,
            count if count < MAX_WINDOW => self.starts[0],
            count => self.starts[(count + 1) % MAX_WINDOW],
        }
    }
}

fn is_inside_run(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev().take(MAX_BACKSLASH_RUN);
    let run = before.take_while(|byte| **byte == b'\\').count();
    bytes[at] == b'\\' && (1..MAX_BACKSLASH_RUN).contains(&run)
}
