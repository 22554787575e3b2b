//! Observes and reflects without a model. Quotes sentences in which users say who they are, what they prefer or what
//! they decided, sentences with a date, and statements with a file name. Ignores everything else.
//!
//! Only text that the user typed is read, so observations have the trust label of that text. The phrases are English.

use lango_store::{MemoryRecord, UnobservedTurn};
use std::collections::HashSet;

/// How many bytes of a sentence are quoted.
const SENTENCE_BYTES: usize = 200;

/// The kinds of sentences, with the phrases that indicate them. The first match wins.
const SIGNS: [(&str, &[&str]); 3] = [
    (
        "preference",
        &[
            "i prefer ",
            "i like ",
            "i love ",
            "i hate ",
            "i don't like ",
            "i always ",
            "i never ",
            "my favorite ",
            "my favourite ",
            "from now on",
            "always use ",
            "never use ",
        ],
    ),
    (
        "decision",
        &[
            "decided",
            "let's use ",
            "let us use ",
            "we will use ",
            "we'll use ",
            "we agreed",
            "i chose ",
            "we chose ",
            "go with ",
        ],
    ),
    (
        "fact",
        &[
            "my name is ",
            "call me ",
            "i am ",
            "i'm ",
            "i live ",
            "i work ",
            "is called ",
            "is named ",
            "remember ",
        ],
    ),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The first words of requests. A file in a request, such as one to read, is not worth remembering.
const REQUESTS: [&str; 30] = [
    "add", "append", "can", "change", "copy", "count", "create", "delete", "edit", "fix", "find",
    "how", "is", "list", "make", "move", "open", "please", "print", "put", "read", "remove",
    "rename", "replace", "run", "save", "search", "show", "what", "write",
];

/// Returns the sentences in these turns that match the rules, one per line.
pub(super) fn observe(turns: &[UnobservedTurn]) -> Option<String> {
    let mut lines = Vec::new();
    for turn in turns {
        let Some(exchange) = &turn.exchange else {
            continue;
        };
        for sentence in sentences(exchange.typed_part()) {
            if let Some(kind) = kind_of(sentence) {
                let quote = &sentence[..sentence.floor_char_boundary(SENTENCE_BYTES)];
                lines.push(format!("- {kind} (turn {}): {quote}", turn.ordinal + 1));
            }
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Condenses memories by rules: as many of the newest lines as fit, without duplicates.
pub(super) fn reflect(parts: &[MemoryRecord], max_bytes: usize) -> Option<String> {
    let mut seen = HashSet::new();
    let mut lines = Vec::new();
    let mut space = max_bytes;
    let newest_first = parts.iter().rev().flat_map(|part| part.text.lines().rev());
    for line in newest_first {
        if !seen.insert(without_turn(line)) {
            continue;
        }
        let Some(left) = space.checked_sub(line.len() + 1) else {
            break;
        };
        space = left;
        lines.push(line);
    }
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns a line that [`observe`] wrote, without its kind and turn.
fn without_turn(line: &str) -> &str {
    line.split_once("): ").map_or(line, |(_, quote)| quote)
}

/// Returns the kind of a sentence; `None` if it is not worth remembering.
fn kind_of(sentence: &str) -> Option<&'static str> {
    let lower = sentence.to_lowercase().replace('’', "'");
    if lower.contains("forget") {
        return None;
    }
    let has = |sign: &str| {
        lower
            .match_indices(sign)
            .any(|(at, _)| !lower[..at].ends_with(char::is_alphanumeric))
    };
    let by_sign = SIGNS
        .iter()
        .find(|(_, signs)| signs.iter().any(|sign| has(sign)))
        .map(|(kind, _)| *kind);
    by_sign
        .or_else(|| is_about_mine(&lower).then_some("fact"))
        .or_else(|| has_date(&lower).then_some("date"))
        .or_else(|| names_file(sentence, &lower).then_some("file"))
}

/// Matches a statement that names a file.
fn names_file(sentence: &str, lower: &str) -> bool {
    let first = lower.split(|letter: char| !letter.is_alphabetic()).next();
    let is_request = lower.ends_with('?') || first.is_some_and(|word| REQUESTS.contains(&word));
    !is_request && sentence.split_whitespace().any(is_file)
}

/// Matches `my … is …` with a few words in between.
fn is_about_mine(lower: &str) -> bool {
    let mut words = lower.split_whitespace();
    words.any(|word| word == "my" || word == "our")
        && words
            .skip(1)
            .take(4)
            .any(|word| word == "is" || word == "are")
}

/// Matches `2026-03-01`, or the name of a month next to a number.
fn has_date(lower: &str) -> bool {
    let words: Vec<&str> = lower
        .split(|letter: char| !letter.is_alphanumeric() && letter != '-')
        .collect();
    let is_iso = |word: &&str| {
        let parts: Vec<&str> = word.split('-').collect();
        matches!(parts.as_slice(), [year, month, day] if (year.len(), month.len(), day.len()) == (4, 2, 2))
            && word
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_digit())
    };
    let has_digit = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
    let is_named = |pair: &[&str]| match pair {
        [left, right] => {
            MONTHS.contains(left) && has_digit(right) || has_digit(left) && MONTHS.contains(right)
        }
        _ => false,
    };
    words.iter().any(is_iso) || words.windows(2).any(is_named)
}

/// Matches a file name with an extension, with or without a folder.
fn is_file(word: &str) -> bool {
    let word =
        word.trim_matches(|letter: char| !letter.is_alphanumeric() && !"/._~".contains(letter));
    let word = word.trim_end_matches('.');
    let Some((stem, ending)) = word.rsplit_once('.') else {
        return false;
    };
    let is_ending = (1..=5).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_ending && stem.len() > 1 && !word.contains("//") && stem.contains(char::is_alphanumeric)
}

/// Splits a text into trimmed sentences.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut rest = line.trim();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            // Punctuation ends a sentence only before white space, so the dot in a file name does not.
            let end = rest
                .match_indices(['.', '!', '?'])
                .map(|(at, mark)| at + mark.len())
                .find(|at| rest[*at..].starts_with(char::is_whitespace))
                .unwrap_or(rest.len());
            let sentence = &rest[..end];
            rest = rest[end..].trim_start();
            Some(sentence)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_classified_by_what_they_say() {
        let kinds = [
            ("I prefer metric units.", Some("preference")),
            ("Please, from now on answer in French", Some("preference")),
            ("We decided to ship on Monday.", Some("decision")),
            ("My name is Ada.", Some("fact")),
            ("My sister's birthday is in spring", Some("fact")),
            ("I’m allergic to nuts", Some("fact")),
            ("Is the meeting on 2026-03-01?", Some("date")),
            ("See you on 3 May!", Some("date")),
            ("The plan is in notes/plan.md for now", Some("file")),
            ("Read notes/plan.md for me", None),
            ("Which lines of Cargo.toml changed?", None),
            ("What time is it?", None),
            ("Forget that my name is Ada", None),
            ("It costs 3.50 e.g. today", None),
            ("phi like theta", None),
        ];
        for (sentence, kind) in kinds {
            assert_eq!(kind_of(sentence), kind, "{sentence}");
        }
    }

    #[test]
    fn a_sentence_does_not_end_in_a_file_name() {
        let found: Vec<&str> = sentences("Read a.txt. Then go!  Now\n\nend").collect();
        assert_eq!(found, ["Read a.txt.", "Then go!", "Now", "end"]);
    }
}
