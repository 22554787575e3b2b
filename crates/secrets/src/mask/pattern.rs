//! One way in which a value can be written.
//!
//! A pattern is a list of units. Between and before units the matcher skips what an encoding may put there (backslashes,
//! line breaks in base64); each unit then matches its byte as it is or escaped. So any mixture of escapes is found.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

/// Minimum length of the part of a base64 text that depends on the value alone.
const LEAST_BASE64: usize = 6;

/// Maximum number of skipped bytes before one unit.
const MOST_SKIPPED: usize = 16;

/// Maximum length of a numeric HTML entity, such as `&#x00000061;`.
const MOST_ENTITY: usize = 12;

/// The result of matching a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It matches this number of bytes.
    Match(usize),
    /// The bytes ended before it was decided.
    Incomplete,
    /// It does not match.
    Different,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    /// The characters of the value.
    Plain,
    /// base64 and base64url: `+` equals `-`, `/` equals `_`, and lines may be broken.
    Base64,
    /// Hexadecimal digits in either case, with separators between bytes.
    Hex,
}

pub(super) struct Pattern {
    alphabet: Alphabet,
    units: Zeroizing<Vec<char>>,
}

impl Pattern {
    /// Returns all patterns of a value.
    pub fn all(value: &[u8]) -> Vec<Self> {
        let mut patterns = vec![Self::plain(value), Self::hex(value)];
        patterns.extend((0..3).filter_map(|shift| Self::base64(value, shift)));
        patterns.retain(|pattern| !pattern.units.is_empty());
        patterns
    }

    fn plain(value: &[u8]) -> Self {
        let text = std::str::from_utf8(value);
        let units = match text {
            // Backslashes are skipped in what is read, so they are left out here as well.
            Ok(text) => text.chars().filter(|unit| *unit != '\\').collect(),
            Err(_) => value.iter().map(|byte| char::from(*byte)).collect(),
        };
        Self {
            alphabet: Alphabet::Plain,
            units: Zeroizing::new(units),
        }
    }

    fn hex(value: &[u8]) -> Self {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
        let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
        Self {
            alphabet: Alphabet::Hex,
            units: Zeroizing::new(value.iter().flat_map(digits).collect()),
        }
    }

    /// The part of a base64 text that depends only on the value, when `shift` bytes of other text precede it in a group of
    /// three.
    fn base64(value: &[u8], shift: usize) -> Option<Self> {
        let mut bytes = Zeroizing::new(vec![0; shift]);
        bytes.extend_from_slice(value);
        let text = Zeroizing::new(STANDARD_NO_PAD.encode(&*bytes));
        // A character has 6 bits: the first ones contain bits of what precedes, the last one of what follows.
        let first = (shift * 8).div_ceil(6);
        let last = bytes.len() * 8 / 6;
        let units: Vec<char> = text.get(first..last)?.chars().collect();
        (units.len() >= LEAST_BASE64).then(|| Self {
            alphabet: Alphabet::Base64,
            units: Zeroizing::new(units),
        })
    }

    /// Returns whether an echo can start with this byte.
    pub fn can_start(&self, byte: u8) -> bool {
        // Skipped bytes never start an echo: the match would start later as well.
        !matches!(byte, b'\\' | b'\r' | b'\n' | b' ' | b':')
            && !matches!(self.unit_at(0, &[byte]), Outcome::Different)
            || byte == b'\\' && self.alphabet == Alphabet::Plain
            || self.first_is(byte)
    }

    fn first_is(&self, byte: u8) -> bool {
        self.units
            .first()
            .is_some_and(|unit| *unit == char::from(byte))
    }

    pub fn match_at(&self, bytes: &[u8]) -> Outcome {
        let mut at = 0;
        for index in 0..self.units.len() {
            match self.unit_at(index, &bytes[at..]) {
                Outcome::Match(length) => at += length,
                other => return other,
            }
        }
        Outcome::Match(at)
    }

    /// Matches one unit with what may be skipped before it.
    fn unit_at(&self, index: usize, bytes: &[u8]) -> Outcome {
        let unit = self.units[index];
        let mut skipped = 0;
        loop {
            let rest = &bytes[skipped..];
            let Some(&next) = rest.first() else {
                return Outcome::Incomplete;
            };
            match self.match_unit(unit, rest, skipped > 0) {
                Outcome::Match(length) => return Outcome::Match(skipped + length),
                Outcome::Incomplete => return Outcome::Incomplete,
                Outcome::Different => {}
            }
            if !self.can_skip(index, next, skipped) || skipped == MOST_SKIPPED {
                return Outcome::Different;
            }
            skipped += 1;
        }
    }

    fn can_skip(&self, index: usize, byte: u8, skipped: usize) -> bool {
        match (self.alphabet, byte) {
            // An echo starts with its first unit, or with the backslash of an escape.
            (_, b'\\') => true,
            (Alphabet::Plain, _) => false,
            _ if index == 0 => false,
            (_, b'\r' | b'\n') => true,
            // `\x61\x62`, `\nYWJj` inside a JSON text.
            (Alphabet::Hex, b'x') | (_, b'n' | b'r') => skipped > 0,
            (Alphabet::Hex, b':' | b' ' | b'-') => index.is_multiple_of(2),
            (Alphabet::Base64, b' ' | b'\t') => true,
            _ => false,
        }
    }

    fn match_unit(&self, unit: char, bytes: &[u8], is_escaped: bool) -> Outcome {
        let raw = self.match_raw(unit, bytes);
        if raw != Outcome::Different {
            return raw;
        }
        match bytes[0] {
            b'%' => self.match_percent(unit, bytes),
            b'&' => self.match_entity(unit, bytes),
            b'+' if unit == ' ' => Outcome::Match(1),
            b'u' if is_escaped => self.match_unicode(unit, bytes),
            b'n' if is_escaped && unit == '\n' => Outcome::Match(1),
            b'r' if is_escaped && unit == '\r' => Outcome::Match(1),
            b't' if is_escaped && unit == '\t' => Outcome::Match(1),
            _ => Outcome::Different,
        }
    }

    fn match_raw(&self, unit: char, bytes: &[u8]) -> Outcome {
        if unit.is_ascii() || std::str::from_utf8(bytes.get(..1).unwrap_or_default()).is_ok() {
            return if self.is_same(unit, char::from(bytes[0])) && bytes[0].is_ascii() {
                Outcome::Match(1)
            } else {
                Outcome::Different
            };
        }
        let mut buffer = [0; 4];
        let encoded = unit.encode_utf8(&mut buffer).as_bytes();
        if bytes.starts_with(encoded) {
            return Outcome::Match(encoded.len());
        }
        // A value that is no text has one unit for each byte.
        if u32::from(unit) == u32::from(bytes[0]) {
            return Outcome::Match(1);
        }
        if encoded.starts_with(bytes) {
            return Outcome::Incomplete;
        }
        Outcome::Different
    }

    fn is_same(&self, unit: char, found: char) -> bool {
        match self.alphabet {
            Alphabet::Plain => unit == found,
            Alphabet::Hex => unit == found.to_ascii_lowercase(),
            Alphabet::Base64 => unit == standard(found),
        }
    }

    /// Matches `%61`, also `%2561` and deeper.
    fn match_percent(&self, unit: char, bytes: &[u8]) -> Outcome {
        let mut start = 1;
        while bytes[start..].starts_with(b"25") && start < MOST_SKIPPED && unit != '%' {
            start += 2;
        }
        let mut buffer = [0; 4];
        let encoded = unit.encode_utf8(&mut buffer).as_bytes();
        let mut at = start;
        for (index, expected) in encoded.iter().enumerate() {
            if index > 0 {
                match bytes.get(at) {
                    None => return Outcome::Incomplete,
                    Some(b'%') => at += 1,
                    Some(_) => return Outcome::Different,
                }
            }
            let Some(digits) = bytes.get(at..at + 2) else {
                return incomplete_digits(&bytes[at..]);
            };
            let found = std::str::from_utf8(digits).ok();
            let found = found.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let is_same = match found {
                Some(found) if encoded.len() == 1 => self.is_same(unit, char::from(found)),
                found => found == Some(*expected),
            };
            if !is_same {
                return Outcome::Different;
            }
            at += 2;
        }
        Outcome::Match(at)
    }

    /// Matches `u0061` after a backslash.
    fn match_unicode(&self, unit: char, bytes: &[u8]) -> Outcome {
        let mut buffer = [0; 2];
        let mut at = 0;
        for (index, expected) in unit.encode_utf16(&mut buffer).iter().enumerate() {
            while index > 0 && bytes.get(at) == Some(&b'\\') {
                at += 1;
            }
            let Some(escape) = bytes.get(at..at + 5) else {
                return incomplete_digits(bytes.get(at + 1..).unwrap_or_default());
            };
            let digits = std::str::from_utf8(&escape[1..]).ok();
            let found = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
            let is_same = match found {
                Some(found) if unit.is_ascii() => {
                    char::from_u32(found.into()).is_some_and(|found| self.is_same(unit, found))
                }
                found => found == Some(*expected),
            };
            if escape[0] != b'u' || !is_same {
                return Outcome::Different;
            }
            at += 5;
        }
        Outcome::Match(at)
    }

    /// Matches `&amp;`, `&#38;` and `&#x26;`.
    fn match_entity(&self, unit: char, bytes: &[u8]) -> Outcome {
        let within = &bytes[..bytes.len().min(MOST_ENTITY)];
        let Some(end) = within.iter().position(|byte| *byte == b';') else {
            let could_be = within.iter().skip(1);
            let could_be = could_be
                .into_iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
            return if could_be && within.len() < MOST_ENTITY {
                Outcome::Incomplete
            } else {
                Outcome::Different
            };
        };
        let name = std::str::from_utf8(&bytes[1..end]).unwrap_or_default();
        let found = match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => numeric_entity(name),
        };
        if found.is_some_and(|found| self.is_same(unit, found)) {
            Outcome::Match(end + 1)
        } else {
            Outcome::Different
        }
    }
}

fn numeric_entity(name: &str) -> Option<char> {
    let number = name.strip_prefix('#')?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code)
}

fn incomplete_digits(digits: &[u8]) -> Outcome {
    if digits.iter().all(u8::is_ascii_hexdigit) {
        Outcome::Incomplete
    } else {
        Outcome::Different
    }
}

/// Returns the character of the standard base64 alphabet.
fn standard(found: char) -> char {
    match found {
        '-' => '+',
        '_' => '/',
        other => other,
    }
}
