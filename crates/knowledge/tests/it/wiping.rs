//! Deleted documents are overwritten in SQLite's file. With PostgreSQL the files cannot be inspected.

use super::library::LibraryFixture;

/// Returns whether the bytes of a word are anywhere in the rows of the index.
fn index_has(fixture: &LibraryFixture, word: &str) -> bool {
    let found = format!(
        "SELECT count(*) || '' FROM library_index_data WHERE instr(block, CAST('{word}' AS BLOB)) > 0"
    );
    fixture.rows(&found) != ["0"]
}

#[tokio::test]
async fn a_deleted_text_is_overwritten_in_the_file() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "xylophon music of the moment");
    fixture.write("b.txt", "trumpet music of the moment");
    fixture.add().await;
    let has = |word: &str| {
        let path = fixture.place.address.strip_prefix("sqlite:").unwrap();
        let connection = rusqlite::Connection::open(path).unwrap();
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        connection.query_row(checkpoint, [], |_| Ok(())).unwrap();
        let bytes = std::fs::read(path).unwrap();
        bytes
            .windows(word.len())
            .any(|bytes| bytes == word.as_bytes())
    };
    assert!(has("xylophon") && index_has(&fixture, "xylophon"));
    let name = fixture.files.join("a.txt");
    fixture
        .library
        .forget(&fixture.user, name.to_str().unwrap())
        .await
        .unwrap();
    assert!(!has("xylophon") && !index_has(&fixture, "xylophon"));
    assert!(has("trumpet"));
    assert_eq!(fixture.found("trumpet").await, ["b.txt"]);
}
