//! All vectors come from one embedding model; another one is refused until the library is reindexed.

use super::{CountingEmbedder, LibraryFixture, names, query};
use lango_core::{Provenance, Trust};
use lango_knowledge::{AddOptions, Library, LibraryError, LibrarySearchMode, NewKnowledge};
use std::sync::{Arc, Mutex};

async fn searched(
    library: &Library,
    fixture: &LibraryFixture,
    mode: LibrarySearchMode,
) -> Result<(Vec<String>, Vec<String>), LibraryError> {
    let found = library
        .search(&fixture.user, None, &query("alpha", mode))
        .await?;
    Ok((names(&found.hits), found.notes))
}

#[tokio::test]
async fn another_embedding_model_is_refused_until_the_library_is_reindexed() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "alpha words");
    fixture.add().await;
    let changed = fixture.with_embedder(Some(Arc::new(CountingEmbedder::new(1))));

    let paths = [fixture.files.clone()];
    let error = changed
        .add(&fixture.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap_err();
    assert!(matches!(error, LibraryError::OtherEmbeddingModel { .. }));
    let text = error.to_string();
    assert!(
        text.contains("offline/words-and-letters")
            && text.contains("counting/letters")
            && text.contains("reindex"),
        "{text}"
    );

    assert!(matches!(
        searched(&changed, &fixture, LibrarySearchMode::Vector).await,
        Err(LibraryError::OtherEmbeddingModel { .. })
    ));
    assert_eq!(
        searched(&changed, &fixture, LibrarySearchMode::Lexical)
            .await
            .unwrap()
            .0,
        ["a.txt"]
    );
    let (found, notes) = searched(&changed, &fixture, LibrarySearchMode::Fused)
        .await
        .unwrap();
    assert_eq!(found, ["a.txt"]);
    assert!(
        notes[0].starts_with("searched only by words: the vectors of the library were made by"),
        "{notes:?}"
    );

    let progress_calls = Mutex::new(Vec::new());
    let report = changed
        .reindex(&|done| progress_calls.lock().unwrap().push(done))
        .await
        .unwrap();
    assert_eq!(
        (report.embedded, progress_calls.into_inner().unwrap()),
        (1, vec![1])
    );
    assert_eq!(
        searched(&changed, &fixture, LibrarySearchMode::Vector)
            .await
            .unwrap()
            .0,
        ["a.txt"]
    );
    assert_eq!(
        fixture.rows("SELECT length(numbers) || '' FROM library_vectors"),
        ["2"]
    );

    // Now the former model is refused.
    let error = fixture
        .library
        .search(
            &fixture.user,
            None,
            &query("alpha", LibrarySearchMode::Vector),
        )
        .await
        .unwrap_err();
    assert!(matches!(error, LibraryError::OtherEmbeddingModel { .. }));
}

#[tokio::test]
async fn a_new_version_of_a_model_counts_as_another_model() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "alpha");
    let paths = [fixture.files.clone()];
    let first = fixture.with_embedder(Some(Arc::new(CountingEmbedder::new(1))));
    first
        .add(&fixture.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    let second = fixture.with_embedder(Some(Arc::new(CountingEmbedder::new(2))));
    assert!(
        searched(&second, &fixture, LibrarySearchMode::Vector)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn documents_added_without_an_embedder_get_vectors_by_reindexing() {
    let fixture = LibraryFixture::new();
    let without = fixture.with_embedder(None);
    for number in 0..300 {
        fixture.write(&format!("{number}.txt"), format!("alpha {number}"));
    }
    let paths = [fixture.files.clone()];
    without
        .add(&fixture.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap();
    assert!(matches!(
        searched(&without, &fixture, LibrarySearchMode::Vector).await,
        Err(LibraryError::NoEmbedder)
    ));
    assert_eq!(
        searched(&without, &fixture, LibrarySearchMode::Fused)
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

    let (found, notes) = searched(&fixture.library, &fixture, LibrarySearchMode::Vector)
        .await
        .unwrap();
    assert!(
        found.is_empty() && notes[0].starts_with("300 passages have no vector yet"),
        "{notes:?}"
    );
    assert_eq!(
        fixture.library.reindex(&|_| {}).await.unwrap().embedded,
        300
    );
    assert_eq!(fixture.library.reindex(&|_| {}).await.unwrap().embedded, 0);
    let (found, notes) = searched(&fixture.library, &fixture, LibrarySearchMode::Vector)
        .await
        .unwrap();
    assert_eq!((found.len(), notes.len()), (10, 0));
}

#[tokio::test]
async fn an_agent_can_save_while_the_embedding_models_differ() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "alpha");
    fixture.add().await;
    let changed = fixture.with_embedder(Some(Arc::new(CountingEmbedder::new(1))));
    let entry = NewKnowledge {
        key: "k".to_owned(),
        category: "c".to_owned(),
        content: "zebra".to_owned(),
        tags: Vec::new(),
        source: Provenance {
            name: "librarian".into(),
            trust: Trust::Untrusted,
        },
    };
    let saved = changed.save(&fixture.user, entry).await.unwrap();
    assert!(
        saved.is_new && saved.notes[0].contains("without a vector"),
        "{:?}",
        saved.notes
    );
    assert_eq!(
        fixture.rows("SELECT count(*) || '' FROM library_vectors"),
        ["1"]
    );
    let (found, _) = changed
        .search_entries(&fixture.user, None, "zebra", 5)
        .await
        .unwrap();
    assert_eq!(&*found[0].content, "zebra");
}

#[tokio::test]
async fn a_failing_embedder_prevents_adding_but_not_searching() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "alpha");
    let paths = [fixture.files.clone()];
    let failing = fixture.with_embedder(Some(Arc::new(CountingEmbedder {
        fails: true,
        ..CountingEmbedder::new(1)
    })));
    let error = failing
        .add(&fixture.user, &paths, &AddOptions::default(), &|_| {})
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "counting gave no vectors: out of fingers"
    );
    let working = fixture.with_embedder(Some(Arc::new(CountingEmbedder::new(1))));
    assert_eq!(
        working
            .add(&fixture.user, &paths, &AddOptions::default(), &|_| {})
            .await
            .unwrap()
            .added,
        1
    );
    let (found, notes) = searched(&failing, &fixture, LibrarySearchMode::Fused)
        .await
        .unwrap();
    assert_eq!(found, ["a.txt"]);
    assert_eq!(
        notes,
        ["searched only by words: counting gave no vectors: out of fingers"]
    );
}

#[tokio::test]
async fn an_embedder_of_another_model_is_not_called() {
    let fixture = LibraryFixture::new();
    fixture.write("a.txt", "alpha");
    fixture.add().await;
    let failing = fixture.with_embedder(Some(Arc::new(CountingEmbedder {
        fails: true,
        ..CountingEmbedder::new(1)
    })));
    let error = searched(&failing, &fixture, LibrarySearchMode::Vector)
        .await
        .unwrap_err();
    assert!(
        matches!(error, LibraryError::OtherEmbeddingModel { .. }),
        "{error}"
    );
}
