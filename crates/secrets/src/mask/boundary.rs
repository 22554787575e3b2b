//! Where a stream can be cut without cutting an echo.
//!
//! This depends on the text and on the [`Shape`] of all values together, never on a value: otherwise a model could try
//! beginnings of a value, and see from what arrives whether one is right.

/// Minimum of the bytes that are held back at most.
pub(super) const LEAST_LIMIT: usize = 6 << 10;

/// Number of bytes that are held back at most for each byte of the longest value or segment: escapes of several layers are shorter.
const BYTES_PER_BYTE: usize = 16;

/// Minimum length of a line of base64 or hexadecimal digits that goes on in the next one.
const LEAST_LINE: usize = 16;

/// What echoes of all values can consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Maximum number of words.
    pub words: usize,
    pub has_non_ascii: bool,
    /// Length of the longest value or segment of one.
    pub length: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            words: 1,
            has_non_ascii: false,
            length: 0,
        }
    }
}

impl Shape {
    /// Covers echoes of a value or segment as well, as it is and without escapes.
    pub fn extend(&mut self, value: &[u8], units: &[u8]) {
        for text in [value, units] {
            let words = text.split(|byte| is_space(*byte));
            let words = words.filter(|word| !word.is_empty()).count();
            self.words = self.words.max(words);
            self.has_non_ascii |= !text.is_ascii();
        }
        self.length = self.length.max(value.len());
    }

    /// Returns how many bytes are held back at most.
    pub fn limit(self) -> usize {
        LEAST_LIMIT.max(self.length * BYTES_PER_BYTE)
    }

    /// Returns the position from which bytes are held back until more of the text is there: an echo that can go on after the
    /// end of `bytes` starts there at the earliest.
    pub fn boundary(self, bytes: &[u8]) -> usize {
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
            let can_cross = words > 0 || goes_on_after_space(previous);
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

/// White space and control characters. Zero bytes stand between the characters of UTF-16.
fn is_space(byte: u8) -> bool {
    (1..=b' ').contains(&byte)
}

/// Returns whether the next word can continue the same base64 text or hexadecimal digits.
fn goes_on_after_space(word: &[u8]) -> bool {
    let is_encoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=:".contains(byte);
    let encoded = word.iter().rev().take_while(|byte| is_encoded(byte));
    // The first digits can stand right after a quote or another sign.
    let last = word.iter().rev();
    let last = last.take_while(|byte| byte.is_ascii_alphanumeric() || b":-".contains(byte));
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || b":-x".contains(byte);
    encoded.count() >= LEAST_LINE || (last.clone().count() >= 2 && last.clone().all(is_hex))
}
