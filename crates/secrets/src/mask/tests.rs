//! Tests what masks find in texts and streams, and what they leave unchanged.

mod guesses;

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
        .chunks(44)
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
        (
            "base64 of base64",
            STANDARD.encode(format!("{{{}}}", shifted("u:"))),
        ),
        ("hex of base64", hex(shifted("user:").as_bytes())),
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
fn a_value_that_arrives_in_chunks_is_masked() {
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
fn a_plain_value_is_masked_in_utf16() {
    let masks = masks("sk-live-0123456789");
    let echo = "a sk-live-0123456789 b".encode_utf16();
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let echo: Vec<u8> = echo.clone().flat_map(bytes).collect();
        let masked = masks.mask_bytes(&echo);
        assert!(masked.windows(12).any(|part| part == b"[secret KEY]"));
    }
}

#[test]
fn a_value_beyond_latin1_is_masked_in_utf16() {
    let value = "пароль-für-日本-9d2c";
    for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let text = format!("it is {value}, isn't it");
        let bytes: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
        let masked = masks(value).mask_bytes(&bytes).into_owned();
        let masked = String::from_utf8_lossy(&masked);
        assert!(masked.contains("[secret KEY]"), "{masked:?}");
    }
}

#[test]
fn a_value_in_the_name_of_a_header_is_found_in_lower_case() {
    let masks = masks("GhP_zq7RtyW0plm9");
    assert!(masks.is_in_lower_case("x-ghp_zq7rtyw0plm9-y"));
    assert!(!masks.is_in_lower_case("x-ghp_zq7rtyw0plm8"));
}

#[test]
fn hexadecimal_digits_with_spaces_are_masked_wherever_the_stream_is_split() {
    let value = "sk_live_0123456789abcdef";
    let digits: Vec<String> = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("{{\"token\": \"{}\"}}", digits.join(" "));
    for at in 0..text.len() {
        let mut stream = masks(value).stream();
        let mut out = stream.push(&text.as_bytes()[..at]);
        out.extend(stream.push(&text.as_bytes()[at..]));
        out.extend(stream.finish());
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "{\"token\": \"[secret KEY]\"}", "split at {at}");
    }
}

#[test]
fn a_secret_that_is_json_is_masked_in_json() {
    let id = "client-4711";
    let secret = "kT9x-Zq81_mVb04sLwQe77yH";
    let masks = masks(&format!(
        "{{\"client_id\": \"{id}\", \"client_secret\": \"{secret}\"}}"
    ));
    let message = format!("{{\"x\":{{\"client_id\":\"{id}\",\"client_secret\":\"{secret}\"}}}}");
    let masked = String::from_utf8(masks.mask_json_bytes(message.as_bytes()).into_owned()).unwrap();
    assert!(
        masked.contains("[secret KEY]") && !masked.contains(secret),
        "{masked}"
    );
}

#[test]
fn an_echo_over_several_strings_of_a_message_empties_the_message() {
    let masks = masks("{\"user\":\"ann-4711\",\"pin\":\"0815-2342\"}");
    let message = b"{\"x\":{\"user\":\"ann-4711\",\"pin\":\"0815-2342\"}}";
    assert_eq!(masks.mask_json_bytes(message), &b""[..]);
    let text = masks.mask_json_text(std::str::from_utf8(message).unwrap());
    assert_eq!(text.as_deref(), Some("{\"x\":[secret KEY]}"));
}

#[test]
fn the_lines_of_a_key_are_masked_whatever_their_indentation_and_line_ends() {
    let body = STANDARD.encode((1..=125).rev().collect::<Vec<u8>>());
    let lines = [&body[..64], &body[64..128], &body[128..]];
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
    let masks = masks(&format!("{begin}\n{}\n{end}\n", lines.join("\n")));
    let crlf = format!("{begin}\r\n{}\r\n{end}", lines.join("\r\n"));
    let indented = format!("key: |\n    {begin}\n    {}\n", lines.join("\n    "));
    let quoted = format!("> {}", lines.join("\n> "));
    let encoded = STANDARD.encode(&crlf);
    for text in [crlf.clone(), indented, quoted, json(&crlf), encoded] {
        let masked = masks.mask_text(&text);
        for line in lines {
            assert!(!masked.contains(&line[..16]), "{masked}");
        }
        assert!(masked.contains("[secret "), "{masked}");
    }
    assert_eq!(masks.mask_text(begin), begin);
}

#[test]
fn other_text_is_unchanged() {
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
}

#[test]
fn a_stream_holds_back_as_many_words_as_the_value_has() {
    let pushed = |masks: &Masks, text: &str| {
        let released = masks.stream().push(text.as_bytes());
        String::from_utf8(released).unwrap()
    };
    let one_word = masks("sk-live-0123456789");
    assert_eq!(pushed(&one_word, "hello wor"), "hello ");
    assert_eq!(pushed(&one_word, "hello world\n"), "hello world\n");
    assert_eq!(pushed(&one_word, "日本語 and 日本語"), "日本語 and 日本語");
    let three_words = masks("correct horse battery");
    assert_eq!(pushed(&three_words, "one two three fo"), "one ");
    assert_eq!(pushed(&three_words, "one two three "), "one ");
    let no_ascii = masks("geheim-é-wort");
    assert_eq!(pushed(&no_ascii, "ja 日本"), "ja ");
    let line = "Zm9v".repeat(15);
    let text = format!("see {line}\n{line}\nZm9v");
    assert_eq!(pushed(&one_word, &text), "see ");
    assert_eq!(pushed(&one_word, "dump: 73 6b 2d 6"), "dump: ");
}

#[test]
fn a_value_that_was_decoded_in_another_character_set_is_masked() {
    let value = "wu2YüZDO-GTkq1W";
    let masks = masks(value);
    let misread: String = value.bytes().map(char::from).collect();
    let latin1: Vec<u8> = value.chars().map(|letter| letter as u8).collect();
    let utf16: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for echo in [
        misread.clone().into_bytes(),
        json_ascii(&misread).into_bytes(),
        percent_all(&misread).into_bytes(),
        latin1,
        utf16,
    ] {
        let masked = masks.mask_bytes(&echo);
        assert!(masked.starts_with(b"[secret KEY]"), "{echo:?}");
    }
}

#[test]
fn short_values_are_not_masked_and_known_values_are_not_added_twice() {
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
        let is_masked = masked.windows(12).any(|part| part == b"[secret KEY]");
        assert!(is_masked && masked.len() < 16, "{echo:?}");
    }
}

#[test]
fn json_stays_valid() {
    let masks = masks("123456789");
    let text = r#"{"id": 123456789, "a-123456789": ["x 123456789"], "b": true}"#;
    let masked = masks.mask_json_text(text).unwrap();
    let value: serde_json::Value = serde_json::from_str(&masked).unwrap();
    assert_eq!(value["id"], 123_456_789);
    assert_eq!(value["a-[secret KEY]"][0], "x [secret KEY]");
    assert_eq!(masks.mask_json_text(r#"{"id": 1}"#), None);
    let broken = masks.mask_json_text("{ 123456789").unwrap();
    assert_eq!(broken, "{ [secret KEY]");
}

#[test]
fn text_in_chunks_stays_valid_text() {
    let masks = Masks::default();
    masks.add("KEY", &SecretValue::new([0xa9, 1, 2, 3, 4, 5, 6]));
    masks.add("WORD", &SecretValue::new("geheim-é-wort"));
    let mut stream = masks.text_stream();
    let mut all = String::new();
    for piece in ["é", "ü geh", "eim-", "é-wo", "rt é"] {
        all += &stream.push(piece);
    }
    all += &stream.finish();
    assert_eq!(all, "éü [secret WORD] é");
}

#[test]
fn a_long_value_is_masked_in_a_stream_without_being_held_back() {
    let value: String = (0..1600).map(|line| format!("{line:08x}/\n")).collect();
    let masks = masks(&value);
    for (encoding, text) in encodings(&value) {
        let mut stream = masks.stream();
        let mut masked = Vec::new();
        let mut most_held = 0;
        for piece in text.as_bytes().chunks(500) {
            masked.extend(stream.push(piece));
            most_held = most_held.max(stream.pending.len());
        }
        masked.extend(stream.finish());
        assert_eq!(stream.echoes(), 1, "{encoding}");
        assert!(masked.len() < 60, "{encoding}: {} bytes", masked.len());
        assert!(
            most_held <= stream.set.shape().limit() + 500,
            "{encoding}: {most_held}"
        );
    }
}

#[test]
fn the_start_of_a_long_value_is_masked() {
    let value = "0123456789abcdef".repeat(20);
    let masked = masks(&value);
    let masked = masked.mask_text(&value[..132]);
    assert_eq!(masked, "[secret KEY]0123");
}

#[test]
fn text_after_an_unfinished_escape_at_the_end_of_a_value_does_not_hide_it() {
    for value in ["password%", "password\\", "password&#4", "%%%%%%%%"] {
        let masks = masks(value);
        for after in ["", "41", "n", "\"}", ";"] {
            let text = format!("{value}{after}");
            if value.starts_with("pass") || after.is_empty() || after == "\"}" {
                assert!(masks.mask_text(&text).starts_with("[secret KEY]"), "{text}");
            }
        }
    }
}

#[test]
fn two_values_with_the_same_start_are_masked_under_their_own_names() {
    let masks = masks("sk-live-first");
    masks.add("LONG", &SecretValue::new("sk-live-first-and-more"));
    masks.add("OTHER", &SecretValue::new("sk-live-second"));
    assert_eq!(
        masks.mask_text(
            "sk-live-first sk-live-first-and-more sk-live-first-and-less sk-live-second"
        ),
        "[secret KEY] [secret LONG] [secret KEY]-and-less [secret OTHER]"
    );
}

/// Escapes the characters that must be escaped.
fn escape(text: &str, layer: usize) -> String {
    match layer {
        0 => percent_needed(text),
        1 => json(text),
        _ => html(text),
    }
}

/// Escapes every character.
fn escape_all(text: &str, layer: usize) -> String {
    match layer {
        0 => percent_all(text),
        1 => json_ascii(text),
        2 => html_numeric(text),
        _ => text.to_owned(),
    }
}

proptest! {
    #[test]
    fn any_value_is_masked_in_every_encoding(value in "[ -~é]{8,40}") {
        let masks = masks(&value);
        prop_assume!(matches!(masks.mask_text(&value), Cow::Owned(_)));
        for (encoding, text) in encodings(&value) {
            let masked = masks.mask_text(&text).into_owned();
            prop_assert!(masked.contains("[secret KEY]"), "{}: {}", encoding, text);
        }
    }

    #[test]
    fn any_value_is_masked_in_every_composition(
        value in "[ -~é\n]{8,40}",
        layers in prop::collection::vec(0usize..3, 0..3),
        last in 0usize..4,
    ) {
        let masks = masks(&value);
        // A run of backslashes that is escaped several times exceeds the maximum length of an escape.
        prop_assume!(!value.contains("\\\\"));
        // White space around a value and escapes in it, including an unfinished one at its end, can leave too little to
        // mask.
        prop_assume!(!value.trim().ends_with('\\'));
        prop_assume!(matches!(masks.mask_text(&value), Cow::Owned(_)));
        let last = if layers.len() > 1 { 3 } else { last };
        let text = layers.iter().fold(value, |text, layer| escape(&text, *layer));
        let text = format!("\"{}\"", escape_all(&text, last));
        let masked = masks.mask_text(&text).into_owned();
        prop_assert!(masked.contains("[secret KEY]"), "{:?} {}: {} -> {}", layers, last, text, masked);
    }

    #[test]
    fn a_stream_gives_the_same_result_as_the_whole_text(
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

#[test]
fn after_a_gap_no_part_of_a_value_is_shown() {
    let value = "gap_0123456789_QXZQYVWKJQPLMNBVB";
    let masks = masks(value);
    let hidden_bytes = masks.max_echo_bytes();
    let filler = "word ".repeat(hidden_bytes);
    for cut in (0..=value.len()).step_by(4) {
        // The gap ends inside the value, at each of its bytes; more echoes follow, one of them over the hidden end.
        for shift in 0..=value.len() {
            let start = hidden_bytes - value.len() + cut - shift;
            let text = format!("{}{} {value}{filler}", &value[cut..], &filler[..start]);
            let (hidden, rest) = text.split_at(hidden_bytes);
            let mut stream = masks.text_stream();
            stream.push("old and unfinished");
            stream.restart(hidden);
            let mut shown = String::new();
            for piece in rest.as_bytes()[..400].chunks(7) {
                shown.push_str(&stream.push(piece));
            }
            let is_shown = |part: &[u8]| shown.contains(std::str::from_utf8(part).unwrap());
            let leaked = value.as_bytes().windows(4).find(|part| is_shown(part));
            assert!(leaked.is_none(), "{leaked:?} in {shown:?}");
            assert!(!shown.contains("old"), "{shown:?}");
        }
    }
}

#[test]
fn a_value_that_is_added_later_is_masked_in_what_was_held_back() {
    let masks = masks("first-secret");
    let mut stream = masks.text_stream();
    let mut shown = stream.push("key: second-");
    masks.add("later", &SecretValue::new("second-secret"));
    stream.update(&masks);
    shown.push_str(&stream.push("secret first-secret end"));
    shown.push_str(&stream.finish());
    assert_eq!(shown, "key: [secret later] [secret KEY] end");
}
