//! What is forgotten is wiped from SQLite's file. A server keeps its files to itself.

use super::library::Home;

/// Whether the bytes of a word are anywhere in the rows of the index.
fn index_has(home: &Home, word: &str) -> bool {
    let found = format!(
        "SELECT count(*) || '' FROM library_index_data WHERE instr(block, CAST('{word}' AS BLOB)) > 0"
    );
    home.rows(&found) != ["0"]
}

#[tokio::test]
async fn a_forgotten_text_is_wiped_from_the_file() {
    let home = Home::new();
    home.write("a.txt", "xylophon music of the moment");
    home.write("b.txt", "trumpet music of the moment");
    home.add().await;
    let has = |word: &str| {
        let path = home.place.address.strip_prefix("sqlite:").unwrap();
        let connection = rusqlite::Connection::open(path).unwrap();
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        connection.query_row(checkpoint, [], |_| Ok(())).unwrap();
        let bytes = std::fs::read(path).unwrap();
        bytes
            .windows(word.len())
            .any(|bytes| bytes == word.as_bytes())
    };
    assert!(has("xylophon") && index_has(&home, "xylophon"));
    let name = home.files.join("a.txt");
    home.library
        .forget(&home.user, name.to_str().unwrap())
        .await
        .unwrap();
    assert!(!has("xylophon") && !index_has(&home, "xylophon"));
    assert!(has("trumpet"));
    assert_eq!(home.found("trumpet").await, ["b.txt"]);
}
