//! Texts that arrive in pieces.

use super::texts::{document, markdown};
use super::{WIDTH, rows, without_styles};
use lango_core::text::sanitize;
use lango_markdown::{Stream, Style};
use proptest::prelude::*;
use proptest::sample::Index;
use unicode_width::UnicodeWidthStr as _;

/// Enough rows that nothing is settled by force.
const ALL_ROWS: usize = 10_000;

/// Streams a text and returns its rows. Checks that no row, settled or live, is wider than the terminal or contains
/// other escape sequences than ours.
fn streamed<'a>(
    pieces: impl IntoIterator<Item = &'a str>,
    width: usize,
    live_rows: usize,
) -> Vec<String> {
    let check = |rows: &[String]| {
        for row in rows {
            let shown = without_styles(row);
            assert!(shown.width() <= width, "{row:?}");
            assert_eq!(sanitize(&shown), shown.as_str());
            assert!(!shown.contains(['\n', '\t']), "{row:?}");
        }
    };
    let mut stream = Stream::new(Style::Coloured, width, live_rows);
    let mut rows = Vec::new();
    for piece in pieces {
        rows.extend(stream.push(piece));
        let live = stream.live();
        assert!(live.len() <= live_rows);
        check(&live);
    }
    rows.extend(stream.finish(""));
    check(&rows);
    rows
}

fn letters(text: &str) -> Vec<&str> {
    text.char_indices()
        .map(|(at, letter)| &text[at..at + letter.len_utf8()])
        .collect()
}

fn pieces<'a>(text: &'a str, cuts: &[Index]) -> Vec<&'a str> {
    let cut = |cut: &Index| text.floor_char_boundary(cut.index(text.len() + 1));
    let mut cuts: Vec<usize> = cuts.iter().map(cut).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
}

/// Returns the letters and digits of rows, without list markers and other signs.
fn text_of(rows: &[String]) -> String {
    let shown: String = rows.iter().map(|row| without_styles(row)).collect();
    shown.chars().filter(|it| it.is_alphabetic()).collect()
}

/// How many random texts each property is checked with.
const CASES: u32 = 300;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_streamed_text_looks_like_the_whole_however_it_was_split(
        text in markdown(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
        width in 20usize..100,
    ) {
        let whole = rows(&text, width);
        prop_assert_eq!(&streamed(pieces(&text, &cuts), width, ALL_ROWS), &whole);
        prop_assert_eq!(&streamed(letters(&text), width, ALL_ROWS), &whole);
    }

    #[test]
    fn a_streamed_document_looks_like_the_whole(
        text in document(),
        cuts in prop::collection::vec(any::<Index>(), 0..30),
        width in 20usize..100,
    ) {
        prop_assert_eq!(streamed(pieces(&text, &cuts), width, ALL_ROWS), rows(&text, width));
    }

    #[test]
    fn a_document_that_does_not_fit_the_live_region_looks_like_the_whole(
        text in document(),
        live_rows in 1usize..12,
        width in 20usize..100,
    ) {
        let whole = rows(&text, width);
        prop_assert_eq!(streamed(text.split_inclusive('\n'), width, live_rows), whole);
    }

    #[test]
    fn a_document_whose_end_arrives_at_once_looks_like_the_whole(
        text in document(),
        cut in any::<Index>(),
        live_rows in 1usize..12,
        width in 20usize..100,
    ) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (start, end) = lines.split_at(cut.index(lines.len() + 1));
        let mut stream = Stream::new(Style::Coloured, width, live_rows);
        let mut shown: Vec<String> = start.iter().flat_map(|line| stream.push(line)).collect();
        shown.extend(stream.finish(&end.concat()));
        prop_assert_eq!(shown, rows(&text, width));
    }

    #[test]
    fn no_word_is_lost_or_repeated_in_a_small_live_region(
        text in document(),
        cuts in prop::collection::vec(any::<Index>(), 0..200),
        live_rows in 1usize..12,
    ) {
        let shown = streamed(pieces(&text, &cuts), WIDTH, live_rows);
        prop_assert_eq!(text_of(&shown), text_of(&rows(&text, WIDTH)));
    }

    #[test]
    fn any_text_fits_a_small_live_region(
        text in prop_oneof![markdown(), "(?s).{0,200}"],
        live_rows in 1usize..6,
        width in 20usize..50,
    ) {
        streamed(letters(&text), width, live_rows);
    }
}
