//! A scanner for canaries: known secret values that must not appear in an output in any common encoding. It shares no
//! code with the masks that it checks.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::read::MultiGzDecoder;
use std::fmt::Write;
use std::io::Read;

/// Maximum size of a gzip stream after decoding.
const MAX_DECODED_BYTES: u64 = 8 << 20;
/// Maximum nesting depth of gzip streams.
const MAX_LAYERS: usize = 3;
/// The first bytes of a gzip stream with deflate.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];

/// The name of an encoding, and the function that encodes a value.
pub type Encoding = (&'static str, fn(&str) -> String);

/// The encodings in which a server could echo a value. Each function returns the complete text that the server would
/// send.
pub const ENCODINGS: [Encoding; 17] = [
    ("raw", str::to_owned),
    ("base64", |value| STANDARD_NO_PAD.encode(value)),
    ("base64 after one byte", |value| {
        STANDARD_NO_PAD.encode(format!(":{value}."))
    }),
    ("base64 after two bytes", |value| {
        STANDARD_NO_PAD.encode(format!("u:{value}.."))
    }),
    ("base64url", |value| to_url(&STANDARD_NO_PAD.encode(value))),
    ("base64url after one byte", |value| {
        to_url(&STANDARD_NO_PAD.encode(format!(":{value}")))
    }),
    ("base64url after two bytes", |value| {
        to_url(&STANDARD_NO_PAD.encode(format!("u:{value}")))
    }),
    ("hex", |value| hex(value)),
    ("hex in capitals", |value| hex(value).to_uppercase()),
    ("percent", percent),
    ("percent of all", |value| {
        value.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }),
    ("percent, twice", |value| percent(&percent(value))),
    ("JSON with all escapes", |value| {
        value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('/', "\\/")
    }),
    ("JSON", |value| {
        let text = serde_json::Value::from(value).to_string();
        text[1..text.len() - 1].to_owned()
    }),
    ("JSON in ASCII", |value| {
        let units = value.encode_utf16();
        units.map(|unit| format!("\\u{unit:04x}")).collect()
    }),
    ("HTML", html),
    ("HTML by numbers", |value| {
        let letters = value.chars();
        letters
            .map(|letter| format!("&#{};", letter as u32))
            .collect()
    }),
];

/// A scanner that finds canaries in bytes.
pub struct CanaryScanner {
    /// The start of a gzip stream, followed by the encoded forms of the canaries.
    patterns: AhoCorasick,
    /// The index of the canary and the name of the encoding, for each pattern after the first.
    meanings: Vec<(usize, &'static str)>,
}

/// An occurrence of a canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryHit {
    /// The index of the canary in the list given to [`CanaryScanner::new`].
    pub canary: usize,
    pub encoding: &'static str,
    /// The offset in bytes; inside a gzip stream, that of the outermost stream.
    pub offset: usize,
}

impl CanaryScanner {
    /// Creates a scanner for these values.
    pub fn new(values: &[String]) -> Self {
        let mut patterns = vec![GZIP.to_vec()];
        let mut meanings = Vec::new();
        for (canary, value) in values.iter().enumerate() {
            for (encoding, text) in forms(value) {
                if !patterns.contains(&text.clone().into_bytes()) {
                    patterns.push(text.into_bytes());
                    meanings.push((canary, encoding));
                }
            }
        }
        Self {
            patterns: AhoCorasick::new(&patterns).expect("few patterns"),
            meanings,
        }
    }

    /// Returns every occurrence of a canary in the bytes, including inside gzip streams.
    pub fn scan(&self, bytes: &[u8]) -> Vec<CanaryHit> {
        let mut hits = Vec::new();
        self.scan_layer(bytes, 0, &mut hits);
        hits
    }

    fn scan_layer(&self, bytes: &[u8], layer: usize, hits: &mut Vec<CanaryHit>) {
        for found in self.patterns.find_iter(bytes) {
            let offset = found.start();
            match found.pattern().as_usize().checked_sub(1) {
                Some(form) => {
                    let (canary, encoding) = self.meanings[form];
                    hits.push(CanaryHit {
                        canary,
                        encoding,
                        offset,
                    });
                }
                None if layer < MAX_LAYERS => {
                    let before = hits.len();
                    self.scan_layer(&decode(&bytes[offset..]), layer + 1, hits);
                    for hit in &mut hits[before..] {
                        hit.offset = offset;
                    }
                }
                None => {}
            }
        }
    }
}

/// Decodes a gzip stream. If it is truncated, returns the part that can be decoded.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let _ = MultiGzDecoder::new(bytes)
        .take(MAX_DECODED_BYTES)
        .read_to_end(&mut decoded);
    decoded
}

/// Returns a value in every encoding, with the name of the encoding.
pub fn encodings(value: &str) -> Vec<(&'static str, String)> {
    let all = ENCODINGS.iter();
    all.map(|(name, encode)| (*name, encode(value))).collect()
}

/// Returns a text with a value in every encoding.
pub fn echo(value: &str) -> String {
    let all: Vec<String> = encodings(value).into_iter().map(|(_, text)| text).collect();
    all.join(" | ")
}

/// Returns the name of the first encoding in which bytes contain a value. The first 2 and last 4 bytes of the value may
/// be missing.
pub fn find_encoding(bytes: &[u8], value: &str) -> Option<&'static str> {
    let middle = value[2..value.len() - 4].to_owned();
    let hits = CanaryScanner::new(&[middle]).scan(bytes);
    hits.first().map(|hit| hit.encoding)
}

/// Returns the texts to search for. For base64 these are the characters that do not depend on the bytes around the
/// value, for each of the three alignments.
fn forms(value: &str) -> Vec<(&'static str, String)> {
    let mut forms = Vec::new();
    for (name, encode) in ENCODINGS {
        if name.starts_with("base64") {
            continue;
        }
        let text = encode(value);
        if name.starts_with("percent") || name.starts_with("JSON") {
            forms.push((name, lower_escapes(&text)));
        }
        forms.push((name, text));
    }
    for shift in 0..3 {
        let encoded = STANDARD_NO_PAD.encode(format!("{}{value}", "\0".repeat(shift)));
        let (first, last) = ((shift * 8).div_ceil(6), (shift + value.len()) * 8 / 6);
        let inner = &encoded[first..last];
        forms.push(("base64", inner.to_owned()));
        forms.push(("base64url", to_url(inner)));
    }
    forms.push(("reversed", value.chars().rev().collect()));
    let wide = value.encode_utf16().flat_map(u16::to_le_bytes);
    if let Ok(wide) = String::from_utf8(wide.collect()) {
        forms.push(("UTF-16", wide));
    }
    forms
}

fn lower_escapes(text: &str) -> String {
    let mut lower = String::new();
    let mut escaped = 0;
    for letter in text.chars() {
        let letter = if escaped > 0 {
            letter.to_ascii_lowercase()
        } else {
            letter
        };
        escaped = match letter {
            '%' => 2,
            '\\' => 5,
            _ => usize::max(escaped, 1) - 1,
        };
        lower.push(letter);
    }
    lower
}

fn to_url(text: &str) -> String {
    text.replace('+', "-").replace('/', "_")
}

fn hex(value: &str) -> String {
    base16ct::lower::encode_string(value.as_bytes())
}

fn percent(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut text = String::new();
    for byte in value.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn html(value: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    const VALUES: [&str; 2] = ["tk/1+\"<&>' ä-canary", "plain-canary-77"];

    #[test]
    fn every_encoding_of_every_canary_is_found() {
        let values = VALUES.map(str::to_owned);
        let scanner = CanaryScanner::new(&values);
        for (index, value) in values.iter().enumerate() {
            for (name, encode) in ENCODINGS {
                let text = format!("a{}b", encode(value));
                let hits = scanner.scan(text.as_bytes());
                assert!(hits.iter().any(|hit| hit.canary == index), "{name}: {text}");
            }
        }
    }

    #[test]
    fn a_canary_in_a_gzip_stream_is_found_and_other_bytes_are_not() {
        let scanner = CanaryScanner::new(&VALUES.map(str::to_owned));
        let mut gzip = GzEncoder::new(b"before".to_vec(), Compression::default());
        gzip.write_all(b"x plain-canary-77 y").unwrap();
        let found = scanner.scan(&gzip.finish().unwrap());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].canary, found[0].offset), (1, 6));
        assert_eq!(
            scanner.scan(b"plain-canary-7 \x1f\x8b\x08 and more"),
            Vec::new()
        );
    }
}
