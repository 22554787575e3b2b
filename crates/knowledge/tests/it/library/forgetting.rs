//! Forgetting leaves nothing behind, and nobody forgets for another.

use super::super::KIND;
use super::Home;
use crate::place::Kind;
use lango_core::{Source, Trust, UserId};
use lango_knowledge::{Forgotten, LibraryError, Mode, NewEntry, NewLearning};

/// How many rows each table of the library has, and whether the index still knows the word.
fn rows_left(home: &Home, word: &str) -> Vec<String> {
    let places = match KIND {
        Kind::Sqlite => format!("library_places WHERE term = '{word}'"),
        Kind::Postgres | Kind::Pgvector => format!("library_index WHERE terms @@ '{word}'"),
    };
    home.rows(&format!(
        "SELECT 'documents ' || count(*) FROM library_documents
         UNION ALL SELECT 'chunks ' || count(*) FROM library_chunks
         UNION ALL SELECT 'vectors ' || count(*) FROM library_vectors
         UNION ALL SELECT 'blocks ' || count(*) FROM library_bits
         UNION ALL SELECT 'places ' || count(*) FROM {places}
         UNION ALL SELECT 'counted ' || sum(chunks) || ' ' || sum(words) || ' ' || sum(vectors)
                     FROM library_collections"
    ))
}

const NOTHING: [&str; 6] = [
    "documents 0",
    "chunks 0",
    "vectors 0",
    "blocks 0",
    "places 0",
    "counted 0 0 0",
];

#[tokio::test]
async fn a_forgotten_document_is_gone_from_every_table_the_index_and_the_vectors() {
    let home = Home::new();
    home.write("a.txt", "xylophon music");
    home.add().await;
    let name = home.files.join("a.txt");
    let forgotten = home
        .library
        .forget(&home.user, name.to_str().unwrap())
        .await
        .unwrap();
    assert_eq!(
        forgotten,
        Forgotten {
            documents: 1,
            chunks: 1
        }
    );
    assert_eq!(rows_left(&home, "xylophon"), NOTHING);
    for mode in [Mode::Lexical, Mode::Vector, Mode::Fused] {
        assert!(home.search("xylophon", mode).await.hits.is_empty());
    }
}

#[tokio::test]
async fn forgetting_one_leaves_its_neighbours_in_the_same_block() {
    let home = Home::new();
    home.write("a.txt", "xylophon music");
    home.write("b.txt", "trumpet music");
    home.add().await;
    let documents = home.library.list(&home.user, 10).await.unwrap();
    let id = documents[0].id.to_string();
    home.library.forget(&home.user, &id).await.unwrap();
    let hits = home.search("music", Mode::Vector).await.hits;
    assert_eq!(super::names(&hits), ["b.txt"]);
    // The bits of the one that is gone are gone as well, not only marked: half of those of a text are set.
    let blocks = match KIND {
        Kind::Sqlite => "SELECT hex(present) || ' ' || hex(substr(bits, 1, 128)) FROM library_bits",
        Kind::Postgres | Kind::Pgvector => {
            "SELECT encode(present, 'hex') || ' ' || encode(substr(bits, 1, 128), 'hex') FROM library_bits"
        }
    };
    let nothing = "0".repeat(256);
    let second_only = format!("02000000000000000000000000000000 {nothing}");
    assert_eq!(home.rows(blocks), [second_only]);
}

#[tokio::test]
async fn a_folder_stands_for_all_below_it() {
    let home = Home::new();
    home.write("x/a.txt", "alpha");
    home.write("x/y/b.txt", "beta");
    home.write("xy/c.txt", "gamma");
    home.add().await;
    let folder = home.files.join("x");
    let forgotten = home
        .library
        .forget(&home.user, folder.to_str().unwrap())
        .await
        .unwrap();
    assert_eq!(forgotten.documents, 2);
    assert_eq!(home.found("gamma").await, ["c.txt"]);
}

#[tokio::test]
async fn nobody_forgets_what_is_anothers() {
    let home = Home::new();
    home.write("a.txt", "alpha");
    home.add().await;
    let other = UserId::from("bob");
    let id = home.library.list(&home.user, 1).await.unwrap()[0]
        .id
        .to_string();
    for name in [
        home.files.join("a.txt").to_str().unwrap(),
        &id,
        "/",
        home.files.to_str().unwrap(),
    ] {
        let error = home.library.forget(&other, name).await.unwrap_err();
        assert!(
            matches!(error, LibraryError::NoSuchDocument { .. }),
            "{error}"
        );
    }
    assert_eq!(home.found("alpha").await, ["a.txt"]);
    assert!(home.library.list(&other, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_saved_is_forgotten_with_all_its_versions() {
    let home = Home::new();
    let source = Source {
        name: "librarian".into(),
        trust: Trust::Untrusted,
    };
    for content in ["xylophon one", "xylophon two"] {
        let entry = NewEntry {
            key: "k".to_owned(),
            category: "c".to_owned(),
            content: content.to_owned(),
            tags: Vec::new(),
            source: source.clone(),
        };
        home.library.save(&home.user, entry).await.unwrap();
    }
    let learning = NewLearning {
        trigger: "xylophon breaks".to_owned(),
        fix: "glue".to_owned(),
        error_pattern: String::new(),
        confidence: 0.5,
        source,
    };
    home.library.learn(&home.user, learning).await.unwrap();
    for document in home.library.list(&home.user, 10).await.unwrap() {
        home.library
            .forget(&home.user, &document.source.name)
            .await
            .unwrap();
    }
    assert_eq!(rows_left(&home, "xylophon"), NOTHING);
    let left = "SELECT (SELECT count(*) FROM knowledge) || ' ' || (SELECT count(*) FROM learnings)";
    assert_eq!(home.rows(left), ["0 0"]);
}
