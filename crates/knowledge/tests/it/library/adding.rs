//! Adding: what is new, changed, unchanged, gone, and what cannot be read.

use super::Home;
use lango_core::{Trust, UserId};
use lango_knowledge::{AddOptions, Added, LibraryError, Mode};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Mutex;

#[tokio::test]
async fn what_has_not_changed_is_left_alone_and_what_has_is_read_again() {
    let home = Home::new();
    home.write("one.txt", "the slipstream of a propeller");
    home.write("two.md", "# Wings\n\nlift and drag");
    let report = home.add().await;
    assert_eq!((report.added, report.chunks), (2, 2));

    let before = home.rows("SELECT id || '' FROM library_documents");
    let report = home.add().await;
    assert_eq!((report.unchanged, report.added, report.updated), (2, 0, 0));
    assert_eq!(home.rows("SELECT id || '' FROM library_documents"), before);

    home.write("one.txt", "the wake of a rotor");
    let report = home.add().await;
    assert_eq!(
        (report.unchanged, report.updated, report.removed),
        (1, 1, 0)
    );
    assert!(home.found("slipstream").await.is_empty());
    assert_eq!(home.found("rotor").await, ["one.txt"]);
    assert_eq!(
        home.rows("SELECT count(*) || '' FROM library_chunks"),
        ["2"]
    );
}

#[tokio::test]
async fn what_is_gone_below_the_folder_is_removed_and_nothing_else() {
    let home = Home::new();
    let kept = home.write("kept/a.txt", "alpha");
    home.write("folder/b.txt", "beta");
    home.write("folder0/c.txt", "gamma");
    home.write("folder.txt", "delta");
    home.add().await;

    fs::remove_file(home.files.join("folder/b.txt")).unwrap();
    fs::remove_file(&kept).unwrap();
    let report = home.try_add(&home.files.join("folder")).await.unwrap();
    assert_eq!(report.removed, 1);
    assert!(home.found("beta").await.is_empty());
    for (word, name) in [
        ("alpha", "a.txt"),
        ("gamma", "c.txt"),
        ("delta", "folder.txt"),
    ] {
        assert_eq!(home.found(word).await, [name]);
    }

    // A file that was added by itself, and is gone, is removed when it is named again.
    let report = home.try_add(&kept).await.unwrap();
    assert_eq!(report.removed, 1);
    let error = home.try_add(&kept).await.unwrap_err();
    assert!(matches!(error, LibraryError::NoSuchPath { .. }), "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_reported_and_stops_nothing() {
    let home = Home::new();
    home.write("good.txt", "readable words");
    home.write("binary.bin", b"\0\x01\x02");
    home.write("broken.pdf", b"%PDF-1.7\nnothing of the kind");
    home.write("empty.txt", "");
    home.write("large.txt", vec![b'x'; 20_000_001]);
    home.write("latin.txt", b"na\xefve words");
    let report = home.add().await;
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
    assert_eq!(reason("empty.txt"), "there is no text in it");
    assert_eq!(reason("large.txt"), "it is larger than 20 MB");
    assert_eq!(home.found("naive").await, ["latin.txt"]);
}

#[tokio::test]
async fn a_file_that_became_unreadable_text_is_not_found_as_it_was() {
    let home = Home::new();
    home.write("a.txt", "old words");
    home.add().await;
    home.write("a.txt", b"\0\0");
    let report = home.add().await;
    assert_eq!((report.removed, report.skipped), (1, 1));
    assert!(home.found("words").await.is_empty());
}

#[tokio::test]
async fn ignored_hidden_and_linked_files_are_left_out() {
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "secret words").unwrap();
    symlink(outside.path(), home.files.join("link")).unwrap();
    symlink(
        outside.path().join("secret.txt"),
        home.files.join("link.txt"),
    )
    .unwrap();
    home.write(".gitignore", "ignored/\n*.log\n");
    home.write("ignored/a.txt", "ignored words");
    home.write("b.log", "logged words");
    home.write(".hidden.txt", "hidden words");
    home.write("c.txt", "plain words");
    let report = home.add().await;
    assert_eq!(report.added, 1);
    assert_eq!(home.found("words").await, ["c.txt"]);
    assert_eq!(report.reasons.len(), 2, "{:?}", report.reasons);
}

#[tokio::test]
async fn what_was_broken_off_is_done_again() {
    let home = Home::new();
    home.write("a.txt", "some words");
    home.add().await;
    home.rows("UPDATE library_documents SET complete = 0 RETURNING '1'");
    let report = home.add().await;
    assert_eq!((report.updated, report.unchanged), (1, 0));
    assert_eq!(
        home.rows("SELECT count(*) || '' FROM library_chunks"),
        ["1"]
    );
    assert_eq!(home.add().await.unchanged, 1);
}

#[tokio::test]
async fn a_large_document_is_written_in_pieces_and_found_whole() {
    let home = Home::new();
    let section = |number: usize| {
        format!(
            "## Part {number}\n\nmarker{number} {}\n\n",
            "filler ".repeat(150)
        )
    };
    let text: String = (0..400).map(section).collect();
    home.write("book.md", format!("# Book\n\n{text}"));
    let report = home.add().await;
    assert!(report.chunks >= 400, "{}", report.chunks);
    let hits = home.search("marker399", Mode::Lexical).await.hits;
    assert_eq!(&*hits[0].heading, "Book > Part 399");
    assert_eq!(
        home.rows("SELECT complete || '/' || (SELECT count(DISTINCT ordinal) FROM library_chunks) FROM library_documents"),
        [format!("1/{}", report.chunks)]
    );
    let vectors = home.rows("SELECT count(*) || '' FROM library_vectors");
    assert_eq!(vectors, [report.chunks.to_string()]);
}

#[tokio::test]
async fn a_thousand_documents_are_added_and_each_is_found() {
    let home = Home::new();
    for number in 0..1000 {
        home.write(
            &format!("{number:04}.txt"),
            format!("document about topic{number} and planes"),
        );
    }
    let seen = Mutex::new(Vec::new());
    let report = home
        .library
        .add(
            &home.user,
            std::slice::from_ref(&home.files),
            &AddOptions::default(),
            &|progress| {
                assert_eq!((progress.total, progress.added), (1000, Added::New));
                seen.lock().unwrap().push(progress.done);
            },
        )
        .await
        .unwrap();
    assert_eq!((report.added, report.chunks), (1000, 1000));
    assert_eq!(*seen.lock().unwrap(), (1..=1000).collect::<Vec<_>>());
    for number in [0, 500, 999] {
        assert_eq!(
            home.found(&format!("topic{number}")).await,
            [format!("{number:04}.txt")]
        );
    }
    assert_eq!(home.add().await.unchanged, 1000);
    assert_eq!(
        home.library.list(&home.user, 5000).await.unwrap().len(),
        1000
    );
}

#[tokio::test]
async fn trust_is_kept_and_a_change_of_it_is_a_change() {
    let home = Home::new();
    home.write("a.txt", "words");
    home.add().await;
    assert_eq!(
        home.search("words", Mode::Fused).await.hits[0].source.trust,
        Trust::Untrusted
    );
    let options = AddOptions {
        trust: Trust::Trusted,
        ..AddOptions::default()
    };
    let paths = [home.files.clone()];
    let report = home
        .library
        .add(&home.user, &paths, &options, &|_| {})
        .await
        .unwrap();
    assert_eq!(report.updated, 1);
    assert_eq!(
        home.search("words", Mode::Fused).await.hits[0].source.trust,
        Trust::Trusted
    );
}

#[tokio::test]
async fn what_agents_save_to_is_no_collection_of_documents() {
    let home = Home::new();
    home.write("a.txt", "words");
    for name in ["knowledge", "learnings", " "] {
        let options = AddOptions {
            collection: Some(name.to_owned()),
            ..AddOptions::default()
        };
        let paths = [home.files.clone()];
        let error = home
            .library
            .add(&home.user, &paths, &options, &|_| {})
            .await
            .unwrap_err();
        assert!(matches!(error, LibraryError::Unusable { .. }), "{error}");
    }
}

#[tokio::test]
async fn two_users_add_the_same_file_without_meeting() {
    let home = Home::new();
    home.write("a.txt", "shared words");
    home.add().await;
    let other = UserId::from("bob");
    let paths = [home.files.clone()];
    let report = home
        .library
        .add(&other, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    assert_eq!((report.added, report.unchanged), (1, 0));
    fs::remove_file(home.files.join("a.txt")).unwrap();
    home.library
        .add(&other, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    assert_eq!(home.found("shared").await, ["a.txt"]);
}
