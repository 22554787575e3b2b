//! Adding new, changed, unchanged, missing and unreadable files.

use super::LibraryFixture;
use lango_core::{Trust, UserId};
use lango_knowledge::{AddOptions, FileOutcome, LibraryError, LibrarySearchMode};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Mutex;

#[tokio::test]
async fn only_changed_files_are_read_again() {
    let fixture = LibraryFixture::new();
    fixture.write("one.txt", "the slipstream of a propeller");
    fixture.write("two.md", "# Wings\n\nlift and drag");
    let report = fixture.add().await;
    assert_eq!((report.added, report.chunks), (2, 2));

    let before = fixture.rows("SELECT id || '' FROM library_documents");
    let report = fixture.add().await;
    assert_eq!((report.unchanged, report.added, report.updated), (2, 0, 0));
    assert_eq!(
        fixture.rows("SELECT id || '' FROM library_documents"),
        before
    );

    fixture.write("one.txt", "the wake of a rotor");
    let report = fixture.add().await;
    assert_eq!(
        (report.unchanged, report.updated, report.removed),
        (1, 1, 0)
    );
    assert!(fixture.found("slipstream").await.is_empty());
    assert_eq!(fixture.found("rotor").await, ["one.txt"]);
    assert_eq!(
        fixture.rows("SELECT count(*) || '' FROM library_chunks"),
        ["2"]
    );
}

#[tokio::test]
async fn only_documents_whose_files_no_longer_exist_are_removed() {
    let fixture = LibraryFixture::new();
    let kept = fixture.write("kept/a.txt", "alpha");
    fixture.write("folder/b.txt", "beta");
    fixture.write("folder0/c.txt", "gamma");
    fixture.write("folder.txt", "delta");
    fixture.add().await;

    fs::remove_file(fixture.files.join("folder/b.txt")).unwrap();
    fs::remove_file(&kept).unwrap();
    let report = fixture
        .try_add(&fixture.files.join("folder"))
        .await
        .unwrap();
    assert_eq!(report.removed, 1);
    assert!(fixture.found("beta").await.is_empty());
    for (word, name) in [
        ("alpha", "a.txt"),
        ("gamma", "c.txt"),
        ("delta", "folder.txt"),
    ] {
        assert_eq!(fixture.found(word).await, [name]);
    }

    // A document whose file no longer exists is removed when its path is added again.
    let report = fixture.try_add(&kept).await.unwrap();
    assert_eq!(report.removed, 1);
    let error = fixture.try_add(&kept).await.unwrap_err();
    assert!(matches!(error, LibraryError::NoSuchPath { .. }), "{error}");
}

#[tokio::test]
async fn unreadable_files_are_reported_and_the_rest_is_added() {
    let fixture = LibraryFixture::new();
    fixture.write("good.txt", "readable words");
    fixture.write("binary.bin", b"\0\x01\x02");
    fixture.write("broken.pdf", b"%PDF-1.7\nnothing of the kind");
    fixture.write("empty.txt", "");
    fixture.write("large.txt", vec![b'x'; 20_000_001]);
    fixture.write("latin.txt", b"na\xefve words");
    let report = fixture.add().await;
    assert_eq!((report.added, report.skipped), (2, 4));
    let reason = |name: &str| {
        let skipped = report
            .reasons
            .iter()
            .find(|skipped| skipped.source.ends_with(name));
        skipped.unwrap().reason.clone()
    };
    assert_eq!(reason("binary.bin"), "it is not text");
    assert!(reason("broken.pdf").starts_with("it is a broken PDF"));
    assert_eq!(reason("empty.txt"), "it contains no text");
    assert_eq!(reason("large.txt"), "it is larger than 20 MB");
    assert_eq!(fixture.found("naive").await, ["latin.txt"]);
}

#[tokio::test]
async fn a_file_that_is_no_longer_text_is_not_found_any_more() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "old words");
    fixture.add().await;
    fixture.write("a.txt", b"\0\0");
    let report = fixture.add().await;
    assert_eq!((report.removed, report.skipped), (1, 1));
    assert!(fixture.found("words").await.is_empty());
}

#[tokio::test]
async fn ignored_hidden_and_linked_files_are_left_out() {
    let fixture = LibraryFixture::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "secret words").unwrap();
    symlink(outside.path(), fixture.files.join("link")).unwrap();
    symlink(
        outside.path().join("secret.txt"),
        fixture.files.join("link.txt"),
    )
    .unwrap();
    fixture.write(".gitignore", "ignored/\n*.log\n");
    fixture.write("ignored/a.txt", "ignored words");
    fixture.write("b.log", "logged words");
    fixture.write(".hidden.txt", "hidden words");
    fixture.write("c.txt", "plain words");
    let report = fixture.add().await;
    assert_eq!(report.added, 1);
    assert_eq!(fixture.found("words").await, ["c.txt"]);
    assert_eq!(report.reasons.len(), 2, "{:?}", report.reasons);
}

#[tokio::test]
async fn an_interrupted_add_is_completed_by_the_next_one() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "some words");
    fixture.add().await;
    fixture.rows("UPDATE library_documents SET complete = 0 RETURNING '1'");
    let report = fixture.add().await;
    assert_eq!((report.updated, report.unchanged), (1, 0));
    assert_eq!(
        fixture.rows("SELECT count(*) || '' FROM library_chunks"),
        ["1"]
    );
    assert_eq!(fixture.add().await.unchanged, 1);
}

#[tokio::test]
async fn a_large_document_is_written_in_parts_and_found_completely() {
    let fixture = LibraryFixture::new();
    let section = |number: usize| {
        format!(
            "## Part {number}\n\nmarker{number} {}\n\n",
            "filler ".repeat(150)
        )
    };
    let text: String = (0..400).map(section).collect();
    fixture.write("book.md", format!("# Book\n\n{text}"));
    let report = fixture.add().await;
    assert!(report.chunks >= 400, "{}", report.chunks);
    let hits = fixture
        .search("marker399", LibrarySearchMode::Lexical)
        .await
        .hits;
    assert_eq!(&*hits[0].heading, "Book > Part 399");
    assert_eq!(
        fixture.rows("SELECT complete || '/' || (SELECT count(DISTINCT ordinal) FROM library_chunks) FROM library_documents"),
        [format!("1/{}", report.chunks)]
    );
    let vectors = fixture.rows("SELECT count(*) || '' FROM library_vectors");
    assert_eq!(vectors, [report.chunks.to_string()]);
}

#[tokio::test]
async fn a_thousand_documents_are_added_and_each_is_found() {
    let fixture = LibraryFixture::new();
    for number in 0..1000 {
        fixture.write(
            &format!("{number:04}.txt"),
            format!("document about topic{number} and planes"),
        );
    }
    let seen = Mutex::new(Vec::new());
    let report = fixture
        .library
        .add(
            &fixture.user,
            std::slice::from_ref(&fixture.files),
            &AddOptions::default(),
            &|progress| {
                assert_eq!((progress.total, progress.added), (1000, FileOutcome::New));
                seen.lock().unwrap().push(progress.done);
            },
        )
        .await
        .unwrap();
    assert_eq!((report.added, report.chunks), (1000, 1000));
    assert_eq!(*seen.lock().unwrap(), (1..=1000).collect::<Vec<_>>());
    for number in [0, 500, 999] {
        assert_eq!(
            fixture.found(&format!("topic{number}")).await,
            [format!("{number:04}.txt")]
        );
    }
    assert_eq!(fixture.add().await.unchanged, 1000);
    assert_eq!(
        fixture
            .library
            .list(&fixture.user, 5000)
            .await
            .unwrap()
            .len(),
        1000
    );
}

#[tokio::test]
async fn the_trust_label_is_stored_and_changing_it_updates_the_document() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "words");
    fixture.add().await;
    assert_eq!(
        fixture.search("words", LibrarySearchMode::Fused).await.hits[0]
            .source
            .trust,
        Trust::Untrusted
    );
    let options = AddOptions {
        trust: Trust::Trusted,
        ..AddOptions::default()
    };
    let paths = [fixture.files.clone()];
    let report = fixture
        .library
        .add(&fixture.user, &paths, &options, &|_| {})
        .await
        .unwrap();
    assert_eq!(report.updated, 1);
    assert_eq!(
        fixture.search("words", LibrarySearchMode::Fused).await.hits[0]
            .source
            .trust,
        Trust::Trusted
    );
}

#[tokio::test]
async fn documents_cannot_be_added_to_the_collections_of_saved_entries() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "words");
    for name in ["knowledge", "learnings", " "] {
        let options = AddOptions {
            collection: Some(name.to_owned()),
            ..AddOptions::default()
        };
        let paths = [fixture.files.clone()];
        let error = fixture
            .library
            .add(&fixture.user, &paths, &options, &|_| {})
            .await
            .unwrap_err();
        assert!(matches!(error, LibraryError::Unusable { .. }), "{error}");
    }
}

#[tokio::test]
async fn two_users_can_add_the_same_file_independently() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "shared words");
    fixture.add().await;
    let other = UserId::from("bob");
    let paths = [fixture.files.clone()];
    let report = fixture
        .library
        .add(&other, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    assert_eq!((report.added, report.unchanged), (1, 0));
    fs::remove_file(fixture.files.join("a.txt")).unwrap();
    fixture
        .library
        .add(&other, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    assert_eq!(fixture.found("shared").await, ["a.txt"]);
}
