//! A scanner for canaries: known secret values that must not appear in an output, in any common encoding. It shares no code
//! with the masks that it checks.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::read::MultiGzDecoder;
use std::fmt::Write;
use std::io::Read;

/// Maximum size of a gzip stream after decoding.
const MOST_DECODED: u64 = 8 << 20;
/// Maximum number of gzip streams within gzip streams.
const MOST_LAYERS: usize = 3;
/// The first bytes of a gzip stream with deflate.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];

/// An encoding of a value, by name.
pub type Encoding = (&'static str, fn(&str) -> String);

/// The encodings in which an echo arrives, each as a whole text that a server could send.
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

/// Looks for canaries in bytes.
pub struct CanaryScanner {
    /// The start of a gzip stream, then the forms of the canaries.
    patterns: AhoCorasick,
    /// For each pattern, the index of its canary and the name of its encoding.
    meanings: Vec<(usize, &'static str)>,
}

/// A canary where it must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The index of the canary.
    pub canary: usize,
    /// The encoding.
    pub encoding: &'static str,
    /// The offset in bytes.
    pub offset: usize,
}

impl CanaryScanner {
    /// Prepares to look for these values.
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

    /// Returns every canary in the bytes, also inside gzip streams.
    pub fn scan(&self, bytes: &[u8]) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        self.scan_layer(bytes, 0, &mut sightings);
        sightings
    }

    fn scan_layer(&self, bytes: &[u8], layer: usize, sightings: &mut Vec<Sighting>) {
        for found in self.patterns.find_iter(bytes) {
            let offset = found.start();
            match found.pattern().as_usize().checked_sub(1) {
                Some(form) => {
                    let (canary, encoding) = self.meanings[form];
                    sightings.push(Sighting {
                        canary,
                        encoding,
                        offset,
                    });
                }
                None if layer < MOST_LAYERS => {
                    let before = sightings.len();
                    self.scan_layer(&decode(&bytes[offset..]), layer + 1, sightings);
                    for sighting in &mut sightings[before..] {
                        sighting.offset = offset;
                    }
                }
                None => {}
            }
        }
    }
}

/// Decodes a gzip stream; of one that breaks off, the beginning.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    let _ = MultiGzDecoder::new(bytes)
        .take(MOST_DECODED)
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

/// Returns the name of an encoding in which bytes show a value, or all but its ends.
pub fn shown_in(bytes: &[u8], value: &str) -> Option<&'static str> {
    let middle = value[2..value.len() - 4].to_owned();
    let sightings = CanaryScanner::new(&[middle]).scan(bytes);
    sightings.first().map(|sighting| sighting.encoding)
}

/// The texts that are in every occurrence of a value: of base64 only what does not depend on its neighbours.
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
    let mut text = String::new();
    for byte in value.bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
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
                let found = scanner.scan(text.as_bytes());
                assert!(
                    found.iter().any(|sighting| sighting.canary == index),
                    "{name}: {text}"
                );
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
