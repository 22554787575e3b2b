//! The notations of a value: as it is, in base64 once or twice, in hexadecimal digits, in hexadecimal digits of base64.
//! Escapes are the reader's part.

use super::compare::BLOCK_BYTES;
use super::reader;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Minimum length of a pattern. A shorter one would mask ordinary text.
pub(super) const LEAST_UNITS: usize = 6;

/// Maximum number of bytes of a value that are masked as one.
const SEGMENT_BYTES: usize = 512;

const OVERLAP_BYTES: usize = 16;

/// Minimum length of a word that is masked on its own.
const LEAST_WORD: usize = 24;

/// Number of bytes of a value that the search looks for.
const WINDOW_BYTES: usize = 16;

/// Maximum number of units that the search looks for: those of [`WINDOW_BYTES`] bytes in the longest notation.
pub(super) const MOST_WINDOW: usize = 64;

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

    /// Returns what a byte stands for.
    pub fn meaning(self, byte: u8) -> Meaning {
        MEANINGS[self as usize][usize::from(byte)]
    }

    const fn find_meaning(self, byte: u8) -> Meaning {
        match (self, byte) {
            // UTF-16 has a zero byte beside each ASCII character.
            (_, 0) => Meaning::Separator,
            (Self::Plain, b'+') => Meaning::Unit(b' '),
            // The backslash of `\n` may have come from another layer than the letter.
            (Self::Plain, b'\n') => Meaning::Unit(b'n'),
            (Self::Plain, b'\r') => Meaning::Unit(b'r'),
            (Self::Plain, b'\t') => Meaning::Unit(b't'),
            (Self::Plain, 8) => Meaning::Unit(b'b'),
            (Self::Plain, 12) => Meaning::Unit(b'f'),
            (Self::Plain, byte) => Meaning::Unit(byte),
            (Self::Base64, b'\r' | b'\n' | b' ' | b'\t') => Meaning::Separator,
            (Self::Base64, b'-') => Meaning::Unit(b'+'),
            (Self::Base64, b'_') => Meaning::Unit(b'/'),
            (Self::Base64, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/') => {
                Meaning::Unit(byte)
            }
            (Self::Hex, b'\r' | b'\n' | b' ' | b':' | b'-' | b'x') => Meaning::Separator,
            (Self::Hex, b'A'..=b'F' | b'a'..=b'f' | b'0'..=b'9') => {
                Meaning::Unit(byte.to_ascii_lowercase())
            }
            (Self::Base64 | Self::Hex, _) => Meaning::End,
        }
    }
}

/// What a byte stands for in a notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The one form of bytes that stand for the same.
    Unit(u8),
    /// It may stand between two units.
    Separator,
    /// No echo goes on after it.
    End,
}

static MEANINGS: [[Meaning; 256]; Notation::ALL.len()] = {
    let mut meanings = [[Meaning::End; 256]; Notation::ALL.len()];
    let mut notation = 0;
    while notation < Notation::ALL.len() {
        let mut byte = 0;
        while byte < 256 {
            meanings[notation][byte] = Notation::ALL[notation].find_meaning(byte as u8);
            byte += 1;
        }
        notation += 1;
    }
    meanings
};

/// One notation of a value.
pub(super) struct Pattern {
    pub notation: Notation,
    /// The folded bytes, without escapes.
    pub units: Zeroizing<Vec<u8>>,
    /// Number of units that are compared at once: those of [`BLOCK_BYTES`] bytes of the value, or all.
    pub block: usize,
    /// Number of units that the search looks for: those of [`WINDOW_BYTES`] bytes of the value, or all.
    pub window: usize,
    /// Maximum number of characters on each side of an echo that can have bits of the value.
    pub margin: usize,
    /// The text that replaces an echo.
    pub replacement: Arc<str>,
}

impl Pattern {
    /// Returns all patterns of a segment of a value.
    pub fn all(value: &[u8], replacement: &Arc<str>) -> Vec<Self> {
        let mut patterns = Self::of_bytes(value, replacement);
        if let Ok(text) = std::str::from_utf8(value)
            && !text.is_ascii()
        {
            // Many servers read a header as Latin-1, and write the characters that come out in UTF-8.
            let misread: Zeroizing<String> = value
                .iter()
                .copied()
                .map(char::from)
                .collect::<String>()
                .into();
            patterns.extend(Self::of_bytes(misread.as_bytes(), replacement));
            // UTF-16 is this with zero bytes.
            let latin1 = text.chars().map(|letter| u8::try_from(letter).ok());
            if let Some(latin1) = latin1.collect::<Option<Vec<u8>>>() {
                patterns.extend(Self::of_bytes(&Zeroizing::new(latin1), replacement));
            } else {
                for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                    let utf16: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
                    patterns.extend(Self::of_bytes(&Zeroizing::new(utf16), replacement));
                }
            }
        }
        patterns
    }

    fn of_bytes(value: &[u8], replacement: &Arc<str>) -> Vec<Self> {
        let mut written = vec![
            (Notation::Plain, plain(value), 0),
            (Notation::Hex, hex(value), 0),
        ];
        for once in alignments(value) {
            let twice = alignments(&once).map(|twice| (Notation::Base64, twice, 3));
            written.extend(twice);
            written.push((Notation::Hex, hex(&once), 2));
            written.push((Notation::Base64, once, 1));
        }
        let patterns = written.into_iter().map(|(notation, mut units, margin)| {
            units.retain(|unit| notation.meaning(*unit) != Meaning::Separator);
            for unit in units.iter_mut() {
                if let Meaning::Unit(folded) = notation.meaning(*unit) {
                    *unit = folded;
                }
            }
            let units_of = |bytes: usize| (units.len() * bytes).div_ceil(value.len());
            let (block, window) = (units_of(BLOCK_BYTES), units_of(WINDOW_BYTES));
            Self {
                notation,
                block: block.min(units.len()),
                window: window.clamp(LEAST_UNITS.min(units.len()), units.len().min(MOST_WINDOW)),
                units,
                margin,
                replacement: Arc::clone(replacement),
            }
        });
        patterns
            .filter(|pattern| pattern.units.len() >= LEAST_UNITS)
            .collect()
    }
}

/// Returns the segments of a value. They overlap, so that no character is left between two of them in any notation.
pub(super) fn segments(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let step = SEGMENT_BYTES - OVERLAP_BYTES;
    let last = value.len().saturating_sub(SEGMENT_BYTES);
    let starts = (0..last).step_by(step).chain([last]);
    starts.map(|start| &value[start..value.len().min(start + SEGMENT_BYTES)])
}

/// Returns the long words of a text: the lines of a PEM key are found however they are indented and ended.
pub(super) fn long_words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = text.split(u8::is_ascii_whitespace);
    words.filter(|word| word.len() >= LEAST_WORD)
}

/// Returns the texts in a value that is JSON, such as the key of a service account, without addresses: a server writes them in
/// another order, or with other white space.
pub(super) fn json_texts(value: &[u8]) -> Vec<Zeroizing<String>> {
    let mut texts = Vec::new();
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_slice(value) {
        collect_texts(value, &mut texts);
    }
    texts
}

fn collect_texts(value: Value, texts: &mut Vec<Zeroizing<String>>) {
    match value {
        Value::String(text) => {
            let text = Zeroizing::new(text);
            if !text.contains("://") && !text.contains('@') {
                texts.push(text);
            }
        }
        Value::Array(items) => items
            .into_iter()
            .for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields
            .into_iter()
            .for_each(|(_, item)| collect_texts(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
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
        at += unit.length();
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
