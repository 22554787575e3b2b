//! Makes text harmless for a terminal: what would be obeyed is shown instead.

use std::borrow::Cow;

/// The text with every control character but newline and tab replaced by a visible sign, so that it can neither move
/// the cursor, nor set a title, nor hide or reorder other text. A carriage return before a newline is dropped.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.contains(is_disruptive) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            _ if is_disruptive(letter) => out.push(sign_for(letter)),
            _ => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal would act on the character, or show other text differently because of it.
pub(crate) fn is_disruptive(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        // Embedding, override and isolation of writing directions, and the deprecated controls beside them.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => true,
        // Tags: a second, invisible alphabet.
        '\u{e0000}'..='\u{e007f}' => true,
        _ => letter.is_control(),
    }
}

/// Unicode has a picture for each of the old control characters.
fn sign_for(letter: char) -> char {
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
        assert!(matches!(sanitize("a\n\tb é 漢字 👩‍👩‍👧"), Cow::Borrowed(_)));
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
    fn line_ends_of_the_other_kind_stay_line_ends() {
        assert_eq!(sanitize("a\r\nb\r\n"), "a\nb\n");
    }

    proptest! {
        #[test]
        fn nothing_disruptive_is_left_and_once_is_enough(text in "(?s).{0,60}") {
            let clean = sanitize(&text).into_owned();
            prop_assert!(!clean.contains(is_disruptive));
            prop_assert_eq!(sanitize(&clean), clean.as_str());
        }
    }
}
