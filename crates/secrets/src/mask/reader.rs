//! Reads single characters from text that may be escaped for URLs, HTML or JSON, in any order and several times.
//!
//! Values and texts are read in the same way, so an echo compares equal whatever mixture of escapes was applied to it.
//! Nested escapes are resolved completely: `%2561`, `&#37;61` and `\\u0061` are all `a`. A run of backslashes counts as
//! one, because each layer of JSON doubles it.

/// Maximum length of an escape with all its layers, in bytes. A longer escape is not resolved.
pub(super) const MAX_ESCAPE: usize = 64;

/// Maximum number of digits of a numeric HTML entity.
const MAX_DIGITS: usize = 8;

/// The named HTML entities of characters with a meaning in HTML.
const ENTITIES: [(&[u8], u8); 5] = [
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"quot", b'"'),
    (b"apos", b'\''),
];

/// A byte, or the character of an escape as up to four bytes of UTF-8.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    bytes: [u8; 4],
    count: u8,
    /// The length in the text, in bytes.
    length: u8,
}

impl Unit {
    /// Returns the bytes with escapes resolved.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.count)]
    }

    /// Returns the length in the text, in bytes.
    pub(super) fn length(&self) -> usize {
        usize::from(self.length)
    }
}

/// Returns whether a byte can start an escape.
pub(super) fn can_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'&' | b'\\')
}

/// Reads the first unit of `bytes`. Returns `None` if `bytes` is empty, or if the unit may continue after its end and
/// `is_end` is false.
pub(super) fn read(bytes: &[u8], is_end: bool) -> Option<Unit> {
    let first = *bytes.first()?;
    if !can_escape(first) {
        return Some(raw(first));
    }
    let reader = Reader {
        is_end: is_end || bytes.len() >= MAX_ESCAPE,
        bytes: &bytes[..bytes.len().min(MAX_ESCAPE)],
    };
    match reader.code(0) {
        Ok(Some((code, end))) => Some(reader.unit(code, end)?),
        Ok(None) => Some(raw(first)),
        Err(IncompleteEscape) => None,
    }
}

fn raw(byte: u8) -> Unit {
    Unit {
        bytes: [byte, 0, 0, 0],
        count: 1,
        length: 1,
    }
}

/// The text ended inside an escape, and more text may follow.
struct IncompleteEscape;

/// A byte of the text, or the character of an escape.
#[derive(Debug, Clone, Copy)]
enum Code {
    Byte(u8),
    /// A code point above ASCII, or half of a surrogate pair.
    Point(u32),
}

impl Code {
    fn of(point: u32) -> Self {
        match u8::try_from(point) {
            Ok(byte) if byte.is_ascii() => Self::Byte(byte),
            _ => Self::Point(point),
        }
    }

    fn byte(self) -> Option<u8> {
        match self {
            Self::Byte(byte) => Some(byte),
            Self::Point(_) => None,
        }
    }
}

/// Returns the character for a letter after a backslash.
fn control(code: Code) -> Code {
    match code {
        Code::Byte(b'n') => Code::Byte(b'\n'),
        Code::Byte(b'r') => Code::Byte(b'\r'),
        Code::Byte(b't') => Code::Byte(b'\t'),
        Code::Byte(b'b') => Code::Byte(8),
        Code::Byte(b'f') => Code::Byte(12),
        other => other,
    }
}

/// A code and the position after it; `None` if the text does not have the expected form.
type ReadResult = Result<Option<(Code, usize)>, IncompleteEscape>;

struct Reader<'a> {
    bytes: &'a [u8],
    is_end: bool,
}

impl Reader<'_> {
    /// Reads the code at a position. Every byte is read at most once, because the parts of an escape are consecutive.
    fn code(&self, at: usize) -> ReadResult {
        let Some((mut code, mut end)) = self.first(at)? else {
            return Ok(None);
        };
        // A backslash from `\u005c` is followed by a complete code, other backslashes by the rest of their run.
        let mut is_escaped = false;
        while let Code::Byte(b'\\') = code {
            let next = if is_escaped {
                self.code(end)?
            } else {
                self.first(end)?
            };
            let Some((next, after)) = next else {
                break;
            };
            (code, end) = match next {
                Code::Byte(b'\\') => (code, after),
                Code::Byte(b'u') => match self.digits(after, 4)? {
                    Some((value, after)) => {
                        is_escaped = true;
                        self.peel(Code::of(value), after)?
                    }
                    None => (next, after),
                },
                _ => return Ok(Some((control(next), after))),
            };
        }
        Ok(Some((code, end)))
    }

    /// Reads the code at a position without resolving backslashes.
    fn first(&self, at: usize) -> ReadResult {
        match self.bytes.get(at) {
            Some(byte) => Ok(Some(self.peel(Code::Byte(*byte), at + 1)?)),
            None if self.is_end => Ok(None),
            None => Err(IncompleteEscape),
        }
    }

    /// Resolves URL and HTML escapes repeatedly, as long as the resulting character starts another escape.
    fn peel(&self, mut code: Code, mut end: usize) -> Result<(Code, usize), IncompleteEscape> {
        loop {
            let escape = match code {
                Code::Byte(b'%') => self.percent(end)?,
                Code::Byte(b'&') => self.entity(end)?,
                _ => None,
            };
            match escape {
                Some(inner) => (code, end) = inner,
                None => return Ok((code, end)),
            }
        }
    }

    /// Reads the two digits after a `%`.
    fn percent(&self, at: usize) -> ReadResult {
        let digits = self.digits(at, 2)?;
        Ok(digits.map(|(value, end)| (Code::Byte(u8::try_from(value).unwrap_or(b'%')), end)))
    }

    /// Reads the name or number after a `&`, and the semicolon.
    fn entity(&self, at: usize) -> ReadResult {
        let Some((first, mut end)) = self.code(at)? else {
            return Ok(None);
        };
        if first.byte() == Some(b'#') {
            return self.numeric_entity(end);
        }
        let mut name = [first.byte().unwrap_or_default(), 0, 0, 0];
        for length in 1..=name.len() {
            if !ENTITIES
                .iter()
                .any(|(known, _)| known.starts_with(&name[..length]))
            {
                return Ok(None);
            }
            let Some((next, after)) = self.code(end)? else {
                return Ok(None);
            };
            end = after;
            match next.byte() {
                Some(b';') => {
                    let is_named = |(known, _): &&(&[u8], u8)| *known == &name[..length];
                    let role = ENTITIES.iter().find(is_named);
                    return Ok(role.map(|(_, byte)| (Code::Byte(*byte), end)));
                }
                Some(byte) if length < name.len() => name[length] = byte,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn numeric_entity(&self, at: usize) -> ReadResult {
        let mut radix = 10;
        let mut value: u32 = 0;
        let mut digits = 0;
        let mut end = at;
        while let Some((next, after)) = self.code(end)? {
            let byte = next.byte().unwrap_or_default();
            end = after;
            match char::from(byte).to_digit(radix) {
                Some(digit) if digits < MAX_DIGITS => {
                    value = value.saturating_mul(radix).saturating_add(digit);
                    digits += 1;
                }
                None if digits == 0 && radix == 10 && matches!(byte, b'x' | b'X') => radix = 16,
                None if digits > 0 && byte == b';' => return Ok(Some((Code::of(value), end))),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Reads hexadecimal digits.
    fn digits(&self, at: usize, count: usize) -> Result<Option<(u32, usize)>, IncompleteEscape> {
        let mut value = 0;
        let mut end = at;
        for _ in 0..count {
            let Some((code, after)) = self.code(end)? else {
                return Ok(None);
            };
            let digit = code.byte().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Ok(None);
            };
            value = value * 16 + digit;
            end = after;
        }
        Ok(Some((value, end)))
    }

    /// Encodes a code as UTF-8. Combines the first half of a surrogate pair with the second.
    fn unit(&self, code: Code, end: usize) -> Option<Unit> {
        let point = match code {
            Code::Byte(byte) => {
                return Some(Unit {
                    length: written_length(end),
                    ..raw(byte)
                });
            }
            Code::Point(point) => point,
        };
        let mut whole = (point, end);
        if (0xD800..0xDC00).contains(&point) {
            match self.code(end) {
                Ok(Some((Code::Point(low), after))) if (0xDC00..0xE000).contains(&low) => {
                    whole = (0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00), after);
                }
                Err(IncompleteEscape) => return None,
                Ok(_) => {}
            }
        }
        let (point, length) = whole;
        let letter = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
        let mut bytes = [0; 4];
        let count = letter.encode_utf8(&mut bytes).len();
        Some(Unit {
            bytes,
            count: u8::try_from(count).unwrap_or(4),
            length: written_length(length),
        })
    }
}

/// Converts the length of an escape, which is at most [`MAX_ESCAPE`].
fn written_length(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}
