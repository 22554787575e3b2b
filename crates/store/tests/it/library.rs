//! The rows of the library: vectors near and far, and whose they are.

use super::KIND;
use crate::place::Place;
use lango_core::{EmbeddingMaker, Source, Timestamp, Trust, UserId};
use lango_store::{
    DocumentFilter, DocumentPart, NewChunk, NewDocument, Removal, Store, VectorOutcome,
};
use std::sync::Arc;

const DIMENSIONS: usize = 128;

fn maker() -> EmbeddingMaker {
    EmbeddingMaker {
        provider: "test".into(),
        model: "noise".into(),
        dimensions: DIMENSIONS as u32,
        version: 1,
    }
}

/// Numbers that look like chance, the same for the same seed.
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
    let library = store;
    let collection = library.collection(user, "c", None).await.unwrap();
    let document = Arc::new(NewDocument {
        collection,
        source: Source {
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
    let piece = DocumentPart {
        document,
        before: 0,
        is_last: true,
        chunks: (0..chunks).map(chunk).collect(),
    };
    let stored = library
        .write_documents(vec![piece], Some(maker()))
        .await
        .unwrap();
    assert_eq!(stored, VectorOutcome::Done(()));
    // Where there can be an index, it finds the same.
    library.index_vectors().await.unwrap();
    collection
}

#[tokio::test]
async fn the_nearest_of_many_is_found_through_the_coarse_look() {
    let place = Place::new(KIND);
    let store = place.open();
    let user = UserId::from("ada");
    let collection = fill(&store, &user, 2000).await;
    for seed in [0, 127, 128, 1999] {
        // Near to one of them, and not the same.
        let (near, other) = (noise(seed), noise(90_000 + seed));
        let asked = near
            .iter()
            .zip(&other)
            .map(|(near, other)| near + other / 2.0);
        let asked: Vec<f32> = asked.collect();
        let found = store
            .search_vectors(vec![collection], maker(), asked, 5)
            .await;
        let VectorOutcome::Done(found) = found.unwrap() else {
            panic!("the maker is the same")
        };
        assert_eq!(found.len(), 5);
        assert!(found.is_sorted_by(|(_, a), (_, b)| a >= b));
        let texts = store.chunks(vec![found[0].0]).await.unwrap();
        assert_eq!(&*texts[0].text, format!("chunk {seed}"));
        assert!((0.8..0.95).contains(&found[0].1), "{}", found[0].1);
    }
}

#[tokio::test]
async fn nobody_removes_what_is_anothers() {
    let place = Place::new(KIND);
    let store = place.open();
    let user = UserId::from("ada");
    let collection = fill(&store, &user, 300).await;
    let wanted = DocumentFilter::Range {
        collection,
        from: String::new(),
        before: None,
        most: 10,
    };
    let id = store.documents(&user, wanted.clone()).await.unwrap()[0].id;
    let other = UserId::from("bob");
    assert_eq!(
        store
            .remove_document(&other, id, Removal::Wiped)
            .await
            .unwrap(),
        None
    );
    assert!(store.documents(&other, wanted).await.unwrap().is_empty());
    assert_eq!(
        store
            .remove_document(&user, id, Removal::Wiped)
            .await
            .unwrap(),
        Some(300)
    );
    assert_eq!(
        store
            .remove_document(&user, id, Removal::Plain)
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn vectors_are_given_to_chunks_that_are_there_and_compared_with_those_of_their_maker() {
    let place = Place::new(KIND);
    let store = place.open();
    let user = UserId::from("ada");
    let collection = fill(&store, &user, 1).await;
    let made = vec![(i64::MAX, noise(1))];
    // A chunk that is gone meanwhile is passed over.
    assert_eq!(
        store.set_vectors(maker(), made).await.unwrap(),
        VectorOutcome::Done(())
    );
    let wrong = EmbeddingMaker {
        version: 2,
        ..maker()
    };
    let asked = store
        .search_vectors(vec![collection], wrong, noise(1), 5)
        .await;
    assert_eq!(asked.unwrap(), VectorOutcome::OtherMaker(maker()));
}
