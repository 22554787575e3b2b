//! Searches for a value in all encodings that programs commonly write.

use sha2::{Digest, Sha256, Sha512};

/// A secret whose value must not leak.
#[derive(Debug, Clone, Copy)]
pub(super) struct Canary {
    pub name: &'static str,
    pub value: &'static str,
}

/// The first and last so many bytes of a value count as a leak too.
const PART: usize = 12;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the names of the encodings in which bytes contain the value.
pub(super) fn leaks(canary: &Canary, bytes: &[u8]) -> Vec<String> {
    let has = |form: &[u8]| bytes.windows(form.len()).any(|part| part == form);
    let forms = forms(canary.value.as_bytes());
    let mut found: Vec<String> = forms
        .iter()
        .filter(|(_, form)| has(form))
        .map(|(name, _)| format!("{} as {name}", canary.name))
        .collect();
    // The value with separators between its characters.
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let letters: Vec<u8> = letters.copied().collect();
    let value = canary.value.as_bytes();
    if letters.windows(value.len()).any(|part| part == value) && !has(value) {
        found.push(format!("{} with separators", canary.name));
    }
    found
}

fn forms(value: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let hex = |bytes: &[u8], upper: bool| -> Vec<u8> {
        let digits = bytes.iter().map(|byte| {
            if upper {
                format!("{byte:02X}")
            } else {
                format!("{byte:02x}")
            }
        });
        digits.collect::<String>().into_bytes()
    };
    let mut forms = vec![
        ("its beginning", value[..PART].to_vec()),
        ("its end", value[value.len() - PART..].to_vec()),
        ("lower case", value.to_ascii_lowercase()),
        ("upper case", value.to_ascii_uppercase()),
        ("reversed", value.iter().rev().copied().collect()),
        ("hexadecimal", hex(value, false)),
        ("HEXADECIMAL", hex(value, true)),
        ("ROT13", value.iter().map(|byte| rot13(*byte)).collect()),
        ("SHA-256", hex(&Sha256::digest(value), false)),
        ("SHA-512", hex(&Sha512::digest(value), false)),
        ("UTF-16", value.iter().flat_map(|byte| [*byte, 0]).collect()),
    ];
    let percent = value.iter().map(|byte| format!("%{byte:02X}"));
    forms.push(("percent", percent.collect::<String>().into_bytes()));
    for (name, skipped) in [("base64", 0), ("base64 + 1", 1), ("base64 + 2", 2)] {
        forms.push((name, base64_core(value, skipped)));
    }
    forms
}

fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => b'a' + (byte - b'a' + 13) % 26,
        b'A'..=b'Z' => b'A' + (byte - b'A' + 13) % 26,
        other => other,
    }
}

/// Returns the base64 digits of a value that do not depend on the bytes before or after it.
fn base64_core(value: &[u8], skipped: usize) -> Vec<u8> {
    let whole = value[skipped..].chunks_exact(3);
    whole
        .flat_map(|three| {
            let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            [18, 12, 6, 0].map(|shift| BASE64[(bits >> shift & 63) as usize])
        })
        .collect()
}

#[test]
fn a_value_is_found_in_every_form() {
    let canary = Canary {
        name: "A",
        value: "cnry7Kq2vX9tBz4LmWp1",
    };
    let texts = [
        "x cnry7Kq2vX9tBz4LmWp1 y",
        "c n r y 7 K q 2 v X 9 t B z 4 L m W p 1",
        "1pWmL4zBt9Xv2qK7yrnc",
        "Y25yeTdLcTJ2WDl0Qno0TG1XcDE=",
        "eGNucnk3S3Eydlg5dEJ6NExtV3Ax",
        "636e7279374b7132765839744 27a344c6d577031"
            .replace(' ', "")
            .leak(),
    ];
    for text in texts {
        assert!(!leaks(&canary, text.as_bytes()).is_empty(), "{text}");
    }
    assert!(leaks(&canary, b"cnry something else").is_empty());
}
