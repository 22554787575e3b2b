//! Where a stream can be cut without cutting an echo.
//!
//! This depends on the text and on the [`Shape`] of all values together, never on a value: otherwise a model could try
//! beginnings of a value, and see from what arrives whether one is right.

/// Maximum number of bytes to hold back: more than an echo has when each of its characters is escaped several times.
pub(super) const MOST_HELD: usize = 6 << 10;

/// Minimum length of a line of base64 or hexadecimal digits that goes on in the next one.
const LEAST_LINE: usize = 40;

/// What echoes of all values can consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Maximum number of words.
    pub words: usize,
    pub has_non_ascii: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            words: 1,
            has_non_ascii: false,
        }
    }
}

impl Shape {
    /// Covers echoes that start with these bytes as well.
    pub fn extend(&mut self, start: &[u8]) {
        let words = start.split(|byte| is_space(*byte));
        let words = words.filter(|word| !word.is_empty()).count();
        self.words = self.words.max(words);
        self.has_non_ascii |= !start.is_ascii();
    }

    /// Returns the position from which bytes are held back until more of the text is there: an echo that can go on after the
    /// end of `bytes` starts there at the earliest.
    pub fn boundary(self, bytes: &[u8]) -> usize {
        let floor = bytes.len().saturating_sub(MOST_HELD);
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
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit() || b":-x".contains(byte);
    encoded.count() >= LEAST_LINE || (word.len() >= 2 && word.iter().all(is_hex))
}
