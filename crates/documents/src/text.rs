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

/// How much of a page is searched for the name of its encoding, in bytes.
const CHARSET_BYTES: usize = 4096;

/// Decodes a page: by its byte order mark, else by the charset that the server named, else by the one that the page names
/// itself, else as UTF-8 if it is that, else as Windows-1252, as browsers do.
pub fn decode_page<'a>(bytes: &'a [u8], charset: Option<&str>) -> Cow<'a, str> {
    if encoding_rs::Encoding::for_bom(bytes).is_some() {
        return encoding_rs::UTF_8.decode(bytes).0;
    }
    let named = charset.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    let named = named.or_else(|| {
        let start = &bytes[..bytes.len().min(CHARSET_BYTES)];
        encoding_rs::Encoding::for_label(charset_in(start)?.as_bytes())
            // A page that is read byte by byte to find this name cannot be in UTF-16.
            .map(|encoding| encoding.output_encoding())
    });
    match named {
        Some(encoding) => encoding.decode_without_bom_handling(bytes).0,
        None => match str::from_utf8(bytes) {
            Ok(text) => text.into(),
            // A multi-byte character that was cut at the end does not make the rest another encoding.
            Err(error) if error.error_len().is_none() => String::from_utf8_lossy(bytes),
            Err(_) => {
                encoding_rs::WINDOWS_1252
                    .decode_without_bom_handling(bytes)
                    .0
            }
        },
    }
}

/// The value of the first `charset=` or, in XML, `encoding=`.
fn charset_in(start: &[u8]) -> Option<String> {
    let text: String = start.iter().map(|byte| char::from(*byte)).collect();
    let text = text.to_ascii_lowercase();
    let value = |sign: &str| {
        let (_, after) = text.split_once(sign)?;
        let after = after.trim_start().trim_start_matches(['"', '\'']);
        let end = after.find(|one: char| !one.is_ascii_alphanumeric() && !"-_:".contains(one));
        Some(after[..end.unwrap_or(after.len())].to_owned())
    };
    let is_xml = text.trim_start().starts_with("<?xml");
    let xml = is_xml.then(|| value("encoding=")).flatten();
    value("charset=").or(xml).filter(|name| !name.is_empty())
}
