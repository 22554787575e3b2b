//! The encodings in which servers echo what they were sent, for tests that look for secrets. Nothing here is shared with the
//! code that masks them.

use std::fmt::Write as _;

/// Returns a value in every encoding, with the name of the encoding.
pub fn encodings(value: &str) -> Vec<(&'static str, String)> {
    vec![
        ("raw", value.to_owned()),
        ("base64", base64(value.as_bytes())),
        (
            "base64 after one byte",
            base64(format!("u{value}:x").as_bytes()),
        ),
        (
            "base64 after a name",
            base64(format!("me:{value}").as_bytes()),
        ),
        (
            "base64url",
            base64(value.as_bytes())
                .replace('+', "-")
                .replace('/', "_")
                .replace('=', ""),
        ),
        ("hex", hex(value.as_bytes())),
        ("hex in capitals", hex(value.as_bytes()).to_uppercase()),
        (
            "percent",
            percent(value, |byte| byte.is_ascii_alphanumeric()),
        ),
        ("percent, all", percent(value, |_| false)),
        (
            "percent, twice",
            percent(
                &percent(value, |byte| byte.is_ascii_alphanumeric()),
                |byte| byte != b'%',
            ),
        ),
        (
            "JSON",
            value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('/', "\\/"),
        ),
        (
            "JSON, all",
            value
                .chars()
                .map(|letter| format!("\\u{:04x}", u32::from(letter)))
                .collect(),
        ),
        (
            "HTML",
            value
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('"', "&quot;"),
        ),
        (
            "HTML, all",
            value
                .chars()
                .map(|letter| format!("&#{};", u32::from(letter)))
                .collect(),
        ),
    ]
}

/// Returns a text with a value in every encoding.
pub fn echo(value: &str) -> String {
    let all: Vec<String> = encodings(value).into_iter().map(|(_, text)| text).collect();
    all.join(" | ")
}

/// Returns the name of an encoding in which `bytes` show a value, or the middle of it.
pub fn shown_in(bytes: &[u8], value: &str) -> Option<&'static str> {
    // Base64 at the wrong alignment has other characters at both ends.
    let middle = |text: &str| text[2..text.len() - 4].to_owned();
    encodings(value).into_iter().find_map(|(name, text)| {
        let text = middle(&text);
        let found = bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        found.then_some(name)
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn percent(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    text.bytes().fold(String::new(), |mut text, byte| {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut bits = 0u32;
        for index in 0..3 {
            bits = bits << 8 | u32::from(group.get(index).copied().unwrap_or(0));
        }
        for index in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= group.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encodings_are_those_that_everybody_uses() {
        assert_eq!(base64(b"user:pass"), "dXNlcjpwYXNz");
        assert_eq!(base64(b"ab"), "YWI=");
        assert_eq!(hex(b"a\xff"), "61ff");
        let value = "sk-canary/\"+\\&<%41";
        for (name, text) in encodings(value) {
            assert!(
                shown_in(format!("x{text}y").as_bytes(), value).is_some(),
                "{name}"
            );
        }
        assert_eq!(shown_in(b"sk-canary", value), None);
    }
}
