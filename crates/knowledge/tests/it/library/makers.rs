//! One maker of vectors at a time: another is refused until everything was made anew.

use super::{Counting, Home, names, query};
use lango_core::{Source, Trust};
use lango_knowledge::{AddOptions, Library, LibraryError, Mode, NewEntry};
use std::sync::{Arc, Mutex};

async fn searched(
    library: &Library,
    home: &Home,
    mode: Mode,
) -> Result<(Vec<String>, Vec<String>), LibraryError> {
    let found = library
        .search(&home.user, None, &query("alpha", mode))
        .await?;
    Ok((names(&found.hits), found.notes))
}

#[tokio::test]
async fn another_maker_is_refused_until_the_library_is_reindexed() {
    let home = Home::new();
    home.write("a.txt", "alpha words");
    home.add().await;
    let changed = home.with_embedder(Some(Arc::new(Counting::new(1))));

    let paths = [home.files.clone()];
    let error = changed
        .add(&home.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, LibraryError::OtherMaker { .. }));
    let text = error.to_string();
    assert!(
        text.contains("offline/words-and-letters")
            && text.contains("counting/letters")
            && text.contains("reindex"),
        "{text}"
    );

    assert!(matches!(
        searched(&changed, &home, Mode::Vector).await,
        Err(LibraryError::OtherMaker { .. })
    ));
    assert_eq!(
        searched(&changed, &home, Mode::Lexical).await.unwrap().0,
        ["a.txt"]
    );
    let (found, notes) = searched(&changed, &home, Mode::Fused).await.unwrap();
    assert_eq!(found, ["a.txt"]);
    assert!(
        notes[0].starts_with("searched by words only: the vectors of the library were made by"),
        "{notes:?}"
    );

    let told = Mutex::new(Vec::new());
    let report = changed
        .reindex(&|done| told.lock().unwrap().push(done))
        .await
        .unwrap();
    assert_eq!((report.embedded, told.into_inner().unwrap()), (1, vec![1]));
    assert_eq!(
        searched(&changed, &home, Mode::Vector).await.unwrap().0,
        ["a.txt"]
    );
    assert_eq!(
        home.rows("SELECT length(numbers) || '' FROM library_vectors"),
        ["2"]
    );

    // The former is now the one that is refused.
    let error = home
        .library
        .search(&home.user, None, &query("alpha", Mode::Vector))
        .await
        .unwrap_err();
    assert!(matches!(error, LibraryError::OtherMaker { .. }));
}

#[tokio::test]
async fn a_new_version_of_the_same_model_is_another_maker() {
    let home = Home::new();
    home.write("a.txt", "alpha");
    let paths = [home.files.clone()];
    let first = home.with_embedder(Some(Arc::new(Counting::new(1))));
    first
        .add(&home.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    let second = home.with_embedder(Some(Arc::new(Counting::new(2))));
    assert!(searched(&second, &home, Mode::Vector).await.is_err());
}

#[tokio::test]
async fn what_was_added_without_an_embedder_gets_its_vectors_by_reindexing() {
    let home = Home::new();
    let without = home.with_embedder(None);
    for number in 0..300 {
        home.write(&format!("{number}.txt"), format!("alpha {number}"));
    }
    let paths = [home.files.clone()];
    without
        .add(&home.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    assert!(matches!(
        searched(&without, &home, Mode::Vector).await,
        Err(LibraryError::NoEmbedder)
    ));
    assert_eq!(
        searched(&without, &home, Mode::Fused)
            .await
            .unwrap()
            .0
            .len(),
        10
    );
    assert!(matches!(
        without.reindex(&|_| {}).await,
        Err(LibraryError::NoEmbedder)
    ));

    let (found, notes) = searched(&home.library, &home, Mode::Vector).await.unwrap();
    assert!(
        found.is_empty() && notes[0].starts_with("300 passages have no vector yet"),
        "{notes:?}"
    );
    assert_eq!(home.library.reindex(&|_| {}).await.unwrap().embedded, 300);
    assert_eq!(home.library.reindex(&|_| {}).await.unwrap().embedded, 0);
    let (found, notes) = searched(&home.library, &home, Mode::Vector).await.unwrap();
    assert_eq!((found.len(), notes.len()), (10, 0));
}

#[tokio::test]
async fn an_agent_can_save_while_the_makers_differ() {
    let home = Home::new();
    home.write("a.txt", "alpha");
    home.add().await;
    let changed = home.with_embedder(Some(Arc::new(Counting::new(1))));
    let entry = NewEntry {
        key: "k".to_owned(),
        category: "c".to_owned(),
        content: "zebra".to_owned(),
        tags: Vec::new(),
        source: Source {
            name: "librarian".into(),
            trust: Trust::Untrusted,
        },
    };
    let saved = changed.save(&home.user, entry).await.unwrap();
    assert!(
        saved.is_new && saved.notes[0].contains("without a vector"),
        "{:?}",
        saved.notes
    );
    assert_eq!(
        home.rows("SELECT count(*) || '' FROM library_vectors"),
        ["1"]
    );
    let (found, _) = changed
        .search_entries(&home.user, None, "zebra", 5)
        .await
        .unwrap();
    assert_eq!(&*found[0].content, "zebra");
}

#[tokio::test]
async fn an_embedder_that_fails_stops_adding_and_not_searching() {
    let home = Home::new();
    home.write("a.txt", "alpha");
    let paths = [home.files.clone()];
    let failing = home.with_embedder(Some(Arc::new(Counting {
        fails: true,
        ..Counting::new(1)
    })));
    let error = failing
        .add(&home.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "counting gave no vectors: out of fingers"
    );
    let working = home.with_embedder(Some(Arc::new(Counting::new(1))));
    assert_eq!(
        working
            .add(&home.user, &paths, &AddOptions::default(), &|_| {})
            .await
            .unwrap()
            .added,
        1
    );
    let (found, notes) = searched(&failing, &home, Mode::Fused).await.unwrap();
    assert_eq!(found, ["a.txt"]);
    assert_eq!(
        notes,
        ["searched by words only: counting gave no vectors: out of fingers"]
    );
}

#[tokio::test]
async fn an_embedder_whose_vectors_are_refused_is_not_asked_for_them() {
    let home = Home::new();
    home.write("a.txt", "alpha");
    home.add().await;
    let failing = home.with_embedder(Some(Arc::new(Counting {
        fails: true,
        ..Counting::new(1)
    })));
    let error = searched(&failing, &home, Mode::Vector).await.unwrap_err();
    assert!(matches!(error, LibraryError::OtherMaker { .. }), "{error}");
}
