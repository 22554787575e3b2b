//! The rendering of a model's markdown in a terminal, and properties of splitting it into blocks.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use lango_core::text::sanitize;
use lango_markdown::{Blocks, Style, render};
use proptest::prelude::*;
use proptest::sample::select;

/// Returns the coloured text, with `‹1›` for each escape sequence that starts a style and `‹›` for the one that ends
/// it.
fn coloured(text: &str) -> String {
    let text = render(text, Style::Coloured).replace("\u{1b}[0m", "‹›");
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap();
        out.push_str(&format!("‹{codes}›{rest}"));
    }
    out
}

/// Returns the coloured text without its escape sequences.
fn rendered(text: &str) -> String {
    let text = coloured(text);
    text.split('‹')
        .map(|part| part.split_once('›').map_or(part, |(_, rest)| rest))
        .collect()
}

fn blocks(pieces: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut splitter = Blocks::default();
    let mut all: Vec<String> = pieces
        .into_iter()
        .flat_map(|piece| splitter.push(piece.as_ref()))
        .collect();
    all.extend(splitter.finish());
    all
}

#[test]
fn plain_text_is_unchanged_and_uncoloured_text_is_sanitized() {
    let text = "# *hi* \u{1b}[2J\r\n";
    assert_eq!(render(text, Style::Plain), text);
    assert_eq!(render(text, Style::Uncoloured), "# *hi* ␛[2J\n");
}

#[test]
fn inline_styles_combine_and_end_correctly() {
    assert_eq!(coloured("a *b* **c** `d`"), "a ‹3›b‹› ‹1›c‹› ‹36›d‹›");
    assert_eq!(coloured("*a **b** c*"), "‹3›a ‹›‹1;3›b‹›‹3› c‹›");
    assert_eq!(coloured("# Title **x** y"), "‹1›Title ‹›‹1›x‹›‹1› y‹›");
}

#[test]
fn a_style_ends_at_the_end_of_the_line() {
    assert_eq!(coloured("> **a\n> b**"), "‹2›│‹› ‹1›a‹›\n‹2›│‹› ‹1›b‹›");
}

#[test]
fn links_show_their_target() {
    assert_eq!(
        coloured("[text](http://x.y)"),
        "‹4›text‹›‹2› (http://x.y)‹›"
    );
    assert_eq!(rendered("<http://x.y>"), "http://x.y");
    assert_eq!(rendered("![alt](a.png) [empty]()"), "alt (a.png) empty");
}

#[test]
fn code_is_indented_dim_and_otherwise_untouched() {
    let text = "```rust\nfn main() {\n\n    *x* | `y`  \n}\n```";
    assert_eq!(
        rendered(text),
        "    fn main() {\n\n        *x* | `y`  \n    }"
    );
    assert_eq!(coloured("    a"), "    ‹2›a‹›");
}

#[test]
fn lists_nest_and_count() {
    let text = "- a\n  - b\n    more\n- c\n\n9. x\n10. y\n    - z";
    assert_eq!(
        rendered(text),
        "• a\n  • b\n    more\n• c\n\n9. x\n10. y\n    • z"
    );
}

#[test]
fn loose_lists_keep_blank_lines_between_items() {
    assert_eq!(rendered("1. a\n\n   b\n\n2. c\n"), "1. a\n\n   b\n\n2. c\n");
    assert_eq!(
        rendered("- a\n\n  ```\n  code\n  ```\n- b"),
        "• a\n\n      code\n\n• b"
    );
}

#[test]
fn an_empty_item_still_has_its_marker() {
    assert_eq!(rendered("- a\n-\n- c"), "• a\n• \n• c");
}

#[test]
fn a_block_without_text_prints_nothing() {
    assert_eq!(rendered("a\n\n#\n\nb"), "a\n\nb");
    assert_eq!(rendered("a\n\n> ```\n> ```\n> b"), "a\n\n│ b");
    assert_eq!(rendered("> a\n> ```\n\nb"), "│ a\n\nb");
    assert_eq!(rendered("- a\n  #\n\nb"), "• a\n\nb");
}

#[test]
fn quotes_have_a_bar_on_every_line() {
    assert_eq!(
        rendered("> a\n>\n> - b\n> - c\n\nd"),
        "│ a\n│\n│ • b\n│ • c\n\nd"
    );
    assert_eq!(rendered("a\n\n> b\n>> c"), "a\n\n│ b\n│\n│ │ c");
}

#[test]
fn table_columns_align_with_wide_characters() {
    let text =
        "| name | n | mid |\n|:--|--:|:-:|\n| **ab** | 1 | x |\n| 漢字漢 | 100 | yyyyy |\n| c |";
    let expected = "name   │   n │  mid\n───────┼─────┼──────\nab     │   1 │   x\n漢字漢 │ 100 │ yyyyy\nc      │     │";
    let shown: Vec<String> = rendered(text)
        .lines()
        .map(|line| line.trim_end().into())
        .collect();
    assert_eq!(shown.join("\n"), expected);
}

#[test]
fn a_long_cell_does_not_widen_the_other_rows() {
    let text = format!(
        "|a|b|\n|-|-|\n|{}|x|\n{}",
        "w".repeat(10_000),
        "|1|2|\n".repeat(1_000)
    );
    assert!(render(&text, Style::Coloured).len() < 200_000);
}

#[test]
fn rules_and_blocks_are_separated_by_one_blank_line() {
    assert_eq!(
        rendered("# a\nb\n***\n\n\nc"),
        format!("a\n\nb\n\n{}\n\nc", "─".repeat(40))
    );
}

#[test]
fn trailing_line_breaks_are_kept_up_to_one_blank_line() {
    for (text, expected) in [
        ("a", "a"),
        ("a\n", "a\n"),
        ("a\n\n\n\n", "a\n\n"),
        ("\n\na", "a"),
        ("\n\n", ""),
    ] {
        assert_eq!(rendered(text), expected);
    }
}

#[test]
fn html_that_a_browser_would_hide_is_shown() {
    assert_eq!(
        rendered("<!-- secret -->\n\n<b>x</b> y"),
        "<!-- secret -->\n\n<b>x</b> y"
    );
    assert_eq!(
        rendered("[//]: # (secret)\n\n[a][b]\n\n[b]: http://x.y"),
        "[//]: # (secret)\n\n[a][b]\n\n[b]: http://x.y"
    );
    assert_eq!(rendered("> [x]: /u\n\n- [x]: /v"), "│ [x]: /u\n\n• [x]: /v");
    let stubborn = "[x]: /secret\n".repeat(20);
    assert_eq!(rendered(&stubborn), stubborn);
}

#[test]
fn entities_and_urls_cannot_smuggle_escape_sequences() {
    for text in [
        "&#27;[2J",
        "`\u{1b}[2J`",
        "[a](<\u{1b}]0;x>)",
        "[a](&#x1b;x)",
        "```\n\u{9b}2J\n```",
        "<b \u{1b}>",
        "|&#27;|\n|-|",
    ] {
        let shown = rendered(text);
        assert!(
            !shown.contains(|letter: char| letter.is_control() && letter != '\n'),
            "{text:?}: {shown:?}"
        );
    }
}

#[test]
fn deep_nesting_does_not_take_quadratic_space() {
    let quotes = format!("{}a\n{}", ">".repeat(3_000), "a\n".repeat(3_000));
    assert!(render(&quotes, Style::Coloured).len() < 1_000_000);
    let emphasis = format!("{}a{}", "**a ".repeat(3_000), "**".repeat(3_000));
    assert!(render(&emphasis, Style::Coloured).len() < 1_000_000);
}

#[test]
fn a_paragraph_is_printed_at_its_blank_line_and_a_list_when_the_next_block_starts() {
    let mut splitter = Blocks::default();
    assert_eq!(splitter.push("one\ntwo"), [""; 0]);
    assert_eq!(splitter.push("\n\n- a\n\n"), ["one\ntwo\n\n"]);
    assert_eq!(splitter.push("- b\n\n  c\n\n"), [""; 0]);
    assert_eq!(splitter.push("T"), ["- a\n\n- b\n\n  c\n\n"]);
    assert_eq!(splitter.push("he end"), [""; 0]);
    assert_eq!(splitter.finish().as_deref(), Some("The end"));
    assert_eq!(Blocks::default().finish(), None);
}

#[test]
fn fenced_code_is_not_split_and_is_printed_at_the_blank_line_after_it() {
    let text = "```\na\n\n~~~\n\n`b`\n\n- c\n```\n\nafter\n\n";
    assert_eq!(
        blocks([text]),
        ["```\na\n\n~~~\n\n`b`\n\n- c\n```\n\n", "after\n\n"]
    );
    let mut splitter = Blocks::default();
    assert_eq!(splitter.push("```\na\n```\n\n"), ["```\na\n```\n\n"]);
}

#[test]
fn long_code_and_many_blank_lines_are_split_in_reasonable_time() {
    let text = format!("```\n{}```\n\nend", "line\n\n".repeat(50_000));
    assert_eq!(blocks([&text]).len(), 2);
    let text = format!("- a\n{}end", "\n".repeat(200_000));
    assert_eq!(blocks([&text]).len(), 2);
}

/// Lines that start, continue, end or resemble every kind of block.
const LINES: &[&str] = &[
    "",
    "",
    "",
    "",
    "text",
    "*more* text",
    "# head",
    "===",
    "- item",
    "- ",
    "* other",
    "  inner",
    "    deep",
    "1. one",
    "2) two",
    "> quote",
    ">",
    "> - in",
    "> ```",
    "```",
    "````",
    "~~~",
    "``` rust",
    "  ```",
    "- ```",
    "|a|b|",
    "|-|-|",
    "---",
    "***",
    "<div>",
    "<!-- c",
    "-->",
    "<pre>",
    "</pre>",
    "[x]: /u",
    "[x]: /u 'a",
    "[a][x]",
    "\t",
    " ",
    "a\r\rb",
    "  in\r\rout",
    "```\rx\r```",
    "\\",
    "&#27;",
    "&amp;",
    "**a",
    "b**",
    "`",
    "<b>",
    "x  ",
    "\u{1b}[1m",
    "\u{2028}",
    "+ p",
    "10. ten",
];

fn markdown() -> impl Strategy<Value = String> {
    (prop::collection::vec(select(LINES), 0..14), any::<bool>())
        .prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn joined_blocks_equal_the_text_however_it_was_split(
        text in markdown(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = blocks([&text]);
        prop_assert_eq!(whole.concat(), text.as_str());
        let by_letter = blocks(text.chars().map(String::from));
        prop_assert_eq!(&by_letter, &whole);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        prop_assert_eq!(&blocks(pieces), &whole);
    }

    #[test]
    fn rendering_blocks_one_by_one_equals_rendering_the_whole(text in markdown()) {
        let one_by_one: String = blocks([&text]).iter().map(|block| render(block, Style::Coloured)).collect();
        let whole = render(&text, Style::Coloured);
        prop_assert_eq!(one_by_one.trim_end(), whole.trim_end());
    }

    #[test]
    fn only_our_own_styles_reach_the_terminal(text in prop_oneof![markdown(), "(?s).{0,60}"]) {
        let shown = rendered(&text);
        prop_assert_eq!(sanitize(&shown), shown.as_str());
    }
}
