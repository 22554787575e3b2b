//! Text for people: harmless on a terminal, on one line, with counts and ages in words.
//!
//! Much of what lango shows was written by models, web pages and files. [`sanitize`] shows control characters instead of
//! letting a terminal obey them.

mod json;

pub use json::{Layout, json};

use crate::Timestamp;
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar as _;

/// Replaces every control and format character except newline and tab by a visible symbol, so that the text cannot
/// move the cursor, set a title, or hide, reorder or smuggle other text. A carriage return before a newline is
/// dropped. Joiners inside an emoji or a word of a joining script stay.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.contains(is_disruptive) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        let shown = match letter {
            '\r' if next == Some('\n') => continue,
            _ if !is_disruptive(letter) || is_part_of_glyph(before, letter, next) => letter,
            _ => visible_symbol(letter),
        };
        out.push(shown);
        before = Some(shown);
    }
    if out == text {
        return Cow::Borrowed(text);
    }
    Cow::Owned(out)
}

/// Returns whether a terminal would act on the character, show nothing for it, or change other text because of it:
/// control characters, Unicode format characters (category Cf), and other invisible characters.
pub fn is_disruptive(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' => true,
        // Invisible letters.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' => true,
        // Zero-width characters, joiners, and characters that control direction and line breaks.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Variation selectors: a sequence of them can encode any text.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => true,
        '\u{feff}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        // Tags: a second, invisible alphabet.
        '\u{e0000}'..='\u{e007f}' => true,
        _ => letter.is_control(),
    }
}

/// Returns whether a character is invisible: a control or format character, or one without width.
pub fn is_invisible(letter: char) -> bool {
    letter.is_control() || is_disruptive(letter) || letter.width() == Some(0)
}

/// Describes how long ago something was.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.0.saturating_sub(then.0) / 1000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Formats a number with its noun: `1 turn`, `2 turns`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns the beginning of a text on one line, sanitized.
pub fn one_line(text: &str, max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = sanitize(&line).into_owned();
    if line.chars().count() <= max {
        return line;
    }
    let beginning: String = line.chars().take(max.saturating_sub(1)).collect();
    format!("{beginning}…")
}

/// Returns whether a joiner or a variation selector belongs to a visible glyph around it.
fn is_part_of_glyph(before: Option<char>, letter: char, next: Option<char>) -> bool {
    let (Some(before), next) = (before, next.unwrap_or(' ')) else {
        return false;
    };
    match letter {
        '\u{200d}' if is_emoji(before) || before == '\u{fe0f}' => is_emoji(next),
        '\u{200c}' | '\u{200d}' => is_joining(before) && is_joining(next),
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(before) || matches!(before, '#' | '*' | '0'..='9'),
        '\u{e0100}'..='\u{e01ef}' => is_ideograph(before),
        _ => false,
    }
}

/// Returns whether the character is an emoji or a symbol that can be shown as one.
fn is_emoji(letter: char) -> bool {
    matches!(letter, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2934}' | '\u{2935}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Returns whether the character belongs to a script whose spelling needs joiners: Arabic, Syriac, and those of India
/// and its neighbours.
fn is_joining(letter: char) -> bool {
    matches!(letter, '\u{620}'..='\u{109f}' | '\u{1780}'..='\u{18af}') && !is_disruptive(letter)
}

fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Returns the Unicode picture of an ASCII control character, or the replacement character.
fn visible_symbol(letter: char) -> char {
    match letter {
        '\0'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(letter)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        _ => char::REPLACEMENT_CHARACTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn harmless_text_is_not_copied() {
        for text in [
            "a\n\tb é 漢字 👩‍👩‍👧",
            "❤️ 1️⃣ ☎︎ 🏳️‍🌈 👩🏽‍🚀",
            "نمی\u{200c}خواهم",
            "क्\u{200d}ष",
        ] {
            assert!(matches!(sanitize(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(sanitize("\u{1b}[2J"), "␛[2J");
        assert_eq!(sanitize("\u{1b}]0;title\u{7}"), "␛]0;title␇");
        assert_eq!(sanitize("\u{9b}31m\u{7f}"), "\u{fffd}31m␡");
    }

    #[test]
    fn text_cannot_be_overwritten_reordered_or_smuggled() {
        assert_eq!(sanitize("rm -rf /\recho hi"), "rm -rf /␍echo hi");
        assert_eq!(
            sanitize("a\u{202e}b\u{2066}c\u{e0041}"),
            "a\u{fffd}b\u{fffd}c\u{fffd}"
        );
    }

    #[test]
    fn invisible_characters_become_visible() {
        for letter in [
            '\u{ad}',
            '\u{61c}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2060}',
            '\u{2064}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0061}',
            '\u{e0100}',
        ] {
            let text = format!("pay{letter}load");
            assert_eq!(
                sanitize(&text),
                "pay\u{fffd}load",
                "{:x}",
                u32::from(letter)
            );
        }
        assert_eq!(
            sanitize("👩\u{200d}rm 👍\u{fe0f}\u{fe0f}"),
            "👩\u{fffd}rm 👍\u{fe0f}\u{fffd}"
        );
    }

    #[test]
    fn carriage_returns_before_newlines_are_dropped() {
        assert_eq!(sanitize("a\r\nb\r\n"), "a\nb\n");
    }

    proptest! {
        #[test]
        fn nothing_disruptive_is_left_and_sanitizing_twice_changes_nothing(text in "(?s)[a👩\u{200b}-\u{200f}\u{fe0f}\u{e0041}\u{1b}क]{0,12}.{0,60}") {
            let clean = sanitize(&text).into_owned();
            let always = |letter: char| is_disruptive(letter) && !is_part_of_glyph(Some('👩'), letter, Some('👩')) && !is_part_of_glyph(Some('क'), letter, Some('क')) && !('\u{e0100}'..='\u{e01ef}').contains(&letter);
            prop_assert!(!clean.contains(always));
            prop_assert_eq!(sanitize(&clean), clean.as_str());
        }
    }
}
