//! Reads a text in one notation. Resolves escapes and skips separators.

use super::pattern::{ByteRole, Notation};
use super::reader::Unit;

/// Maximum number of separators between two units, such as a line break with indentation.
const MAX_SKIPPED: usize = 16;

pub(super) struct WrittenUnit {
    /// The folded byte; `None` if it ends any echo in this notation.
    pub unit: Option<u8>,
    /// The position in the text.
    pub start: usize,
    pub end: usize,
}

/// An iterator over the units of a text. It stops at the end of the text, or before an escape that may continue after
/// it.
pub(super) struct Units<R> {
    read: R,
    at: usize,
    notation: Notation,
    skipped: usize,
    /// The character being read, and the number of its bytes that were returned.
    current: Option<(Unit, usize)>,
}

impl<R: Fn(usize) -> Option<Unit>> Units<R> {
    /// Starts at the position `start`; `read` returns the unit at a position.
    pub(super) fn new(read: R, start: usize, notation: Notation) -> Self {
        Self {
            read,
            at: start,
            notation,
            skipped: 0,
            current: None,
        }
    }

    /// Returns the next byte with its start and end in the text.
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
            let unit = match self.notation.role(byte) {
                ByteRole::Separator if self.skipped < MAX_SKIPPED => {
                    self.skipped += 1;
                    continue;
                }
                ByteRole::Unit(unit) => Some(unit),
                ByteRole::Separator | ByteRole::End => None,
            };
            self.skipped = 0;
            return Some(WrittenUnit { unit, start, end });
        }
    }
}
