//! Compares sample outputs with real ones, without what differs from run to run.

/// A line of a sample that stands for any number of lines.
const ELLIPSIS: &str = "…";

/// Returns whether an output is the one that a page shows.
pub(super) fn matches_sample(sample: &str, output: &str) -> bool {
    let (head, tail) = split(sample);
    let output: Vec<String> = output.lines().map(normalized).collect();
    let head: Vec<String> = head.iter().map(|line| normalized(line)).collect();
    match tail {
        None => output == head,
        Some(tail) => {
            let tail: Vec<String> = tail.iter().map(|line| normalized(line)).collect();
            output.len() >= head.len() + tail.len()
                && output.starts_with(&head)
                && output.ends_with(&tail)
        }
    }
}

/// Returns the text that a page should show. A sample with an ellipsis keeps as many lines before and after it.
pub(super) fn updated_sample(sample: &str, output: &str) -> String {
    let (head, tail) = split(sample);
    let lines: Vec<&str> = output.lines().collect();
    match tail {
        Some(tail) if lines.len() > head.len() + tail.len() => {
            let mut shown = lines[..head.len()].to_vec();
            shown.push(ELLIPSIS);
            shown.extend(&lines[lines.len() - tail.len()..]);
            shown.join("\n")
        }
        _ => lines.join("\n"),
    }
}

/// Splits a sample at its ellipsis.
fn split(sample: &str) -> (Vec<&str>, Option<Vec<&str>>) {
    let lines: Vec<&str> = sample.lines().collect();
    match lines.iter().position(|line| *line == ELLIPSIS) {
        Some(at) => (lines[..at].to_vec(), Some(lines[at + 1..].to_vec())),
        None => (lines, None),
    }
}

/// Replaces ids, keys, hashes, durations, dates, times and lango's version by words, and runs of spaces by one space.
fn normalized(line: &str) -> String {
    let mut result: Vec<String> = Vec::new();
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut index = 0;
    while index < words.len() {
        let is_duration = words[index].trim_start_matches('(').parse::<f64>().is_ok()
            && words.get(index + 1).is_some_and(|next| is_unit(next));
        if is_duration {
            result.push("DURATION".to_owned());
            index += 1;
        } else {
            result.push(normalized_word(words[index]));
        }
        index += 1;
    }
    result.join(" ")
}

fn is_unit(word: &str) -> bool {
    ["µs", "ms", "s", "min"].contains(&word.trim_end_matches([',', ';', '.', ')']))
}

/// Replaces the parts of a word, such as the values in compact JSON.
fn normalized_word(word: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
    let mut result = String::new();
    let mut rest = word;
    while let Some(start) = rest.find(is_part) {
        let end = rest[start..].find(|c| !is_part(c));
        let end = end.map_or(rest.len(), |length| start + length);
        result.push_str(&rest[..start]);
        let part = rest[start..end].trim_end_matches(['.', ':', '-']);
        result.push_str(replacement(part).unwrap_or(part));
        result.push_str(&rest[start + part.len()..end]);
        rest = &rest[end..];
    }
    result + rest
}

fn replacement(part: &str) -> Option<&'static str> {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_digit_at = |index: usize| part.as_bytes()[index].is_ascii_digit();
    let is_id = |text: &str| {
        text.len() >= 8
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let is_date = part.len() >= 10
        && part.is_ascii()
        && [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit_at)
        && [part.as_bytes()[4], part.as_bytes()[7]] == *b"--";
    let is_time = part.len() >= 5
        && part.contains(':')
        && part
            .bytes()
            .all(|b| b.is_ascii_digit() || b == b':' || b == b'.');
    match part.split_once('_') {
        Some((kind, id)) if kind.len() == 1 && is_id(id) => return Some("ID"),
        Some(("lango", key)) if key.len() >= 32 && is_hex(key) => return Some("KEY"),
        _ => {}
    }
    let is_uuid = part.len() == 36 && is_hex(&part.replace('-', ""));
    let is_hash = part.len() >= 16 && is_hex(part.strip_prefix("0x").unwrap_or(part));
    match () {
        () if is_date => Some("DATE"),
        () if is_time => Some("TIME"),
        () if is_uuid => Some("ID"),
        () if is_hash => Some("HASH"),
        () if part == env!("CARGO_PKG_VERSION") => Some("VERSION"),
        () => None,
    }
}

#[test]
fn samples_match_outputs_that_differ_only_in_what_varies() {
    let same = [
        ("a  0.1 s · b", "a 12 ms · b"),
        ("--session s_9g1h0e9vyxz4", "--session s_c0jq36bsp561"),
        (
            r#"{"id":"t_9g1h0e9vyxz4","at":"2026-11-18T03:57:34.975Z"}"#,
            r#"{"id":"t_c0jq36bsp561","at":"2027-01-01T00:00:00.1Z"}"#,
        ),
        ("first\n…\nlast", "first\n1\n2\nlast"),
    ];
    for (sample, output) in same {
        assert!(matches_sample(sample, output), "{sample}: {output}");
    }
    let different = [
        ("7 folders", "8 folders"),
        ("fs_list", "fs_read"),
        ("a\nb", "a"),
        ("first\n…\nlast", "first\n1"),
        ("5 ms", "5 MB"),
    ];
    for (sample, output) in different {
        assert!(!matches_sample(sample, output), "{sample}: {output}");
    }
}
