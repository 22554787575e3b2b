//! Finds the position where a stream can be cut without cutting an echo.
//!
//! The position depends only on the text and on the [`EchoShape`] of all values together, never on a single value.
//! Otherwise a model could guess the start of a value, and see from the output whether the guess is right.

/// Lower bound of [`EchoShape::limit`].
pub(super) const MIN_LIMIT: usize = 6 << 10;

/// Maximum number of bytes to hold back for each byte of the longest value or segment. Even several layers of escapes
/// are shorter.
const HELD_BYTES_PER_BYTE: usize = 16;

/// Minimum length of a line of base64 or hexadecimal digits that may continue on the next line.
const MIN_LINE: usize = 16;

/// Properties that the echoes of all values share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EchoShape {
    /// Maximum number of words.
    pub words: usize,
    pub has_non_ascii: bool,
    /// Length of the longest value, or of the longest segment of a value.
    pub length: usize,
}

impl Default for EchoShape {
    fn default() -> Self {
        Self {
            words: 1,
            has_non_ascii: false,
            length: 0,
        }
    }
}

impl EchoShape {
    /// Extends the shape to cover the echoes of another value or segment, both as it is and with escapes resolved.
    pub(super) fn extend(&mut self, value: &[u8], units: &[u8]) {
        for text in [value, units] {
            let words = text.split(|byte| is_space(*byte));
            let words = words.filter(|word| !word.is_empty()).count();
            self.words = self.words.max(words);
            self.has_non_ascii |= !text.is_ascii();
        }
        self.length = self.length.max(value.len());
    }

    /// Returns the maximum number of bytes to hold back.
    pub(super) fn limit(self) -> usize {
        MIN_LIMIT.max(self.length * HELD_BYTES_PER_BYTE)
    }

    /// Returns the position from which bytes must be held back until more text arrives. No echo that starts before this
    /// position can continue after the end of `bytes`.
    pub(super) fn boundary(self, bytes: &[u8]) -> usize {
        let floor = bytes.len().saturating_sub(self.limit());
        let mut words = self.words;
        let mut end = bytes.len();
        loop {
            let word = self.word(&bytes[floor..end]);
            let start = end - word.len();
            let spaces = bytes[floor..start].iter().rev();
            let previous_end = start - spaces.take_while(|byte| is_space(**byte)).count();
            let previous = self.word(&bytes[floor..previous_end]);
            words = words.saturating_sub(1);
            let can_cross = words > 0 || continues_after_space(previous);
            if previous_end == start || previous.is_empty() || !can_cross {
                return start;
            }
            end = previous_end;
        }
    }

    /// Returns the word at the end of `bytes`.
    fn word(self, bytes: &[u8]) -> &[u8] {
        let letters = bytes.iter().rev();
        let letters = letters.take_while(|byte| self.is_in_word(**byte));
        &bytes[bytes.len() - letters.count()..]
    }

    fn is_in_word(self, byte: u8) -> bool {
        !is_space(byte) && (self.has_non_ascii || byte.is_ascii())
    }
}

/// Returns whether a byte is white space or a control character. A zero byte is not, because it occurs between the
/// characters of UTF-16.
fn is_space(byte: u8) -> bool {
    (1..=b' ').contains(&byte)
}

/// Returns whether the next word can continue the same base64 text or hexadecimal digits.
fn continues_after_space(word: &[u8]) -> bool {
    let is_encoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=:".contains(byte);
    let encoded = word.iter().rev().take_while(|byte| is_encoded(byte));
    // The first digits can follow directly after a quote or another punctuation mark.
    let last = word.iter().rev();
    let last = last.take_while(|byte| byte.is_ascii_alphanumeric() || b":-".contains(byte));
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || b":-x".contains(byte);
    encoded.count() >= MIN_LINE || (last.clone().count() >= 2 && last.clone().all(is_hex))
}
