//! Reads one byte of meaning from text that may be escaped for URLs, HTML or JSON, in any order and several times over.
//!
//! Values and texts are read in the same way, so an echo compares equal whatever mixture of escapes it went through. Each
//! escape is read to the end: `%2561`, `&#37;61` and `\\u0061` are all `a`. A run of backslashes counts as one, because
//! each layer of JSON doubles it.

/// Maximum length of one escape in bytes, with all its layers. A longer one is read as it is written.
pub(super) const MOST_ESCAPE: usize = 64;

/// Maximum number of digits of a numeric HTML entity.
const MOST_DIGITS: usize = 8;

/// Named HTML entities of characters that HTML itself uses.
const ENTITIES: [(&[u8], u8); 5] = [
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"quot", b'"'),
    (b"apos", b'\''),
];

/// The meaning of one byte or escape, up to four bytes of UTF-8.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    bytes: [u8; 4],
    count: u8,
    /// The length of its written form.
    length: u8,
}

impl Unit {
    /// Returns the bytes that it means.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.count)]
    }

    /// Returns the length of its written form.
    pub fn length(&self) -> usize {
        usize::from(self.length)
    }
}

/// Returns whether a byte can start an escape.
pub(super) fn can_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'&' | b'\\')
}

/// Reads the first unit of `bytes`. Returns `None` if it can continue after their end and `is_end` is false.
pub(super) fn read(bytes: &[u8], is_end: bool) -> Option<Unit> {
    let first = *bytes.first()?;
    if !can_escape(first) {
        return Some(raw(first));
    }
    let reader = Reader {
        is_end: is_end || bytes.len() >= MOST_ESCAPE,
        bytes: &bytes[..bytes.len().min(MOST_ESCAPE)],
    };
    match reader.code(0) {
        Ok(Some((code, end))) => Some(reader.unit(code, end)?),
        Ok(None) => Some(raw(first)),
        Err(Cut) => None,
    }
}

fn raw(byte: u8) -> Unit {
    Unit {
        bytes: [byte, 0, 0, 0],
        count: 1,
        length: 1,
    }
}

/// The text ended inside of an escape and may go on.
struct Cut;

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

/// Returns what a letter means after a backslash.
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
type Step = Result<Option<(Code, usize)>, Cut>;

struct Reader<'a> {
    bytes: &'a [u8],
    is_end: bool,
}

impl Reader<'_> {
    /// Reads the code at a position. Every byte is read once at most, as all parts of an escape follow each other.
    fn code(&self, at: usize) -> Step {
        let Some((mut code, mut end)) = self.first(at)? else {
            return Ok(None);
        };
        // A backslash of `\u005c` stands before a whole code, other ones before the rest of their run.
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

    /// Reads the code at a position up to a backslash.
    fn first(&self, at: usize) -> Step {
        match self.bytes.get(at) {
            Some(byte) => Ok(Some(self.peel(Code::Byte(*byte), at + 1)?)),
            None if self.is_end => Ok(None),
            None => Err(Cut),
        }
    }

    /// Goes on from a code as long as it starts an escape of a URL or of HTML.
    fn peel(&self, mut code: Code, mut end: usize) -> Result<(Code, usize), Cut> {
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
    fn percent(&self, at: usize) -> Step {
        let digits = self.digits(at, 2)?;
        Ok(digits.map(|(value, end)| (Code::Byte(u8::try_from(value).unwrap_or(b'%')), end)))
    }

    /// Reads the name or number after a `&`, and the semicolon.
    fn entity(&self, at: usize) -> Step {
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
                    let meaning = ENTITIES.iter().find(is_named);
                    return Ok(meaning.map(|(_, byte)| (Code::Byte(*byte), end)));
                }
                Some(byte) if length < name.len() => name[length] = byte,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn numeric_entity(&self, at: usize) -> Step {
        let mut radix = 10;
        let mut value: u32 = 0;
        let mut digits = 0;
        let mut end = at;
        while let Some((next, after)) = self.code(end)? {
            let byte = next.byte().unwrap_or_default();
            end = after;
            match char::from(byte).to_digit(radix) {
                Some(digit) if digits < MOST_DIGITS => {
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
    fn digits(&self, at: usize, count: usize) -> Result<Option<(u32, usize)>, Cut> {
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

    /// Encodes a code, the first half of a surrogate pair together with the second.
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
                Err(Cut) => return None,
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

/// The length of an escape, which is [`MOST_ESCAPE`] at most.
fn written_length(length: usize) -> u8 {
    u8::try_from(length).unwrap_or(u8::MAX)
}
