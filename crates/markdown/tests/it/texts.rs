//! Random texts.

use proptest::prelude::*;
use proptest::sample::select;

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
    "1. one",
    "1. two **bold** `code`",
    "   in one",
    "- [x] done [link](http://example.com/a)",
    "|漢字|*b*| `c`",
    "```diff",
    "```mermaid and more",
    "|漢字|b|c|d|e|",
    "[link](/a \"title\")",
    "+added",
    "let x = \"a\"; /* open",
    "*/ fn main() {}",
    "a long line of text that must be wrapped, **with bold words** and `some code` in the middle of it, more than once",
    "- a long item of a list that must be wrapped as well, because it does not fit on one row of any terminal at all",
    "漢字かな交じり文の長い行は、空白がなくても折り返されなければならない。絵文字👩‍👩‍👧も含む。",
];

pub(crate) fn markdown() -> impl Strategy<Value = String> {
    (prop::collection::vec(select(LINES), 0..14), any::<bool>())
        .prop_map(|(lines, ends)| lines.join("\n") + if ends { "\n" } else { "" })
}

/// Well-formed texts of many words, in which every marker is closed on its line. There are no tables, because a cut
/// table keeps the widths that its columns had.
pub(crate) fn document() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(
        select(
            &[
                "a",
                "word",
                "**bold words**",
                "`code`",
                "*it*",
                "[link](http://x.y/z)",
                "漢字",
                "longerword",
            ][..],
        ),
        1..40,
    )
    .prop_map(|words| words.join(" "));
    let code = prop::collection::vec(
        select(&["let x = 1;", "", "  \"text\" // more", "/* open", "*/ x()"][..]),
        1..12,
    )
    .prop_map(|lines| lines.join("\n"));
    let fenced = code.prop_map(|code| format!("```rust\nstart\n{code}\nend\n```"));
    let paragraph = prop::collection::vec(words.clone(), 1..4).prop_map(|lines| lines.join("\n"));
    let heading = words.prop_map(|words| format!("## {words}"));
    let leaf = prop_oneof![paragraph, fenced, heading];
    let block = leaf.prop_recursive(3, 24, 4, |inner| {
        let blocks = prop::collection::vec(inner, 1..4);
        prop_oneof![
            (
                blocks.clone(),
                select(&["- ", "* ", "1. ", "27) ", "-   "][..]),
                any::<bool>()
            )
                .prop_map(|(blocks, marker, is_loose)| list(&blocks, marker, is_loose)),
            blocks.prop_map(|blocks| indent(&blocks.join("\n\n"), "> ", "> ")),
        ]
    });
    prop::collection::vec(block, 1..4).prop_map(|blocks| blocks.join("\n\n"))
}

fn list(blocks: &[String], marker: &str, is_loose: bool) -> String {
    let spaces = " ".repeat(marker.len());
    let items = blocks.iter().map(|block| indent(block, marker, &spaces));
    let items: Vec<String> = items.collect();
    items.join(if is_loose { "\n\n" } else { "\n" })
}

fn indent(text: &str, first: &str, rest: &str) -> String {
    let indented = format!("{first}{}", text.replace('\n', &format!("\n{rest}")));
    let lines: Vec<&str> = indented.lines().map(str::trim_end).collect();
    lines.join("\n")
}
