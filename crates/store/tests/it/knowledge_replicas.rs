//! Tests with several replicas of lango that change knowledge in one database at the same time.

use super::KIND;
use super::graph::{fact, source};
use crate::database::TestDatabase;
use lango_core::{EmbeddingModel, Provenance, Timestamp, Trust, UserId};
use lango_store::graph::NewFact;
use lango_store::{
    CollectionId, CommitOutcome, DeleteMode, DocumentFilter, DocumentPart, Generation,
    KnowledgeRow, MemoryOrder, MemoryOwner, MemoryStep, NewChunk, NewDocument, NewMemoryRecord,
    NewSavedMemory, QueryWord, SaveOutcome, Store, VectorOutcome,
};
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

const REPLICAS: usize = 3;

/// One of several replicas.
struct Replica {
    number: usize,
    store: Arc<Store>,
    all: Arc<Barrier>,
}

impl Replica {
    /// Waits for the other replicas, so that all of them run the next step at the same time.
    async fn meet(&self) {
        self.all.wait().await;
    }
}

/// Runs the same work on several replicas at the same time.
async fn on_replicas<F, R>(database: &TestDatabase, work: F) -> Vec<R::Output>
where
    F: Fn(Replica) -> R,
    R: Future + Send + 'static,
    R::Output: Send,
{
    let all = Arc::new(Barrier::new(REPLICAS));
    let mut replicas = JoinSet::new();
    for number in 0..REPLICAS {
        let (store, all) = (database.open(), Arc::clone(&all));
        store.open_now().await.unwrap();
        replicas.spawn(work(Replica { number, store, all }));
    }
    replicas.join_all().await
}

fn model() -> EmbeddingModel {
    EmbeddingModel {
        provider: "test".into(),
        model: "axes".into(),
        dimensions: 64,
        version: 1,
    }
}

/// Returns a different vector for each number below 64.
fn axis(number: usize) -> Vec<f32> {
    (0..64)
        .map(|at| if at == number { 1.0 } else { -0.01 })
        .collect()
}

fn part(collection: CollectionId, name: &str, number: usize) -> DocumentPart {
    let document = NewDocument {
        collection,
        source: Provenance {
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
async fn replicas_that_relate_the_same_facts_store_each_once() {
    let database = TestDatabase::new(KIND);
    let user = UserId::from("ada");
    let new = on_replicas(&database, |replica| {
        let user = user.clone();
        async move {
            let mut new = 0;
            for round in 0..10 {
                let facts = (0..30).map(|number| NewFact {
                    source: source(&format!("replica {}", replica.number), Trust::Untrusted),
                    ..fact(
                        &format!("hub {round}"),
                        "knows",
                        &format!("{round} {number}"),
                    )
                });
                replica.meet().await;
                new += replica
                    .store
                    .relate_all(&user, facts.collect())
                    .await
                    .unwrap();
            }
            new
        }
    })
    .await;
    assert_eq!(new.iter().sum::<u64>(), 300);
    let counts =
        "SELECT (SELECT count(*) FROM graph_facts) || ' ' || (SELECT count(*) FROM graph_entities)";
    assert_eq!(database.rows(counts), ["300 310"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_saved_concurrently_are_consecutive() {
    let database = TestDatabase::new(KIND);
    let user = UserId::from("ada");
    let collection = database.open().collection(&user, "knowledge", None).await;
    let collection = collection.unwrap();
    let versions = on_replicas(&database, |replica| {
        let user = user.clone();
        async move {
            let mut versions = Vec::new();
            for round in 0..8 {
                let row = KnowledgeRow {
                    key: "k".into(),
                    version: 0,
                    category: "".into(),
                    content: format!("{} {round}", replica.number).into(),
                    tags: Vec::new(),
                    source: source("a", Trust::Untrusted),
                    saved: Timestamp(1),
                };
                let part = part(collection, "knowledge/k", replica.number);
                replica.meet().await;
                let saved = replica
                    .store
                    .save_knowledge(&user, row, part, Some(model()))
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
    let store = database.open();
    let stored = store.knowledge_versions(&user, "k", 100).await.unwrap();
    assert_eq!(stored.len(), 24);
    let collections = store.all_collections(&user).await.unwrap();
    assert_eq!((collections[0].chunks, collections[0].vectors), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_replica_finds_what_others_added_and_nothing_they_removed() {
    let database = TestDatabase::new(KIND);
    let user = UserId::from("ada");
    let reader = database.open();
    let collection = reader.collection(&user, "c", None).await.unwrap();
    let nearest = async |number: usize| {
        let search = reader.search_vectors(vec![collection], model(), axis(number), 1);
        let VectorOutcome::Done(found) = search.await.unwrap() else {
            panic!("the model is the same")
        };
        let keys = found.iter().map(|(key, _)| *key).collect();
        let chunks = reader.chunks(keys).await.unwrap();
        chunks.first().map(|chunk| chunk.text.to_string())
    };
    assert_eq!(nearest(1).await, None);
    for half in [0, 30] {
        on_replicas(&database, |replica| async move {
            for round in 0..10 {
                let number = half + replica.number * 10 + round;
                let part = part(collection, &format!("d {number}"), number);
                replica.meet().await;
                let stored = replica
                    .store
                    .write_documents(vec![part], Some(model()))
                    .await;
                assert_eq!(stored.unwrap(), VectorOutcome::Done(()));
            }
        })
        .await;
        reader.index_vectors().await.unwrap();
        // The reader's cache is now out of date.
        for number in half..half + 30 {
            let text = format!("common w{number}");
            assert_eq!(nearest(number).await, Some(text));
            let words = vec![QueryWord::new(format!("w{number}"), 1)];
            let ranked = reader
                .search_words(vec![collection], words, 5)
                .await
                .unwrap();
            assert_eq!((ranked.hits.len(), ranked.unknown), (1, 0));
        }
    }
    let named = DocumentFilter::Named("d 7".to_owned());
    let document = reader.documents(&user, named).await.unwrap()[0].id;
    let other = database.open();
    let removed = other
        .remove_document(&user, document, DeleteMode::Normal)
        .await
        .unwrap();
    assert_eq!(removed, Some(1));
    assert_ne!(nearest(7).await, Some("common w7".to_owned()));
    let counted = reader.all_collections(&user).await.unwrap();
    assert_eq!((counted[0].chunks, counted[0].vectors), (59, 59));
    let common = reader.word_frequencies(vec!["common".to_owned()]).await;
    assert_eq!(common.unwrap(), (59, vec![59]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_several_replicas_commits_a_step_of_a_revision() {
    let database = TestDatabase::new(KIND);
    let store = database.open();
    let owner = MemoryOwner {
        user: "local".into(),
        session: crate::create(&*store, "s_1").await,
    };
    for revision in 0..10 {
        let ended = on_replicas(&database, |replica| {
            let owner = owner.clone();
            async move {
                let observation = NewMemoryRecord {
                    turns: (revision, revision),
                    text: format!("of {}", replica.number),
                    source: source("test", Trust::Trusted),
                    created: Timestamp(1),
                };
                let step = MemoryStep::Observe {
                    observed: revision + 1,
                    trust: Trust::Trusted,
                    observation: Some(observation),
                };
                replica.meet().await;
                replica
                    .store
                    .commit_step(&owner, revision, step)
                    .await
                    .unwrap()
            }
        })
        .await;
        let done = ended.iter().filter(|ended| **ended != CommitOutcome::Stale);
        assert_eq!(done.count(), 1);
    }
    let rows = store.recollections(&owner, Generation::Observation, MemoryOrder::Newest, 99);
    assert_eq!(rows.await.unwrap().len(), 10);
    assert_eq!(store.watermark(&owner).await.unwrap().observed, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_saves_respect_the_limit_and_store_each_memory_once() {
    let database = TestDatabase::new(KIND);
    let user = UserId::from("ada");
    let saved = on_replicas(&database, |replica| {
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
                replica.meet().await;
                let saved = replica.store.save_memory(&user, memory, 10).await.unwrap();
                new += usize::from(matches!(saved, SaveOutcome::New(_)));
            }
            new
        }
    })
    .await;
    assert_eq!(saved.iter().sum::<usize>(), 10);
    assert_eq!(
        database
            .open()
            .saved_memories(&user, 99)
            .await
            .unwrap()
            .len(),
        10
    );
}
