//! Reads a text in one notation: escapes resolved, separators skipped.

use super::pattern::{Meaning, Notation};
use super::reader::Unit;

/// Maximum number of bytes between two units, such as a line break and an indentation.
const MOST_SKIPPED: usize = 16;

/// A unit of a text.
pub(super) struct WrittenUnit {
    /// The folded byte; `None` if no echo in this notation goes on here.
    pub unit: Option<u8>,
    /// Where it starts in the text.
    pub start: usize,
    pub end: usize,
}

/// The units of a text. It ends where the text ends, or inside of an escape that can go on after that.
pub(super) struct Units<R> {
    read: R,
    at: usize,
    notation: Notation,
    skipped: usize,
    /// The character being read, and how many of its bytes are.
    current: Option<(Unit, usize)>,
}

impl<R: Fn(usize) -> Option<Unit>> Units<R> {
    /// Reads from `start` on; `read` returns the unit at a position.
    pub fn new(read: R, start: usize, notation: Notation) -> Self {
        Self {
            read,
            at: start,
            notation,
            skipped: 0,
            current: None,
        }
    }

    /// The next byte with its start and end.
    #[inline]
    fn byte(&mut self) -> Option<(u8, usize, usize)> {
        let (unit, index) = match self.current.take() {
            Some(current) => current,
            None => {
                let unit = (self.read)(self.at)?;
                self.at += unit.length();
                (unit, 0)
            }
        };
        if index + 1 < unit.bytes().len() {
            self.current = Some((unit, index + 1));
        }
        Some((unit.bytes()[index], self.at - unit.length(), self.at))
    }
}

impl<R: Fn(usize) -> Option<Unit>> Iterator for Units<R> {
    type Item = WrittenUnit;

    #[inline]
    fn next(&mut self) -> Option<WrittenUnit> {
        loop {
            let (byte, start, end) = self.byte()?;
            let unit = match self.notation.meaning(byte) {
                Meaning::Separator if self.skipped < MOST_SKIPPED => {
                    self.skipped += 1;
                    continue;
                }
                Meaning::Unit(unit) => Some(unit),
                Meaning::Separator | Meaning::End => None,
            };
            self.skipped = 0;
            return Some(WrittenUnit { unit, start, end });
        }
    }
}
