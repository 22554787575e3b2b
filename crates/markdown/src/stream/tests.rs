//! The cost of a push.

use super::*;
use crate::source::work::{PARSED_BYTES, RENDERED_ROWS};

const LIVE_ROWS: usize = 20;
const WIDTH: usize = 80;

/// Streams a text in pieces of 100 bytes. Returns the largest number of bytes that a push parsed.
fn parsed_by_a_push(text: &str) -> usize {
    let mut stream = Stream::new(Style::Coloured, WIDTH, LIVE_ROWS);
    let mut most = 0;
    let mut rows = 0;
    for piece in text.as_bytes().chunks(100) {
        PARSED_BYTES.take();
        rows += stream.push(std::str::from_utf8(piece).unwrap()).len();
        most = most.max(PARSED_BYTES.take());
        assert!(stream.live().len() <= LIVE_ROWS);
    }
    assert!(rows + stream.finish("").len() > text.len() / 400);
    most
}

/// A push parses the open block a few times, and that has at most as many rows as the live region.
#[track_caller]
fn assert_bounded(text: &str) {
    let most = parsed_by_a_push(text);
    assert!(most < 8 * WIDTH * LIVE_ROWS, "{most}");
}

#[test]
fn a_push_into_a_long_answer_does_not_parse_the_whole() {
    let paragraph = "Some **bold text** and `code`, as models write them. ".repeat(12);
    let part = format!(
        "## Heading\n\n{paragraph}\n\n- **Item**: {paragraph}\n- more\n  - nested\n\n\
         ```rust\nfn main() {{}}\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n"
    );
    assert_bounded(&part.repeat((1 << 20) / part.len()));
}

#[test]
fn a_push_into_a_long_paragraph_or_code_block_does_not_parse_the_whole() {
    assert_bounded(&"word of a long paragraph ".repeat(8_000));
    let line = "    let value = compute(\"text\"); // comment\n";
    assert_bounded(&format!("```rust\n{}", line.repeat(4_500)));
}

#[test]
fn a_push_into_any_other_long_block_does_not_parse_the_whole() {
    for (start, part) in [
        ("", "**bold** line\n"),
        ("", "> quoted text\n"),
        ("", "- > - nested "),
        ("", "x"),
        ("```rust\n", "let value = compute(42); "),
        ("- item\n", "  - nested item with text\n"),
        ("- item\n\n  ```\n", "  code in an item\n"),
        ("|a|b|\n|-|-|\n", "| some cell | other cell |\n"),
        ("<!-- comment\n", "text in a comment\n"),
        ("    code\n", "    indented code\n"),
    ] {
        let text = format!("{start}{}", part.repeat(24_000 / part.len()));
        let most = parsed_by_a_push(&text);
        assert!(
            most < 6 * BYTES_PER_COLUMN * WIDTH * LIVE_ROWS,
            "{start}{part}: {most}"
        );
    }
}

/// Returns how many containers are open at once in what the stream keeps.
fn depth(stream: &Stream) -> usize {
    let (mut depth, mut deepest) = (0, 0);
    for (event, _) in parser(&stream.open).into_offset_iter() {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Streams markers in pieces of 100 bytes. Checks what each push parses, and how deep that is nested.
fn assert_bounded_markers(part: &str, bytes: usize) {
    // A small live region, because all of it is parsed with each push.
    let (rows, columns) = (2, MIN_WIDTH);
    let max_parsed = 12 * (BYTES_PER_COLUMN * columns * rows + 300);
    let mut stream = Stream::new(Style::Coloured, columns, rows);
    for piece in part.repeat(bytes / part.len()).as_bytes().chunks(100) {
        PARSED_BYTES.take();
        stream.push(std::str::from_utf8(piece).unwrap());
        let parsed = PARSED_BYTES.take();
        assert!(parsed < max_parsed, "{part}: {parsed}");
        assert!(depth(&stream) < 140, "{part}: {}", depth(&stream));
    }
}

#[test]
fn a_push_into_a_megabyte_of_markers_costs_no_more_than_one_into_other_text() {
    for part in ["- ", ">", "* > ", "1. ", "[", "*", "`"] {
        assert_bounded_markers(part, 1 << 20);
    }
    for part in [
        "> ",
        "+ 1) ",
        "_",
        "`` ` ",
        "<",
        "![",
        "](",
        "*a_ ",
        "- x\n  > ",
        "*a*",
        "&",
        "|",
        "#",
        "\\",
        "\u{1b}x",
    ] {
        assert_bounded_markers(part, 1 << 16);
    }
}

#[test]
fn a_block_that_cannot_be_cut_ends() {
    let cell = format!("|a|b|\n|-|-|\n|{}", "word ".repeat(40_000));
    let most = parsed_by_a_push(&cell);
    assert!(most < 6 * BYTES_PER_COLUMN * WIDTH * LIVE_ROWS, "{most}");
}

/// Streams a table line by line. Returns how many rows were rendered, with those that were rendered again.
fn rendered_rows_of_table(heading: &str, columns: usize, rows: usize, row: &str) -> usize {
    let mut stream = Stream::new(Style::Coloured, WIDTH, LIVE_ROWS);
    RENDERED_ROWS.take();
    stream.push(&format!("{heading}\n{}|\n", "|-".repeat(columns)));
    for _ in 0..rows {
        stream.push(row);
    }
    stream.finish("");
    RENDERED_ROWS.take()
}

#[test]
fn rows_of_a_table_with_many_columns_cost_no_more_than_their_text() {
    let heading = "|a".repeat(400) + "|";
    let rendered = rendered_rows_of_table(&heading, 400, 1000, "x\n");
    assert!(rendered < 1000 * 4 * LIVE_ROWS, "{rendered}");
    let full = "|x".repeat(400) + "|\n";
    let rendered = rendered_rows_of_table(&heading, 400, 100, &full);
    assert!(rendered < 100 * 400 * 8, "{rendered}");
}
