//! Decodes bytes as text: UTF-8, UTF-16 with a byte order mark, or else Latin-1, the most common encoding of old files.

use std::borrow::Cow;

/// Number of bytes to examine to distinguish text from binary data.
const SNIFFED_BYTES: usize = 64 * 1024;

/// Decodes UTF-8, or UTF-16 with a byte order mark. Returns `None` for anything else.
pub fn decode_unicode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => return Some(String::from_utf8_lossy(rest)),
        [0xff, 0xfe, rest @ ..] => return Some(utf16(rest, u16::from_le_bytes).into()),
        [0xfe, 0xff, rest @ ..] => return Some(utf16(rest, u16::from_be_bytes).into()),
        _ => {}
    }
    let start = &bytes[..bytes.len().min(SNIFFED_BYTES)];
    if start.contains(&0) {
        return None;
    }
    str::from_utf8(bytes).ok().map(Cow::from)
}

/// Decodes text in any supported encoding. Fails with the reason if the bytes are not text.
pub fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    let binary = || Err("it is not text".to_owned());
    if let Some(text) = decode_unicode(bytes) {
        return Ok(text);
    }
    let start = &bytes[..bytes.len().min(SNIFFED_BYTES)];
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

/// Number of bytes of a page to search for the name of its encoding.
const CHARSET_BYTES: usize = 4096;

/// Decodes a page like browsers do. The encoding is determined by the first of these that applies: the byte order mark,
/// the charset from the server, the charset that the page declares, UTF-8 if the bytes are valid, or else Windows-1252.
pub fn decode_page<'a>(bytes: &'a [u8], charset: Option<&str>) -> Cow<'a, str> {
    if encoding_rs::Encoding::for_bom(bytes).is_some() {
        return encoding_rs::UTF_8.decode(bytes).0;
    }
    let named = charset.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    let named = named.or_else(|| {
        let start = &bytes[..bytes.len().min(CHARSET_BYTES)];
        encoding_rs::Encoding::for_label(charset_in(start)?.as_bytes())
            // The name was found by reading single bytes, so the page cannot be in UTF-16.
            .map(|encoding| encoding.output_encoding())
    });
    match named {
        Some(encoding) => encoding.decode_without_bom_handling(bytes).0,
        None => match str::from_utf8(bytes) {
            Ok(text) => text.into(),
            // Only the last character is incomplete, because the page was cut; the rest is still UTF-8.
            Err(error) if error.error_len().is_none() => String::from_utf8_lossy(bytes),
            Err(_) => {
                encoding_rs::WINDOWS_1252
                    .decode_without_bom_handling(bytes)
                    .0
            }
        },
    }
}

/// Returns the value of the first `charset=` or, in XML, of the first `encoding=`.
fn charset_in(start: &[u8]) -> Option<String> {
    let text: String = start.iter().map(|byte| char::from(*byte)).collect();
    let text = text.to_ascii_lowercase();
    let value = |prefix: &str| {
        let (_, after) = text.split_once(prefix)?;
        let after = after.trim_start().trim_start_matches(['"', '\'']);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:".contains(c));
        Some(after[..end.unwrap_or(after.len())].to_owned())
    };
    let is_xml = text.trim_start().starts_with("<?xml");
    let xml = is_xml.then(|| value("encoding=")).flatten();
    value("charset=").or(xml).filter(|name| !name.is_empty())
}
