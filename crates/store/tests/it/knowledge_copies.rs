//! Several copies of lango that change knowledge at once, over one database.

use super::KIND;
use super::graph::{fact, source};
use crate::place::Place;
use lango_core::{EmbeddingMaker, Source, Timestamp, Trust, UserId};
use lango_store::graph::NewFact;
use lango_store::{
    CollectionId, Commit, DocumentFilter, DocumentPart, Generation, KnowledgeRow, MemoryOwner,
    MemoryStep, NewChunk, NewDocument, NewRecollection, NewSavedMemory, QueryWord,
    RecollectionOrder, Removal, SaveOutcome, Store, VectorOutcome,
};
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const COPIES: usize = 3;

/// One of several copies.
struct Copy {
    number: usize,
    store: Arc<Store>,
    all: Arc<Barrier>,
}

impl Copy {
    /// Waits for the others, so that what comes next is done at once.
    async fn meet(&self) {
        self.all.wait().await;
    }
}

/// Runs the same in several copies at once.
async fn in_copies<F, R>(place: &Place, work: F) -> Vec<R::Output>
where
    F: Fn(Copy) -> R,
    R: Future + Send + 'static,
    R::Output: Send,
{
    let all = Arc::new(Barrier::new(COPIES));
    let mut copies = JoinSet::new();
    for number in 0..COPIES {
        let (store, all) = (place.open(), Arc::clone(&all));
        store.open_now().await.unwrap();
        copies.spawn(work(Copy { number, store, all }));
    }
    copies.join_all().await
}

fn maker() -> EmbeddingMaker {
    EmbeddingMaker {
        provider: "test".into(),
        model: "axes".into(),
        dimensions: 64,
        version: 1,
    }
}

/// A vector of its own for each number below 64.
fn axis(number: usize) -> Vec<f32> {
    (0..64)
        .map(|at| if at == number { 1.0 } else { -0.01 })
        .collect()
}

fn piece(collection: CollectionId, name: &str, number: usize) -> DocumentPart {
    let document = NewDocument {
        collection,
        source: Source {
            name: name.into(),
            trust: Trust::Untrusted,
        },
        title: name.into(),
        hash: [0; 32],
        size: 1,
        added: Timestamp(1),
    };
    DocumentPart {
        document: Arc::new(document),
        before: 0,
        is_last: true,
        chunks: vec![NewChunk {
            heading: String::new(),
            text: format!("common w{number}"),
            position: 1,
            words: 2,
            vector: Some(axis(number)),
        }],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_relate_the_same_facts_keep_each_once() {
    let place = Place::new(KIND);
    let user = UserId::from("ada");
    let new = in_copies(&place, |copy| {
        let user = user.clone();
        async move {
            let mut new = 0;
            for round in 0..10 {
                let facts = (0..30).map(|number| NewFact {
                    source: source(&format!("copy {}", copy.number), Trust::Untrusted),
                    ..fact(
                        &format!("hub {round}"),
                        "knows",
                        &format!("{round} {number}"),
                    )
                });
                copy.meet().await;
                new += copy.store.relate_all(&user, facts.collect()).await.unwrap();
            }
            new
        }
    })
    .await;
    assert_eq!(new.iter().sum::<u64>(), 300);
    let counts =
        "SELECT (SELECT count(*) FROM graph_facts) || ' ' || (SELECT count(*) FROM graph_entities)";
    assert_eq!(place.rows(counts), ["300 310"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_copies_save_at_once_follow_each_other() {
    let place = Place::new(KIND);
    let user = UserId::from("ada");
    let collection = place.open().collection(&user, "knowledge", None).await;
    let collection = collection.unwrap();
    let versions = in_copies(&place, |copy| {
        let user = user.clone();
        async move {
            let mut versions = Vec::new();
            for round in 0..8 {
                let row = KnowledgeRow {
                    key: "k".into(),
                    version: 0,
                    category: "".into(),
                    content: format!("{} {round}", copy.number).into(),
                    tags: Vec::new(),
                    source: source("a", Trust::Untrusted),
                    saved: Timestamp(1),
                };
                let piece = piece(collection, "knowledge/k", copy.number);
                copy.meet().await;
                let saved = copy
                    .store
                    .save_knowledge(&user, row, piece, Some(maker()))
                    .await;
                let VectorOutcome::Done((version, true)) = saved.unwrap() else {
                    panic!("it is new")
                };
                versions.push(version);
            }
            versions
        }
    })
    .await;
    let mut versions: Vec<u64> = versions.into_iter().flatten().collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=24).collect::<Vec<_>>());
    let store = place.open();
    let kept = store.knowledge_versions(&user, "k", 100).await.unwrap();
    assert_eq!(kept.len(), 24);
    let collections = store.all_collections(&user).await.unwrap();
    assert_eq!((collections[0].chunks, collections[0].vectors), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_copy_finds_what_the_others_added_and_nothing_that_they_removed() {
    let place = Place::new(KIND);
    let user = UserId::from("ada");
    let watching = place.open();
    let collection = watching.collection(&user, "c", None).await.unwrap();
    let nearest = async |number: usize| {
        let asked = watching.search_vectors(vec![collection], maker(), axis(number), 1);
        let VectorOutcome::Done(found) = asked.await.unwrap() else {
            panic!("the maker is the same")
        };
        let keys = found.iter().map(|(key, _)| *key).collect();
        let chunks = watching.chunks(keys).await.unwrap();
        chunks.first().map(|chunk| chunk.text.to_string())
    };
    assert_eq!(nearest(1).await, None);
    for half in [0, 30] {
        in_copies(&place, |copy| async move {
            for round in 0..10 {
                let number = half + copy.number * 10 + round;
                let piece = piece(collection, &format!("d {number}"), number);
                copy.meet().await;
                let stored = copy.store.write_documents(vec![piece], Some(maker())).await;
                assert_eq!(stored.unwrap(), VectorOutcome::Done(()));
            }
        })
        .await;
        watching.index_vectors().await.unwrap();
        // What it had in memory is not what is there any more.
        for number in half..half + 30 {
            let text = format!("common w{number}");
            assert_eq!(nearest(number).await, Some(text));
            let words = vec![QueryWord::new(format!("w{number}"), 1)];
            let ranked = watching
                .search_words(vec![collection], words, 5)
                .await
                .unwrap();
            assert_eq!((ranked.hits.len(), ranked.unknown), (1, 0));
        }
    }
    let named = DocumentFilter::Named("d 7".to_owned());
    let document = watching.documents(&user, named).await.unwrap()[0].id;
    let other = place.open();
    let removed = other
        .remove_document(&user, document, Removal::Plain)
        .await
        .unwrap();
    assert_eq!(removed, Some(1));
    assert_ne!(nearest(7).await, Some("common w7".to_owned()));
    let counted = watching.all_collections(&user).await.unwrap();
    assert_eq!((counted[0].chunks, counted[0].vectors), (59, 59));
    let common = watching.word_frequencies(vec!["common".to_owned()]).await;
    assert_eq!(common.unwrap(), (59, vec![59]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_copies_that_end_a_step_of_one_revision_one_does() {
    let place = Place::new(KIND);
    let store = place.open();
    let owner = MemoryOwner {
        user: "local".into(),
        session: crate::create(&*store, "s_1").await,
    };
    for revision in 0..10 {
        let ended = in_copies(&place, |copy| {
            let owner = owner.clone();
            async move {
                let observation = NewRecollection {
                    turns: (revision, revision),
                    text: format!("of {}", copy.number),
                    source: source("test", Trust::Trusted),
                    created: Timestamp(1),
                };
                let step = MemoryStep::Observe {
                    observed: revision + 1,
                    trust: Trust::Trusted,
                    observation: Some(observation),
                };
                copy.meet().await;
                copy.store
                    .commit_step(&owner, revision, step)
                    .await
                    .unwrap()
            }
        })
        .await;
        let done = ended.iter().filter(|ended| **ended != Commit::Stale);
        assert_eq!(done.count(), 1);
    }
    let rows = store.recollections(
        &owner,
        Generation::Observation,
        RecollectionOrder::Newest,
        99,
    );
    assert_eq!(rows.await.unwrap().len(), 10);
    assert_eq!(store.watermark(&owner).await.unwrap().observed, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_saves_no_more_than_allowed_and_the_same_once_however_many_copies_save() {
    let place = Place::new(KIND);
    let user = UserId::from("ada");
    let saved = in_copies(&place, |copy| {
        let user = user.clone();
        async move {
            let mut new = 0;
            for number in 0..12 {
                let memory = NewSavedMemory {
                    text: format!("memory {number}"),
                    tags: Vec::new(),
                    source: source("test", Trust::Trusted),
                    created: Timestamp(1),
                };
                copy.meet().await;
                let saved = copy.store.save_memory(&user, memory, 10).await.unwrap();
                new += usize::from(matches!(saved, SaveOutcome::New(_)));
            }
            new
        }
    })
    .await;
    assert_eq!(saved.iter().sum::<usize>(), 10);
    assert_eq!(
        place.open().saved_memories(&user, 99).await.unwrap().len(),
        10
    );
}
