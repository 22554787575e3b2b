//! The notations of a value: as it is, in base64 (once or twice), in hexadecimal digits, or in hexadecimal digits of
//! base64. Escapes are handled by the reader.

use super::compare::BLOCK_BYTES;
use super::reader;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Minimum length of a pattern. Shorter ones would mask ordinary text.
pub(super) const MIN_UNITS: usize = 6;

/// Maximum size of a segment. Longer values are masked segment by segment.
const SEGMENT_BYTES: usize = 512;

const OVERLAP_BYTES: usize = 16;

/// Minimum length of a word inside a value for the word to be masked on its own too.
const MIN_WORD: usize = 24;

/// Number of bytes of a value that the search hashes.
const WINDOW_BYTES: usize = 16;

/// Maximum number of units that the search hashes: those of [`WINDOW_BYTES`] bytes in the longest notation.
pub(super) const MAX_WINDOW: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// The bytes of the value. HTML forms write a space as `+`.
    Plain,
    /// base64 and base64url, possibly with line breaks and indentation.
    Base64,
    /// Hexadecimal digits in either case, with separators between bytes.
    Hex,
}

impl Notation {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Base64, Self::Hex];

    /// Returns the role of a byte in this notation.
    pub(super) fn role(self, byte: u8) -> ByteRole {
        ROLES[self as usize][usize::from(byte)]
    }

    const fn find_role(self, byte: u8) -> ByteRole {
        match (self, byte) {
            // UTF-16 has a zero byte next to each ASCII character.
            (_, 0) => ByteRole::Separator,
            (Self::Plain, b'+') => ByteRole::Unit(b' '),
            // The backslash and the letter of `\n` may come from different layers of escapes.
            (Self::Plain, b'\n') => ByteRole::Unit(b'n'),
            (Self::Plain, b'\r') => ByteRole::Unit(b'r'),
            (Self::Plain, b'\t') => ByteRole::Unit(b't'),
            (Self::Plain, 8) => ByteRole::Unit(b'b'),
            (Self::Plain, 12) => ByteRole::Unit(b'f'),
            (Self::Plain, byte) => ByteRole::Unit(byte),
            (Self::Base64, b'\r' | b'\n' | b' ' | b'\t') => ByteRole::Separator,
            (Self::Base64, b'-') => ByteRole::Unit(b'+'),
            (Self::Base64, b'_') => ByteRole::Unit(b'/'),
            (Self::Base64, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/') => {
                ByteRole::Unit(byte)
            }
            (Self::Hex, b'\r' | b'\n' | b' ' | b':' | b'-' | b'x') => ByteRole::Separator,
            (Self::Hex, b'A'..=b'F' | b'a'..=b'f' | b'0'..=b'9') => {
                ByteRole::Unit(byte.to_ascii_lowercase())
            }
            (Self::Base64 | Self::Hex, _) => ByteRole::End,
        }
    }
}

/// The role of a byte in a notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteRole {
    /// Part of a value, folded: bytes with the same meaning become the same unit.
    Unit(u8),
    /// May occur between two units.
    Separator,
    /// Ends any echo.
    End,
}

static ROLES: [[ByteRole; 256]; Notation::ALL.len()] = {
    let mut roles = [[ByteRole::End; 256]; Notation::ALL.len()];
    let mut notation = 0;
    while notation < Notation::ALL.len() {
        let mut byte = 0;
        while byte < 256 {
            roles[notation][byte] = Notation::ALL[notation].find_role(byte as u8);
            byte += 1;
        }
        notation += 1;
    }
    roles
};

/// A value in one notation.
pub(super) struct Pattern {
    pub notation: Notation,
    /// The folded bytes, without escapes.
    pub units: Zeroizing<Vec<u8>>,
    /// Number of units that are compared as one block: those of [`BLOCK_BYTES`] bytes of the value, or all.
    pub block: usize,
    /// Number of units that the search hashes: those of [`WINDOW_BYTES`] bytes of the value, or all.
    pub window: usize,
    /// Maximum number of characters on each side of an echo that can contain bits of the value.
    pub margin: usize,
    /// The text that replaces an echo.
    pub replacement: Arc<str>,
}

impl Pattern {
    /// Returns all patterns of a segment of a value.
    pub(super) fn all(value: &[u8], replacement: &Arc<str>) -> Vec<Self> {
        let mut patterns = Self::of_bytes(value, replacement);
        if let Ok(text) = std::str::from_utf8(value)
            && !text.is_ascii()
        {
            // Many servers decode headers as Latin-1 and write the resulting characters as UTF-8.
            let misread: Zeroizing<String> = value
                .iter()
                .copied()
                .map(char::from)
                .collect::<String>()
                .into();
            patterns.extend(Self::of_bytes(misread.as_bytes(), replacement));
            // For these characters UTF-16 is Latin-1 with zero bytes, which are separators.
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
            units.retain(|unit| notation.role(*unit) != ByteRole::Separator);
            for unit in units.iter_mut() {
                if let ByteRole::Unit(folded) = notation.role(*unit) {
                    *unit = folded;
                }
            }
            let units_of = |bytes: usize| (units.len() * bytes).div_ceil(value.len());
            let (block, window) = (units_of(BLOCK_BYTES), units_of(WINDOW_BYTES));
            Self {
                notation,
                block: block.min(units.len()),
                window: window.clamp(MIN_UNITS.min(units.len()), units.len().min(MAX_WINDOW)),
                units,
                margin,
                replacement: Arc::clone(replacement),
            }
        });
        patterns
            .filter(|pattern| pattern.units.len() >= MIN_UNITS)
            .collect()
    }
}

/// Returns the segments of a value. They overlap, so that no notation has an unmasked character between two of them.
pub(super) fn segments(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let step = SEGMENT_BYTES - OVERLAP_BYTES;
    let last = value.len().saturating_sub(SEGMENT_BYTES);
    let starts = (0..last).step_by(step).chain([last]);
    starts.map(|start| &value[start..value.len().min(start + SEGMENT_BYTES)])
}

/// Returns the long words of a text. They make the lines of a PEM key recognizable whatever their indentation and line
/// ends.
pub(super) fn long_words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = text.split(u8::is_ascii_whitespace);
    words.filter(|word| word.len() >= MIN_WORD)
}

/// Returns the texts in a value that is JSON, such as a service account key, except addresses. A server may echo them
/// in another order, or with different white space.
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

/// Returns the value with escapes resolved, in the same way in which texts are read. Leaves out an unfinished escape at
/// the end, because in a text the following characters would become part of it.
fn plain(value: &[u8]) -> Zeroizing<Vec<u8>> {
    let closed = read_all(value, false);
    if closed.len() < MIN_UNITS {
        read_all(value, true)
    } else {
        closed
    }
}

fn read_all(value: &[u8], is_end: bool) -> Zeroizing<Vec<u8>> {
    // The result is never longer than the value, so the vector is never reallocated and leaves no copy in memory.
    let mut units = Zeroizing::new(Vec::with_capacity(value.len()));
    let mut at = 0;
    while let Some(unit) = reader::read(&value[at..], is_end) {
        units.extend_from_slice(unit.bytes());
        at += unit.length();
    }
    units
}

fn hex(value: &[u8]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(base16ct::lower::encode_string(value).into_bytes())
}

/// Returns the base64 texts of a value at each of the three alignments.
fn alignments(value: &[u8]) -> [Zeroizing<Vec<u8>>; 3] {
    [0, 1, 2].map(|shift| base64(value, shift))
}

/// Returns the part of a base64 text that depends only on the value, if `shift` bytes of other text precede it in a
/// group of three.
fn base64(value: &[u8], shift: usize) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(shift + value.len()));
    bytes.resize(shift, 0);
    bytes.extend_from_slice(value);
    let text = Zeroizing::new(STANDARD_NO_PAD.encode(&*bytes));
    // A character encodes 6 bits. The first characters contain bits of the preceding text, the last one bits of the
    // following text.
    let first = (shift * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    Zeroizing::new(
        text.as_bytes()
            .get(first..last)
            .unwrap_or_default()
            .to_vec(),
    )
}
