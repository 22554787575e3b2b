//! Tables that fit the terminal.

use super::{rows, without_styles};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

fn drawn(text: &str, width: usize) -> Vec<String> {
    let rows = rows(text, width);
    rows.iter()
        .map(|row| without_styles(row).trim_end().into())
        .collect()
}

const FRUIT: &str = "| name | what it is | price |
|:--|:-:|--:|
| apple | a round fruit that grows on trees | 1.20 |
| 漢字 | **short** | 100.00 |
";

#[test]
fn a_table_that_fits_is_as_wide_as_its_cells() {
    assert_eq!(
        drawn(FRUIT, 80),
        [
            "name  │            what it is             │  price",
            "──────┼───────────────────────────────────┼───────",
            "apple │ a round fruit that grows on trees │   1.20",
            "漢字  │               short               │ 100.00",
        ]
    );
}

#[test]
fn a_wide_column_shrinks_and_its_cells_are_wrapped() {
    assert_eq!(
        drawn(FRUIT, 40),
        [
            "name  │       what it is        │  price",
            "──────┼─────────────────────────┼───────",
            "apple │   a round fruit that    │   1.20",
            "      │     grows on trees      │",
            "漢字  │          short          │ 100.00",
        ]
    );
}

#[test]
fn wide_columns_share_the_width() {
    let long = "word ".repeat(30);
    let shown = drawn(&format!("|a|b|c|\n|-|-|-|\n|{long}|{long}|x|\n"), 43);
    let bars: Vec<usize> = shown[0].match_indices('│').map(|(at, _)| at).collect();
    let first = shown[0][..bars[0]].width();
    let second = shown[0][bars[0]..bars[1]].width();
    assert!(first.abs_diff(second) <= 2, "{shown:#?}");
    assert!(shown.iter().all(|row| row.width() <= 43));
}

#[test]
fn no_word_is_broken_if_that_is_possible() {
    let shown = drawn(
        "|a|b|\n|-|-|\n|unbreakable-identifier|some words that can be wrapped well enough|\n",
        40,
    );
    assert!(
        shown
            .iter()
            .any(|row| row.contains("unbreakable-identifier")),
        "{shown:#?}"
    );
}

#[test]
fn a_table_with_too_many_columns_becomes_a_line_for_each_cell() {
    let head: String = (0..12).map(|column| format!("|heading {column}")).collect();
    let row: String = (0..12).map(|column| format!("|value {column}")).collect();
    let text = format!("{head}\n{}\n{row}\n{row}\n", "|-".repeat(12));
    let shown = drawn(&text, 40);
    assert_eq!(shown[..2], ["heading 0: value 0", "heading 1: value 1"]);
    assert_eq!(shown[12..14], ["", "heading 0: value 0"]);
    assert_eq!(shown.len(), 25);
}

#[test]
fn a_record_has_no_lines_for_empty_cells_and_repeats_only_the_start_of_a_long_heading() {
    let long = "word ".repeat(12);
    let head = format!("|{long}{}", "|b".repeat(11));
    let text = format!("{head}\n{}\n|x||y\n||\nz\n", "|-".repeat(12));
    let shown = drawn(&text, 40);
    let heading = [
        "word word word word word word word word",
        "word word word word",
    ];
    assert_eq!(shown[..2], heading);
    assert_eq!(shown[2..13], ["b"; 11]);
    let records = [
        "",
        "word word word word…: x",
        "b: y",
        "",
        "word word word word…: z",
    ];
    assert_eq!(shown[13..], records);
}

#[test]
fn a_table_in_a_list_is_indented() {
    let shown = drawn("- x\n\n  |a|b|\n  |-|-|\n  |1|2|\n", 40);
    assert_eq!(shown, ["• x", "", "  a │ b", "  ──┼──", "  1 │ 2"]);
}

proptest! {
    #[test]
    fn every_table_fits(
        columns in 1usize..9,
        cells in prop::collection::vec("[a-z漢 ]{0,60}", 1..20),
        width in 20usize..100,
    ) {
        let line = |cells: &[String]| cells.iter().map(|cell| format!("| x{cell} ")).collect::<String>() + "|\n";
        let head = line(&vec!["head".to_owned(); columns]);
        let body: String = cells.chunks(columns).map(line).collect();
        let text = format!("{head}{}|\n{body}", "|-".repeat(columns));
        let shown = drawn(&text, width);
        for row in &shown {
            prop_assert!(row.width() <= width, "{row:?}");
        }
        let letters = |text: &str| text.chars().filter(|it| it.is_alphabetic()).count();
        let is_record = shown.iter().any(|row| row.contains("xhead: "));
        prop_assert!(is_record || shown.iter().map(|row| letters(row)).sum::<usize>() == letters(&text));
    }
}
