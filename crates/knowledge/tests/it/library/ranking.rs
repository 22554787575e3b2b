//! The ranking of searches by words, and by words and vectors.

use super::{LibraryFixture, names};
use lango_knowledge::LibrarySearchMode;

#[tokio::test]
async fn a_word_that_the_query_repeats_counts_more() {
    let fixture = LibraryFixture::new();
    fixture.write("glider.txt", "A glider over the plain.");
    fixture.write("turbine.txt", "A turbine over the plain.");
    fixture.add().await;
    for mode in [LibrarySearchMode::Lexical, LibrarySearchMode::Fused] {
        for (asked, first) in [
            ("turbine, glider; this glider", "glider.txt"),
            ("glider, turbine; this turbine", "turbine.txt"),
            // Words with other endings count as the same word.
            ("turbine glider gliders", "glider.txt"),
            ("glider turbine turbines", "turbine.txt"),
        ] {
            let found = names(&fixture.search(asked, mode).await.hits);
            assert_eq!(found[0], first, "{asked}");
        }
    }
}

#[tokio::test]
async fn the_end_of_a_long_query_counts_too() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "The glider is described here.");
    fixture.add().await;
    let before: String = (0..200).map(|number| format!("word{number} ")).collect();
    assert_eq!(fixture.found(&format!("{before} glider")).await, ["a.txt"]);
}

#[tokio::test]
async fn other_chunks_of_a_document_improve_the_rank_of_its_best_one() {
    let fixture = LibraryFixture::new();
    let other = "Nothing is said here of what the question is about. ".repeat(30);
    let about = |word: &str| format!("{other}\n\nThis part is about the {word}.\n\n{other}\n\n");
    // Both documents have a chunk with one of the words and none with both; only the second has the other word in
    // another chunk.
    fixture.write("a.txt", format!("{}{}", about("glider"), about("plain")));
    fixture.write("b.txt", format!("{}{}", about("glider"), about("turbine")));
    fixture.write("c.txt", about("turbine"));
    let report = fixture.add().await;
    assert!(report.chunks > 5, "{report:?}");
    let hits = fixture
        .search("glider turbine", LibrarySearchMode::Lexical)
        .await
        .hits;
    assert_eq!(names(&hits)[0], "b.txt");
}

#[tokio::test]
async fn a_title_that_is_the_whole_document_counts_once() {
    let fixture = LibraryFixture::new();
    fixture.write("title.md", "# Glider notes");
    fixture.write("text.txt", "Glider notes");
    fixture.add().await;
    let hits = fixture
        .search("glider notes", LibrarySearchMode::Lexical)
        .await
        .hits;
    let hit = |name: &str| hits.iter().find(|hit| names(&[(*hit).clone()]) == [name]);
    let title = hit("title.md").unwrap();
    assert_eq!((&*title.heading, &*title.text), ("", "Glider notes"));
}
