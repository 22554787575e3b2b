//! Tests of the library: searching vectors, removing documents, and the embedding model.

use super::KIND;
use crate::database::TestDatabase;
use lango_core::{EmbeddingModel, Provenance, Timestamp, Trust, UserId};
use lango_store::{
    DeleteMode, DocumentFilter, DocumentPart, NewChunk, NewDocument, Store, VectorOutcome,
};
use std::sync::Arc;

const DIMENSIONS: usize = 128;

fn model() -> EmbeddingModel {
    EmbeddingModel {
        provider: "test".into(),
        model: "noise".into(),
        dimensions: DIMENSIONS as u32,
        version: 1,
    }
}

/// Returns pseudo-random numbers, the same for the same seed.
fn noise(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..DIMENSIONS).map(|_| next()).collect()
}

async fn fill(store: &Arc<Store>, user: &UserId, chunks: u64) -> lango_store::CollectionId {
    let collection = store.collection(user, "c", None).await.unwrap();
    let document = Arc::new(NewDocument {
        collection,
        source: Provenance {
            name: "noise".into(),
            trust: Trust::Untrusted,
        },
        title: "noise".into(),
        hash: [0; 32],
        size: 0,
        added: Timestamp(0),
    });
    let chunk = |seed: u64| NewChunk {
        heading: String::new(),
        text: format!("chunk {seed}"),
        position: 1,
        words: 2,
        vector: Some(noise(seed)),
    };
    let part = DocumentPart {
        document,
        before: 0,
        is_last: true,
        chunks: (0..chunks).map(chunk).collect(),
    };
    let stored = store
        .write_documents(vec![part], Some(model()))
        .await
        .unwrap();
    assert_eq!(stored, VectorOutcome::Done(()));
    // If the database supports an index, it must find the same chunks.
    store.index_vectors().await.unwrap();
    collection
}

#[tokio::test]
async fn the_coarse_scan_finds_the_nearest_of_many_vectors() {
    let database = TestDatabase::new(KIND);
    let store = database.open();
    let user = UserId::from("ada");
    let collection = fill(&store, &user, 2000).await;
    for seed in [0, 127, 128, 1999] {
        // The query is near one of the vectors, but not equal to it.
        let (near, other) = (noise(seed), noise(90_000 + seed));
        let query = near
            .iter()
            .zip(&other)
            .map(|(near, other)| near + other / 2.0);
        let query: Vec<f32> = query.collect();
        let found = store
            .search_vectors(vec![collection], model(), query, 5)
            .await;
        let VectorOutcome::Done(found) = found.unwrap() else {
            panic!("the model is the same")
        };
        assert_eq!(found.len(), 5);
        assert!(found.is_sorted_by(|(_, a), (_, b)| a >= b));
        let texts = store.chunks(vec![found[0].0]).await.unwrap();
        assert_eq!(&*texts[0].text, format!("chunk {seed}"));
        assert!((0.8..0.95).contains(&found[0].1), "{}", found[0].1);
    }
}

#[tokio::test]
async fn users_cannot_remove_documents_of_other_users() {
    let database = TestDatabase::new(KIND);
    let store = database.open();
    let user = UserId::from("ada");
    let collection = fill(&store, &user, 300).await;
    let wanted = DocumentFilter::Range {
        collection,
        from: String::new(),
        before: None,
        limit: 10,
    };
    let id = store.documents(&user, wanted.clone()).await.unwrap()[0].id;
    let other = UserId::from("bob");
    assert_eq!(
        store
            .remove_document(&other, id, DeleteMode::Overwrite)
            .await
            .unwrap(),
        None
    );
    assert!(store.documents(&other, wanted).await.unwrap().is_empty());
    assert_eq!(
        store
            .remove_document(&user, id, DeleteMode::Overwrite)
            .await
            .unwrap(),
        Some(300)
    );
    assert_eq!(
        store
            .remove_document(&user, id, DeleteMode::Normal)
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn vectors_are_set_only_for_existing_chunks_and_the_stored_model() {
    let database = TestDatabase::new(KIND);
    let store = database.open();
    let user = UserId::from("ada");
    let collection = fill(&store, &user, 1).await;
    let vectors = vec![(i64::MAX, noise(1))];
    // A chunk that no longer exists is skipped.
    assert_eq!(
        store.set_vectors(model(), vectors).await.unwrap(),
        VectorOutcome::Done(())
    );
    let wrong = EmbeddingModel {
        version: 2,
        ..model()
    };
    let search = store
        .search_vectors(vec![collection], wrong, noise(1), 5)
        .await;
    assert_eq!(search.unwrap(), VectorOutcome::OtherModel(model()));
}
