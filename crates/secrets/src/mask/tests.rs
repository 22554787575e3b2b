use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

const VALUE: &str = "sk-live/\"a+b\\c&d<é>%41 z";

fn masks(value: &str) -> Masks {
    let masks = Masks::default();
    masks.add("KEY", &SecretValue::new(value));
    masks
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn percent_all(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn percent_needed(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let escape = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02x}")
        }
    };
    text.bytes().map(escape).collect()
}

fn json(text: &str) -> String {
    let escape = |letter: char| match letter {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        other if (other as u32) < 32 => format!("\\u{:04x}", other as u32),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

fn json_ascii(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

fn html_numeric(text: &str) -> String {
    text.chars()
        .map(|letter| format!("&#{};", letter as u32))
        .collect()
}

fn encodings(value: &str) -> Vec<(&'static str, String)> {
    let shifted = |prefix: &str| STANDARD.encode(format!("{prefix}{value}:tail"));
    let wrapped: Vec<String> = shifted("user:")
        .as_bytes()
        .chunks(10)
        .map(|line| String::from_utf8(line.to_vec()).unwrap())
        .collect();
    vec![
        ("raw", value.to_owned()),
        ("base64, no shift", shifted("")),
        ("base64, shifted by one", shifted("a")),
        ("base64, shifted by two", shifted("ab")),
        ("base64 in lines", wrapped.join("\r\n")),
        ("base64 in a URL", percent_needed(&shifted("u:"))),
        ("base64url", URL_SAFE_NO_PAD.encode(format!("x{value}"))),
        ("hex", hex(value.as_bytes())),
        ("hex in capitals", hex(value.as_bytes()).to_uppercase()),
        ("percent, all", percent_all(value)),
        ("percent, needed", percent_needed(value)),
        ("percent, twice", percent_needed(&percent_needed(value))),
        ("form", percent_needed(value).replace("%20", "+")),
        ("JSON", json(value)),
        ("JSON in JSON", json(&json(value))),
        ("JSON in ASCII", json_ascii(value)),
        ("HTML", html(value)),
        ("HTML, numeric", html_numeric(value)),
        ("HTML of JSON", html(&json(value))),
    ]
}

#[test]
fn a_value_is_masked_in_every_encoding() {
    let masks = masks(VALUE);
    for (encoding, text) in encodings(VALUE) {
        let text = format!("{{\"echo\": \"{text}\"}}");
        let masked = masks.mask_text(&text);
        assert!(masked.contains("[secret KEY]"), "{encoding}: {text}");
        assert!(masked.starts_with("{\"echo\": \""), "{encoding}: {masked}");
    }
}

#[test]
fn a_value_that_arrives_in_pieces_is_masked() {
    let masks = masks(VALUE);
    for (encoding, text) in encodings(VALUE) {
        let mut stream = masks.stream();
        let mut masked = Vec::new();
        for byte in format!("before {text} after").bytes() {
            masked.extend(stream.push(&[byte]));
        }
        masked.extend(stream.finish());
        assert_eq!(stream.echoes(), 1, "{encoding}: {text}");
        let masked = String::from_utf8_lossy(&masked);
        assert!(
            masked.starts_with("before ") && masked.ends_with(" after"),
            "{masked}"
        );
    }
}

#[test]
fn other_text_stays_as_it_is() {
    let masks = masks(VALUE);
    for text in [
        "",
        "sk-live",
        "sk-live/\"a+b",
        "%73%6b ordinary \\u0073 &amp; text &#115",
        "c2stbGl2ZS8iYSti",
    ] {
        assert!(matches!(masks.mask_text(text), Cow::Borrowed(same) if same == text));
    }
    let mut stream = masks.stream();
    assert_eq!(stream.push(b"hello sk-li"), b"hello ");
    assert_eq!(stream.push(b"on"), b"sk-lion");
}

#[test]
fn short_values_are_not_masked_and_known_ones_not_twice() {
    let masks = masks("admin");
    assert!(masks.is_empty());
    for _ in 0..2 {
        masks.add("A", &SecretValue::new("a-long-value"));
    }
    assert_eq!(masks.mask_text("a-long-value"), "[secret A]");
    assert_eq!(format!("{masks:?}"), "Masks(1)");
}

#[test]
fn binary_values_are_masked() {
    let value = [0, 159, 146, 150, 255, 10, 128, 7];
    let masks = Masks::default();
    masks.add("KEY", &SecretValue::new(value));
    for echo in [
        value.to_vec(),
        hex(&value).into(),
        STANDARD.encode(value).into(),
    ] {
        let masked = masks.mask_bytes(&echo).into_owned();
        assert!(masked.starts_with(b"[secret KEY]"), "{echo:?}");
    }
}

proptest! {
    #[test]
    fn any_value_is_masked_in_every_encoding(value in "[ -~é]{8,40}") {
        let masks = masks(&value);
        for (encoding, text) in encodings(&value) {
            let masked = masks.mask_text(&text).into_owned();
            prop_assert!(masked.contains("[secret KEY]"), "{}: {}", encoding, text);
        }
    }

    #[test]
    fn pieces_give_the_same_result_as_the_whole(
        value in "[a-f%&0-9]{6,12}",
        text in "[a-f%&#;0-9\\\\]{0,60}",
        cut in 0usize..80,
    ) {
        let masks = masks(&value);
        let text = format!("{text}{value}{text}");
        let cut = cut.min(text.len());
        let mut stream = masks.stream();
        let mut pieces = stream.push(&text.as_bytes()[..cut]);
        pieces.extend(stream.push(&text.as_bytes()[cut..]));
        pieces.extend(stream.finish());
        prop_assert_eq!(pieces, masks.mask_bytes(text.as_bytes()).into_owned());
    }
}
