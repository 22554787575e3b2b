//! Tests of splitting texts of every kind.

use super::*;
use proptest::prelude::*;

fn sentence(words: usize) -> String {
    let words: Vec<String> = (0..words).map(|number| format!("word{number}")).collect();
    words.join(" ") + "."
}

fn headings(chunks: &[Chunk]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk.heading.as_str()).collect()
}

#[test]
fn a_section_starts_a_chunk_with_its_headings() {
    let text = format!(
        "# Guide\n\n{}\n\n## Wings\n\n{}\n\n### Flaps\n\n{}\n\n## Tail\n\n{}\n",
        sentence(80),
        sentence(80),
        sentence(80),
        sentence(80)
    );
    let chunks = chunks(&text, Structure::Markdown);
    assert_eq!(
        headings(&chunks),
        [
            "Guide",
            "Guide > Wings",
            "Guide > Wings > Flaps",
            "Guide > Tail"
        ]
    );
    assert_eq!(chunks[1].line, 7);
}

#[test]
fn small_sections_share_a_chunk_and_keep_their_titles() {
    let chunks = chunks(
        "# A\none\n## B\ntwo\n## C\n## D\nthree\n## E\n",
        Structure::Markdown,
    );
    assert_eq!(chunks.len(), 1);
    for word in ["one", "B", "two", "C", "D", "three", "E"] {
        assert!(chunks[0].text.contains(word), "{word}: {}", chunks[0].text);
    }
}

#[test]
fn a_heading_alone_is_not_lost() {
    let chunks = chunks("# Only this\n", Structure::Markdown);
    assert_eq!(chunks[0].text, "Only this");
}

#[test]
fn a_hash_in_fenced_code_is_not_a_heading() {
    let chunks = chunks(
        "# A\n```\n# not a heading\n\nx = 1\n```\n",
        Structure::Markdown,
    );
    assert_eq!(headings(&chunks), ["A"]);
    assert!(chunks[0].text.contains("# not a heading"));
}

#[test]
fn a_long_text_is_split_at_sentences_with_overlap() {
    let text: Vec<String> = (0..60).map(|_| sentence(20)).collect();
    let chunks = chunks(&text.join(" "), Structure::Plain);
    assert!(chunks.len() >= 4, "{}", chunks.len());
    for pair in chunks.windows(2) {
        assert!(pair[0].text.ends_with('.'), "{}", pair[0].text);
        let repeated = tail(&pair[0].text, OVERLAP_WORDS);
        assert!(!repeated.is_empty() && pair[1].text.starts_with(repeated));
    }
}

#[test]
fn code_is_split_at_unindented_lines() {
    let function = |name: &str| {
        let body = "    let value = other + more;\n\n".repeat(60);
        format!("fn {name}() {{\n{body}}}\n\n")
    };
    let text = function("one") + &function("two");
    let chunks = chunks(&text, Structure::Code);
    assert!(chunks.iter().any(|chunk| chunk.text.starts_with("fn two")));
}

#[test]
fn a_text_without_spaces_is_bounded() {
    for unit in ["x", "語", "\u{1F600}"] {
        let text = unit.repeat(100_000);
        let chunks = chunks(&text, Structure::Plain);
        assert!(chunks.iter().all(|chunk| chunk.text.len() <= MAX_BYTES));
        let total: usize = chunks.iter().map(|chunk| chunk.text.len()).sum();
        assert!(total >= text.len());
    }
}

proptest! {
    #[test]
    fn every_word_of_any_text_is_in_some_chunk_and_chunks_are_bounded(
        text in "([a-z]{1,9}|[ \n#`.{}]{1,3}|\n\n|# |```\n|é|\u{2028}){0,400}",
        kind in 0..3_usize,
    ) {
        let kind = [Structure::Plain, Structure::Markdown, Structure::Code][kind];
        let chunks = chunks(&text, kind);
        let all: Vec<String> = chunks
            .iter()
            .map(|chunk| format!("{} {}", chunk.heading, chunk.text))
            .collect();
        let all = all.join(" ");
        for word in text.split(|character: char| !character.is_alphanumeric()) {
            prop_assert!(all.contains(word), "{word:?} of {text:?} is not in {all:?}");
        }
        for chunk in &chunks {
            prop_assert!(length(&chunk.text) <= MAX_WORDS + OVERLAP_WORDS + 2);
            prop_assert!(!chunk.text.trim().is_empty());
        }
    }
}
