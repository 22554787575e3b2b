//! Tests that masks reveal nothing about guesses, and that hostile text does no harm.

use super::*;

#[test]
fn a_partial_guess_is_treated_the_same_whether_it_is_right_or_wrong() {
    let value: String = (0..40).map(|part| format!("{part:x}Kz{part:o}")).collect();
    for length in [8, 20, 40, compare::BLOCK_BYTES - 1, 100, value.len()] {
        let value = &value[..length];
        let right = masks(value);
        let wrong = masks(&"Q7#".repeat(length)[..length]);
        for (encoding, text) in encodings(value) {
            for end in 0..text.len().min(compare::BLOCK_BYTES) {
                let Some(guess) = text.get(..end).filter(|_| !text.is_empty()) else {
                    continue;
                };
                if right.mask_text(guess) != guess {
                    break;
                }
                let (mut right, mut wrong) = (right.stream(), wrong.stream());
                for piece in ["! ", guess, "?", "\n", guess, guess, " "] {
                    let (right, wrong) =
                        (right.push(piece.as_bytes()), wrong.push(piece.as_bytes()));
                    assert_eq!(right, wrong, "{encoding}: {guess}");
                }
            }
        }
    }
}

#[test]
fn a_long_value_is_compared_in_blocks_and_the_text_after_them_is_kept() {
    let value: String = (0..50).map(|part| format!("{part:08x}")).collect();
    let masks = masks(&value);
    for (right, masked) in [(400, 400), (399, 256), (256, 256), (255, 128), (128, 128)] {
        let guess = format!("{}????", &value[..right]);
        let expected = format!("[secret KEY]{}", &guess[masked..]);
        assert_eq!(masks.mask_text(&guess), expected, "{right}");
    }
    assert_eq!(masks.mask_text(&value[..127]), &value[..127]);
    // The block has the same number of bytes in each notation.
    let hex = hex(value.as_bytes());
    assert_eq!(masks.mask_text(&hex[..254]), &hex[..254]);
    assert_eq!(masks.mask_text(&hex[..256]), "[secret KEY]");
}

#[test]
fn an_echo_that_starts_inside_another_one_is_removed_completely() {
    let masks = masks("ghp_0123456789abcdefghijklmn");
    masks.add("OVER", &SecretValue::new("Bearer g"));
    masks.add("LONG", &SecretValue::new("eyJhbGciOiJIUzI1NiJ9.".repeat(9)));
    for before in [
        "Bearer ",
        "eyJhbGciOiJIUzI1NiJ9.",
        &hex("eyJhbGciOiJIUzI1NiJ9.".repeat(4).as_bytes()),
    ] {
        let text = format!("{before}ghp_0123456789abcdefghijklmn");
        for size in [text.len(), 1, 7] {
            let mut stream = masks.stream();
            let pieces = text.as_bytes().chunks(size);
            let mut masked: Vec<u8> = pieces.flat_map(|piece| stream.push(piece)).collect();
            masked.extend(stream.finish());
            let masked = String::from_utf8(masked).unwrap();
            assert!(
                !masked.contains("0123") && !masked.contains("lmn"),
                "{masked}"
            );
        }
    }
}

#[test]
fn each_echo_in_a_stream_is_replaced_by_its_name() {
    let masks = masks("sk-live-0123456789");
    for size in 1..30 {
        let text = "a sk-live-0123456789 b sk-live-0123456789 c sk-live-0123456789";
        let mut stream = masks.stream();
        let pieces = text.as_bytes().chunks(size);
        let mut masked: Vec<u8> = pieces.flat_map(|piece| stream.push(piece)).collect();
        masked.extend(stream.finish());
        let expected = "a [secret KEY] b [secret KEY] c [secret KEY]";
        assert_eq!(String::from_utf8(masked).unwrap(), expected, "{size}");
    }
}

#[test]
fn hostile_text_takes_time_proportional_to_its_length() {
    const SIZE: usize = 50_000;
    let long = "aB3$".repeat(4096);
    let masks = masks(&long);
    masks.add("RUN", &SecretValue::new("\\".repeat(16 << 10)));
    masks.add("PERCENT", &SecretValue::new("%25".repeat(5000)));
    masks.add(
        "LETTERS",
        &SecretValue::new("a".repeat((16 << 10) - 1) + "b"),
    );
    let head = &long[..compare::BLOCK_BYTES - 1];
    let near = format!("{head}x");
    let escaped: String = head
        .bytes()
        .map(|byte| format!("{}u{byte:04x}", "\\".repeat(40)))
        .collect();
    let started = std::time::Instant::now();
    for part in [
        "\\", "%", "%25", "&amp;", "&#x26;", "&#", "\\u", "\\u00", "\\%", "\\&%", "a", &near,
        &escaped,
    ] {
        let text = part.repeat(SIZE / part.len());
        let mut stream = masks.stream();
        for piece in text.as_bytes().chunks(4096) {
            stream.push(piece);
            assert!(
                stream.pending.len() <= stream.set.shape().limit() + 4096,
                "{} of {part}",
                stream.pending.len()
            );
        }
        stream.finish();
    }
    // Comparing the whole value at each byte would take hours.
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}

#[test]
fn the_rest_of_a_partly_known_value_can_only_be_guessed_as_a_whole() {
    let value = format!("Server=tcp:db-prod-01;Database=orders;{}", "x7Q".repeat(50));
    for length in [66, 128, 140, value.len()] {
        let masks = masks(&value[..length]);
        for right in 16..length {
            let guess = format!("{}~", &value[..right]);
            assert_eq!(masks.mask_text(&guess), guess, "{right} of {length}");
        }
    }
}

#[test]
fn no_character_next_to_an_echo_in_base64_reveals_bits_of_the_value() {
    let values = ["qPlain-0123456", "rPlain-012345p"];
    let shown = |text: &dyn Fn(&str) -> String| {
        let masked = values.map(|value| masks(value).mask_text(&text(value)).into_owned());
        assert_eq!(masked[0], masked[1]);
        assert!(masked[0].contains("[secret KEY]"), "{}", masked[0]);
    };
    for before in ["", "a", "ab", "user:", "u:"] {
        let once = |value: &str| STANDARD.encode(format!("{before}{value}"));
        shown(&once);
        shown(&|value| STANDARD.encode(format!("{before}{value}ab")));
        shown(&|value| STANDARD.encode(format!("x{}", once(value))));
        shown(&|value| hex(once(value).as_bytes()));
    }
}
