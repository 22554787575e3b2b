//! The notations of a value: as it is, in base64 once or twice, in hexadecimal digits, in hexadecimal digits of base64.
//! Escapes are the reader's part.

use super::reader;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::cmp::Ordering;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Minimum length of a pattern. A shorter one would mask ordinary text.
pub(super) const LEAST_UNITS: usize = 6;

/// The notation of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// The bytes of the value. A form writes a space as `+`.
    Plain,
    /// base64 and base64url. Lines may be broken and indented.
    Base64,
    /// Hexadecimal digits in either case, with separators between bytes.
    Hex,
}

impl Notation {
    pub const ALL: [Self; 3] = [Self::Plain, Self::Base64, Self::Hex];

    /// Returns the one form of bytes that stand for the same.
    pub fn fold(self, byte: u8) -> u8 {
        match (self, byte) {
            (Self::Plain, b'+') => b' ',
            // The backslash of `\n` may have come from another layer than the letter.
            (Self::Plain, b'\n') => b'n',
            (Self::Plain, b'\r') => b'r',
            (Self::Plain, b'\t') => b't',
            (Self::Plain, 8) => b'b',
            (Self::Plain, 12) => b'f',
            (Self::Base64, b'-') => b'+',
            (Self::Base64, b'_') => b'/',
            (Self::Hex, byte) => byte.to_ascii_lowercase(),
            _ => byte,
        }
    }

    /// Returns whether a byte may stand between the units before and after `depth`.
    pub fn can_skip(self, byte: u8, depth: usize) -> bool {
        match self {
            // UTF-16 has a zero byte beside each ASCII character.
            _ if byte == 0 => true,
            Self::Plain => false,
            Self::Base64 => matches!(byte, b'\r' | b'\n' | b' ' | b'\t'),
            Self::Hex => {
                depth.is_multiple_of(2) && matches!(byte, b'\r' | b'\n' | b' ' | b':' | b'-' | b'x')
            }
        }
    }
}

/// One notation of a value.
pub(super) struct Pattern {
    pub notation: Notation,
    /// The folded bytes, without escapes.
    pub units: Zeroizing<Vec<u8>>,
    /// The text that replaces an echo.
    pub replacement: Arc<str>,
}

impl Pattern {
    /// Returns all patterns of a value.
    pub fn all(value: &[u8], replacement: &Arc<str>) -> Vec<Self> {
        let mut written = vec![(Notation::Plain, plain(value)), (Notation::Hex, hex(value))];
        for once in alignments(value) {
            let twice = alignments(&once).map(|twice| (Notation::Base64, twice));
            written.extend(twice);
            written.push((Notation::Hex, hex(&once)));
            written.push((Notation::Base64, once));
        }
        let patterns = written.into_iter().map(|(notation, mut units)| {
            units
                .iter_mut()
                .for_each(|unit| *unit = notation.fold(*unit));
            Self {
                notation,
                units,
                replacement: Arc::clone(replacement),
            }
        });
        patterns
            .filter(|pattern| pattern.units.len() >= LEAST_UNITS)
            .collect()
    }

    /// Returns whether the byte at `index` of an echo can be this one. The first one is no escape.
    pub fn can_have(&self, index: usize, byte: u8) -> bool {
        self.notation.fold(byte) == self.units[index] || self.is_loose(index, byte)
    }

    /// Returns whether a byte at `index` says nothing about the next one.
    pub fn is_loose(&self, index: usize, byte: u8) -> bool {
        index > 0 && (reader::can_escape(byte) || self.notation.can_skip(byte, 0))
    }

    pub fn order(&self, other: &Self) -> Ordering {
        self.units.cmp(&other.units)
    }
}

/// The value without escapes, as a text with its echo is read. An escape that is open at its end is left out, as what
/// follows in a text would become part of it.
fn plain(value: &[u8]) -> Zeroizing<Vec<u8>> {
    let closed = read_all(value, false);
    if closed.len() < LEAST_UNITS {
        read_all(value, true)
    } else {
        closed
    }
}

fn read_all(value: &[u8], is_end: bool) -> Zeroizing<Vec<u8>> {
    // No reading is longer than what was read, so the vector never moves and leaves no copy.
    let mut units = Zeroizing::new(Vec::with_capacity(value.len()));
    let mut at = 0;
    while let Some(unit) = reader::read(&value[at..], is_end) {
        units.extend_from_slice(unit.bytes());
        at += unit.length;
    }
    units
}

fn hex(value: &[u8]) -> Zeroizing<Vec<u8>> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    let mut units = Zeroizing::new(Vec::with_capacity(value.len() * 2));
    units.extend(value.iter().flat_map(digits));
    units
}

/// The base64 texts of a value at each of the three alignments.
fn alignments(value: &[u8]) -> [Zeroizing<Vec<u8>>; 3] {
    [0, 1, 2].map(|shift| base64(value, shift))
}

/// The part of a base64 text that depends only on the value, when `shift` bytes of other text precede it in a group of
/// three.
fn base64(value: &[u8], shift: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(shift + value.len()));
    bytes.resize(shift, 0);
    bytes.extend_from_slice(value);
    let text = Zeroizing::new(STANDARD_NO_PAD.encode(&*bytes));
    // A character has 6 bits: the first ones contain bits of what precedes, the last one of what follows.
    let first = (shift * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    Zeroizing::new(
        text.as_bytes()
            .get(first..last)
            .unwrap_or_default()
            .to_vec(),
    )
}
