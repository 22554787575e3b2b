//! How whole texts look: blocks, lists, links, and what a browser would hide.

use super::{WIDTH, coloured, rendered};
use lango_markdown::{Style, render};

#[test]
fn plain_text_is_unchanged_and_uncoloured_text_is_sanitized() {
    let text = "# *hi* \u{1b}[2J\r\n";
    assert_eq!(render(text, Style::Plain, WIDTH), text);
    assert_eq!(render(text, Style::Source, WIDTH), "# *hi* ␛[2J\n");
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
fn what_a_browser_hides_of_links_fences_and_tables_is_shown() {
    assert_eq!(
        coloured("[text](https://x.example \"delete\nall\")"),
        "‹4›text‹›‹2› (https://x.example \"delete all\")‹›"
    );
    assert_eq!(rendered("![i](<> 'title')"), "i ( \"title\")");
    assert_eq!(
        coloured("```rust delete all\nlet\n```"),
        "‹2›rust delete all‹›\n    ‹1;35›let‹›"
    );
    assert_eq!(rendered("```mermaid\nx\n```"), "mermaid\n    x");
    assert_eq!(rendered("```a&#10;b\nx\n```"), "a b\n    x");
    for known in ["rust", "Text", "", "c++", "md", "Markdown", "csv"] {
        assert_eq!(rendered(&format!("```{known}\nx\n```")), "    x");
    }
    assert_eq!(rendered("```md title=a.md\nx\n```"), "md title=a.md\n    x");
    assert_eq!(
        rendered("|a|b|\n|-|-|\n|c|d|more|and *more*|\n"),
        "a │ b\n──┼────────────────────\nc │ d | more|and *more*\n"
    );
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
    assert!(render(&text, Style::Coloured, WIDTH).len() < 200_000);
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
    assert!(render(&quotes, Style::Coloured, WIDTH).len() < 1_000_000);
    let emphasis = format!("{}a{}", "**a ".repeat(3_000), "**".repeat(3_000));
    assert!(render(&emphasis, Style::Coloured, WIDTH).len() < 1_000_000);
}
