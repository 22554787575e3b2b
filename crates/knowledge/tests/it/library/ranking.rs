//! The order of a search by words, and of one by words and vectors.

use super::{Home, names};
use lango_knowledge::Mode;

#[tokio::test]
async fn a_word_that_the_question_repeats_counts_more() {
    let home = Home::new();
    home.write("glider.txt", "A glider over the plain.");
    home.write("turbine.txt", "A turbine over the plain.");
    home.add().await;
    for mode in [Mode::Lexical, Mode::Fused] {
        for (asked, first) in [
            ("turbine, glider; this glider", "glider.txt"),
            ("glider, turbine; this turbine", "turbine.txt"),
            // Endings do not make another word of it.
            ("turbine glider gliders", "glider.txt"),
            ("glider turbine turbines", "turbine.txt"),
        ] {
            let found = names(&home.search(asked, mode).await.hits);
            assert_eq!(found[0], first, "{asked}");
        }
    }
}

#[tokio::test]
async fn the_end_of_a_long_question_counts_too() {
    let home = Home::new();
    home.write("a.txt", "The glider is described here.");
    home.add().await;
    let before: String = (0..200).map(|number| format!("word{number} ")).collect();
    assert_eq!(home.found(&format!("{before} glider")).await, ["a.txt"]);
}

#[tokio::test]
async fn the_other_chunks_of_a_document_count_for_its_best_one() {
    let home = Home::new();
    let other = "Nothing is said here of what the question is about. ".repeat(30);
    let about = |word: &str| format!("{other}\n\nThis part is about the {word}.\n\n{other}\n\n");
    // Both have the one word in one chunk and both words in none; the second has the other word in another chunk.
    home.write("a.txt", format!("{}{}", about("glider"), about("plain")));
    home.write("b.txt", format!("{}{}", about("glider"), about("turbine")));
    home.write("c.txt", about("turbine"));
    let report = home.add().await;
    assert!(report.chunks > 5, "{report:?}");
    let hits = home.search("glider turbine", Mode::Lexical).await.hits;
    assert_eq!(names(&hits)[0], "b.txt");
}

#[tokio::test]
async fn a_title_counts_once_where_it_is_the_whole_document() {
    let home = Home::new();
    home.write("title.md", "# Glider notes");
    home.write("text.txt", "Glider notes");
    home.add().await;
    let hits = home.search("glider notes", Mode::Lexical).await.hits;
    let hit = |name: &str| hits.iter().find(|hit| names(&[(*hit).clone()]) == [name]);
    let title = hit("title.md").unwrap();
    assert_eq!((&*title.heading, &*title.text), ("", "Glider notes"));
}
