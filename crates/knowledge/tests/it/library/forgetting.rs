//! Deleting leaves nothing behind, and a user can delete only their own documents.

use super::KIND;
use super::LibraryFixture;
use crate::database::DatabaseKind;
use lango_core::{Provenance, Trust, UserId};
use lango_knowledge::{DeleteReport, LibraryError, LibrarySearchMode, NewKnowledge, NewLearning};

/// Returns the number of rows of each table of the library, and whether the index still contains the word.
fn rows_left(fixture: &LibraryFixture, word: &str) -> Vec<String> {
    let places = match KIND {
        DatabaseKind::Sqlite => format!("library_places WHERE term = '{word}'"),
        DatabaseKind::Postgres | DatabaseKind::Pgvector => {
            format!("library_index WHERE terms @@ '{word}'")
        }
    };
    fixture.rows(&format!(
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
async fn a_deleted_document_leaves_no_rows_no_index_entries_and_no_vectors() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "xylophon music");
    fixture.add().await;
    let name = fixture.files.join("a.txt");
    let forgotten = fixture
        .library
        .forget(&fixture.user, name.to_str().unwrap())
        .await
        .unwrap();
    assert_eq!(
        forgotten,
        DeleteReport {
            documents: 1,
            chunks: 1
        }
    );
    assert_eq!(rows_left(&fixture, "xylophon"), NOTHING);
    for mode in [
        LibrarySearchMode::Lexical,
        LibrarySearchMode::Vector,
        LibrarySearchMode::Fused,
    ] {
        assert!(fixture.search("xylophon", mode).await.hits.is_empty());
    }
}

#[tokio::test]
async fn deleting_one_document_leaves_the_others_in_its_block() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "xylophon music");
    fixture.write("b.txt", "trumpet music");
    fixture.add().await;
    let documents = fixture.library.list(&fixture.user, 10).await.unwrap();
    let id = documents[0].id.to_string();
    fixture.library.forget(&fixture.user, &id).await.unwrap();
    let hits = fixture
        .search("music", LibrarySearchMode::Vector)
        .await
        .hits;
    assert_eq!(super::names(&hits), ["b.txt"]);
    // The bits of the deleted vector are overwritten, not only marked as deleted: half of a text's bits are set.
    let blocks = match KIND {
        DatabaseKind::Sqlite => {
            "SELECT hex(present) || ' ' || hex(substr(bits, 1, 128)) FROM library_bits"
        }
        DatabaseKind::Postgres | DatabaseKind::Pgvector => {
            "SELECT encode(present, 'hex') || ' ' || encode(substr(bits, 1, 128), 'hex') FROM library_bits"
        }
    };
    let nothing = "0".repeat(256);
    let second_only = format!("02000000000000000000000000000000 {nothing}");
    assert_eq!(fixture.rows(blocks), [second_only]);
}

#[tokio::test]
async fn deleting_a_folder_deletes_all_documents_below_it() {
    let fixture = LibraryFixture::new();
    fixture.write("x/a.txt", "alpha");
    fixture.write("x/y/b.txt", "beta");
    fixture.write("xy/c.txt", "gamma");
    fixture.add().await;
    let folder = fixture.files.join("x");
    let forgotten = fixture
        .library
        .forget(&fixture.user, folder.to_str().unwrap())
        .await
        .unwrap();
    assert_eq!(forgotten.documents, 2);
    assert_eq!(fixture.found("gamma").await, ["c.txt"]);
}

#[tokio::test]
async fn a_user_cannot_delete_the_documents_of_another() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "alpha");
    fixture.add().await;
    let other = UserId::from("bob");
    let id = fixture.library.list(&fixture.user, 1).await.unwrap()[0]
        .id
        .to_string();
    for name in [
        fixture.files.join("a.txt").to_str().unwrap(),
        &id,
        "/",
        fixture.files.to_str().unwrap(),
    ] {
        let error = fixture.library.forget(&other, name).await.unwrap_err();
        assert!(
            matches!(error, LibraryError::NoSuchDocument { .. }),
            "{error}"
        );
    }
    assert_eq!(fixture.found("alpha").await, ["a.txt"]);
    assert!(fixture.library.list(&other, 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_saved_entry_is_deleted_with_all_its_versions() {
    let fixture = LibraryFixture::new();
    let source = Provenance {
        name: "librarian".into(),
        trust: Trust::Untrusted,
    };
    for content in ["xylophon one", "xylophon two"] {
        let entry = NewKnowledge {
            key: "k".to_owned(),
            category: "c".to_owned(),
            content: content.to_owned(),
            tags: Vec::new(),
            source: source.clone(),
        };
        fixture.library.save(&fixture.user, entry).await.unwrap();
    }
    let learning = NewLearning {
        trigger: "xylophon breaks".to_owned(),
        fix: "glue".to_owned(),
        error_pattern: String::new(),
        confidence: 0.5,
        source,
    };
    fixture
        .library
        .learn(&fixture.user, learning)
        .await
        .unwrap();
    for document in fixture.library.list(&fixture.user, 10).await.unwrap() {
        fixture
            .library
            .forget(&fixture.user, &document.source.name)
            .await
            .unwrap();
    }
    assert_eq!(rows_left(&fixture, "xylophon"), NOTHING);
    let left = "SELECT (SELECT count(*) FROM knowledge) || ' ' || (SELECT count(*) FROM learnings)";
    assert_eq!(fixture.rows(left), ["0 0"]);
}
