//! What the live region shows while a text arrives, and when rows settle.

use super::{WIDTH, rows, without_styles};
use lango_markdown::{Stream, Style};

/// Pushes a text and returns the rows of the live region, without styles.
fn live_after(text: &str) -> Vec<String> {
    let mut stream = Stream::new(Style::Coloured, WIDTH, 20);
    stream.push(text);
    plain(&stream.live())
}

fn plain(rows: &[String]) -> Vec<String> {
    rows.iter().map(|row| without_styles(row)).collect()
}

#[test]
fn a_paragraph_grows_word_by_word_and_settles_when_the_next_block_starts() {
    let mut stream = Stream::new(Style::Coloured, WIDTH, 20);
    assert_eq!(stream.push("one"), [""; 0]);
    assert_eq!(stream.live(), ["one"]);
    assert_eq!(stream.push(" two\n\n"), [""; 0]);
    assert_eq!(stream.live(), ["one two"]);
    assert_eq!(stream.push("T"), ["one two"]);
    assert_eq!(stream.live(), ["", "T"]);
    assert_eq!(stream.push("he end"), [""; 0]);
    assert_eq!(stream.finish(""), ["", "The end"]);
    assert_eq!(Stream::new(Style::Coloured, WIDTH, 20).finish(""), [""; 0]);
}

#[test]
fn an_item_settles_when_the_next_one_starts_and_numbers_go_on() {
    let mut stream = Stream::new(Style::Coloured, WIDTH, 20);
    assert_eq!(stream.push("1. a\n1. b\n1."), ["1. a"]);
    assert_eq!(plain(&stream.live()), ["2. b"]);
    assert_eq!(stream.push(" c\n\n"), ["2. b"]);
    assert_eq!(stream.push("1. d\n"), ["3. c"]);
    assert_eq!(stream.finish(""), ["", "4. d"]);
}

#[test]
fn a_line_of_code_settles_when_the_next_one_starts() {
    let mut stream = Stream::new(Style::Coloured, WIDTH, 20);
    assert_eq!(stream.push("```\na\n"), [""; 0]);
    assert_eq!(plain(&stream.live()), ["    a"]);
    assert_eq!(plain(&stream.push("\n\nb\n")), ["    a", "", ""]);
    assert_eq!(plain(&stream.push("```\n\nend")), ["    b"]);
}

#[test]
fn code_keeps_its_colours_over_settled_lines() {
    let text = "```rust\n/* a\n\nb\nc */ fn d() {}\nlet e = 1;\n```\n";
    let mut stream = Stream::new(Style::Coloured, WIDTH, 20);
    let mut shown = Vec::new();
    for line in text.split_inclusive('\n') {
        shown.extend(stream.push(line));
    }
    shown.extend(stream.finish(""));
    assert_eq!(shown, rows(text, WIDTH));
    assert!(shown[2].contains("\u{1b}[2mb"), "{shown:?}");
    assert!(shown[3].contains("\u{1b}[1;35mfn"), "{shown:?}");
}

#[test]
fn half_written_markers_are_not_shown_and_open_ones_take_effect() {
    for (text, expected) in [
        ("see **", "see"),
        ("see **bo", "see bo"),
        ("see **bold*", "see bold"),
        ("see **bold** x", "see bold x"),
        ("see `co", "see co"),
        ("see `a * b", "see a * b"),
        ("see ``a ` b", "see a ` b"),
        ("see [te", "see te"),
        ("see [text]", "see text"),
        ("see [text](http://x", "see text (http://x)"),
        ("see **bold *and* `co", "see bold and co"),
        (
            "2 * 3 and 2*3 and snake_case_na",
            "2 * 3 and 2*3 and snake_case_na",
        ),
        ("see \\*", "see *"),
        ("the list [1] says", "the list [1] says"),
    ] {
        let live = live_after(text);
        assert_eq!(live.len(), 1, "{text:?}: {live:?}");
        assert_eq!(live[0].trim_end(), expected, "{text:?}");
    }
}

#[test]
fn a_line_that_is_only_a_marker_does_not_change_what_is_above_it() {
    for marker in [
        "-", "- ", "=", "---", "#", "##", ">", "1", "12.", "|", "|--", "`", "``", "```", "*", "+ ",
    ] {
        let text = format!("text\n{marker}");
        assert_eq!(live_after(&text), ["text"], "{marker:?}");
    }
    assert_eq!(live_after("```\ncode\n``"), ["    code"]);
    assert_eq!(live_after("~~~\ncode\n``"), ["    code", "    ``"]);
}

#[test]
fn an_old_marker_without_counterpart_means_itself() {
    let text = format!("a **b {}", "word ".repeat(200));
    let mut stream = Stream::new(Style::Coloured, WIDTH, 100);
    stream.push(&text);
    assert!(
        stream.live()[0].starts_with("a **b word"),
        "{:?}",
        stream.live()
    );
}

#[test]
fn the_live_region_is_never_higher_than_its_rows() {
    let text = "word ".repeat(2_000);
    let mut stream = Stream::new(Style::Coloured, 40, 5);
    let mut settled = Vec::new();
    for word in text.split_inclusive(' ') {
        settled.extend(stream.push(word));
        assert!(stream.live().len() <= 5);
    }
    assert!(settled.len() > 200);
    settled.extend(stream.finish(""));
    assert_eq!(settled, rows(&text, 40));
}

#[test]
fn a_table_shows_its_rows_as_they_arrive_and_keeps_its_columns_when_it_is_cut() {
    let mut stream = Stream::new(Style::Coloured, 40, 4);
    stream.push("| name | text |\n|---|---|\n| a | bc");
    let live = plain(&stream.live());
    assert_eq!(live, ["name │ text", "─────┼─────", "a    │ bc"]);
    let settled = plain(&stream.push(" |\n| d | e |\n| f | g |\n"));
    assert_eq!(settled, ["name │ text", "─────┼─────"]);
    let mut rest = plain(&stream.push("| h | a much longer text |\n"));
    rest.extend(plain(&stream.finish("")));
    assert!(
        rest.iter()
            .all(|row| row.starts_with(|it| " adfh".contains(it))),
        "{rest:?}"
    );
    assert!(
        rest.iter().all(|row| row.find('│') == settled[0].find('│')),
        "{rest:?}"
    );
}

#[test]
fn a_table_whose_rows_are_higher_than_the_live_region_stays_a_table() {
    let line = |cell: &str| format!("|{cell}").repeat(60) + "|\n";
    let text = line("a") + &line("-") + &line("x").repeat(30);
    let mut stream = Stream::new(Style::Coloured, WIDTH, 5);
    let mut shown: Vec<String> = text
        .split_inclusive('\n')
        .flat_map(|line| stream.push(line))
        .collect();
    shown.extend(stream.finish(""));
    assert_eq!(shown, rows(&text, WIDTH));
}

#[test]
fn a_resized_stream_wraps_what_is_not_settled_again() {
    let mut stream = Stream::new(Style::Coloured, 80, 20);
    stream.push("some words that fit on one row of the terminal");
    assert_eq!(stream.live().len(), 1);
    stream.resize(20);
    assert_eq!(stream.live().len(), 3);
    assert_eq!(stream.finish("").len(), 3);
}

#[test]
fn unformatted_styles_settle_line_by_line() {
    let mut stream = Stream::new(Style::Plain, 20, 2);
    assert_eq!(stream.push("# *a*\n\nb \u{1b}"), ["# *a*", ""]);
    assert_eq!(stream.live(), ["b \u{1b}"]);
    assert_eq!(stream.finish(""), ["b \u{1b}"]);
    let mut stream = Stream::new(Style::Source, 20, 2);
    assert_eq!(stream.push("# *a* \u{1b}[2J\n"), ["# *a* ␛[2J"]);
    let settled = stream.push(&"word ".repeat(20));
    assert_eq!(settled, ["word word word word"; 3]);
    assert_eq!(stream.live(), ["word word word word"; 2]);
    assert_eq!(stream.finish(""), ["word word word word"; 2]);
}
