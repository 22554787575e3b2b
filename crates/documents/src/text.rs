//! Bytes as text: UTF-8, UTF-16 with its mark, else Latin-1, which is what old files mostly are.

use std::borrow::Cow;

/// How much is looked at to tell text from something else.
const LOOKED_AT: usize = 64 * 1024;

/// The text of bytes in Unicode: UTF-8, or UTF-16 with its mark.
pub fn decode_unicode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => return Some(String::from_utf8_lossy(rest)),
        [0xff, 0xfe, rest @ ..] => return Some(utf16(rest, u16::from_le_bytes).into()),
        [0xfe, 0xff, rest @ ..] => return Some(utf16(rest, u16::from_be_bytes).into()),
        _ => {}
    }
    let start = &bytes[..bytes.len().min(LOOKED_AT)];
    if start.contains(&0) {
        return None;
    }
    str::from_utf8(bytes).ok().map(Cow::from)
}

/// The text, in whatever encoding it is, or why it is none.
pub fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    let binary = || Err("it is not text".to_owned());
    if let Some(text) = decode_unicode(bytes) {
        return Ok(text);
    }
    let start = &bytes[..bytes.len().min(LOOKED_AT)];
    if start.contains(&0) {
        return binary();
    }
    let is_odd = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    if start.iter().filter(is_odd).count() * 100 > start.len() {
        return binary();
    }
    Ok(bytes.iter().map(|byte| char::from(*byte)).collect())
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (units, _) = bytes.as_chunks::<2>();
    let units = units.iter().map(|bytes| unit(*bytes));
    char::decode_utf16(units)
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
