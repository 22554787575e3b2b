//! Rows that fit the terminal.

use super::{rows, texts::markdown, without_styles};
use lango_markdown::{Style, render};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

fn wrapped(text: &str, width: usize) -> Vec<String> {
    rows(text, width)
        .iter()
        .map(|row| without_styles(row))
        .collect()
}

#[test]
fn text_is_wrapped_at_words() {
    assert_eq!(
        wrapped("the quick brown fox jumps over it", 20),
        ["the quick brown fox", "jumps over it"]
    );
    assert_eq!(
        wrapped("exactly twenty chars", 20),
        ["exactly twenty chars"]
    );
}

#[test]
fn a_word_may_have_several_styles() {
    assert_eq!(
        rows("some words and **bo**ld`er`words", 20),
        [
            "some words and",
            "\u{1b}[1mbo\u{1b}[0mld\u{1b}[36mer\u{1b}[0mwords"
        ]
    );
}

#[test]
fn a_word_that_is_longer_than_the_row_is_broken() {
    let shown = wrapped(&format!("see {}", "x".repeat(50)), 20);
    assert_eq!(
        shown,
        ["see", &"x".repeat(20), &"x".repeat(20), &"x".repeat(10)]
    );
}

#[test]
fn wide_text_is_broken_between_characters_but_not_before_punctuation() {
    assert_eq!(
        wrapped("漢字漢字漢字漢字漢字。漢字", 20),
        ["漢字漢字漢字漢字漢", "字。漢字"]
    );
    assert_eq!(
        wrapped("text 漢字漢字漢字漢字漢字", 20),
        ["text 漢字漢字漢字漢", "字漢字"]
    );
}

#[test]
fn an_emoji_of_several_characters_is_not_broken() {
    let family = "👩‍👩‍👧";
    let shown = wrapped(&family.repeat(12), 20);
    assert_eq!(shown, [family.repeat(10), family.repeat(2)]);
}

#[test]
fn continued_rows_keep_indentation_and_bars() {
    assert_eq!(
        wrapped("- the quick brown fox\n  - jumps over the dog", 20),
        [
            "• the quick brown",
            "  fox",
            "  • jumps over the",
            "    dog"
        ]
    );
    assert_eq!(
        wrapped("> 10. jumps over the dog\n>\n>     more", 20),
        ["│ 10. jumps over the", "│     dog", "│", "│     more"]
    );
}

#[test]
fn code_is_wrapped_at_spaces_and_keeps_every_character() {
    for (code, rows) in [
        (
            "        indented(code, with, many, arguments);",
            &["        indented(code, ", "with, many, arguments);"][..],
        ),
        (
            "        a_name_that_is_long_and_has_no_space()",
            &["        a_name_that_is_lon", "g_and_has_no_space()"],
        ),
        (
            "short ACommandWithoutAnySpaceIn it",
            &["short ACommandWithoutAnySp", "aceIn it"],
        ),
        (
            "fills exactly twenty-six.. and more",
            &["fills exactly twenty-six..", " and more"],
        ),
    ] {
        let shown = wrapped(&format!("```\n{code}\n```"), 30);
        let shown: Vec<&str> = shown.iter().map(|row| &row[4..]).collect();
        assert_eq!(shown, rows);
        assert_eq!(shown.concat(), code);
    }
}

#[test]
fn tabs_are_replaced_by_spaces() {
    assert_eq!(wrapped("```\n\ta\tb\n```", 40), ["        a   b"]);
    assert_eq!(wrapped("a\tb", 40), ["a b"]);
}

#[test]
fn source_is_wrapped_and_has_no_escape_sequences() {
    let text = "**the** quick brown fox jumps\n\n- over it\n";
    let shown = render(text, Style::Source, 20);
    assert_eq!(shown, "**the** quick brown\nfox jumps\n\n- over it\n");
}

#[test]
fn without_colours_text_still_has_attributes() {
    let text = "# T\n\n**b** *i* `c`\n\n```rust\nfn a() {} // x\n```\n\n```diff\n+a\n-b\n```";
    let shown = render(text, Style::Uncoloured, 80);
    assert!(shown.contains("\u{1b}[1mb\u{1b}[0m \u{1b}[3mi\u{1b}[0m \u{1b}[1mc\u{1b}[0m"));
    for sequence in shown.split("\u{1b}[").skip(1) {
        let (codes, _) = sequence.split_once('m').unwrap();
        assert!(codes.split(';').all(|code| code.len() == 1), "{codes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_row_is_wider_than_the_terminal(
        text in prop_oneof![markdown(), "(?s).{0,200}", "[-> \n|`*1.a漢👩\u{200d}\u{fe0f}\u{301}]{0,120}"],
        width in 20usize..90,
    ) {
        for style in [Style::Coloured, Style::Uncoloured, Style::Source] {
            for row in render(&text, style, width).lines() {
                prop_assert!(without_styles(row).width() <= width, "{row:?}");
            }
        }
    }
}
