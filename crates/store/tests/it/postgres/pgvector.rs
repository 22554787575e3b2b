//! Tests of vector search with pgvector's index. To prove that the index is used, the tests delete the signs, so that a search
//! without the index finds nothing.

use super::{execute, number, unique};
use crate::ROOT;
use crate::database::indexing;
use lango_core::{EmbeddingModel, Provenance, Timestamp, Trust, UserId};
use lango_store::{
    CollectionId, DeleteMode, DocumentFilter, DocumentPart, NewChunk, NewDocument, Store,
    VectorOutcome, VectorSearch,
};
use lango_testkit::postgres;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::JoinSet;

const DIMENSIONS: usize = 64;

/// Number of hits to search for.
const LIMIT: usize = 20;

/// Creates a separate database, where the extension can be installed and removed. Returns its address as the superuser.
async fn database() -> String {
    let (server, name) = (postgres::fresh_schema_with_pgvector(), unique("near"));
    execute(&server, &format!("CREATE DATABASE {name}")).await;
    server.replace("/postgres?", &format!("/{name}?"))
}

/// Creates a separate database for a role that may not install extensions. Returns its address as the superuser and as the role.
async fn database_of_a_role() -> (String, String) {
    let admin = database().await;
    let role = unique("role");
    let name = admin.rsplit('/').next().unwrap().split('?').next().unwrap();
    let create = format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {name} OWNER TO {role}");
    execute(&admin, &create).await;
    let own = admin.replace("postgres@", &format!("{role}@"));
    (admin, own)
}

fn model(dimensions: usize) -> EmbeddingModel {
    EmbeddingModel {
        provider: "test".into(),
        model: "clusters".into(),
        dimensions: dimensions as u32,
        version: 1,
    }
}

/// Returns pseudo-random numbers, the same for the same seed.
fn noise(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..dimensions).map(|_| next()).collect()
}

/// Returns the centre of one of forty clusters, plus some noise.
fn clustered(seed: u64, dimensions: usize) -> Vec<f32> {
    let (centre, around) = (noise(seed % 40, dimensions), noise(1000 + seed, dimensions));
    let both = centre.iter().zip(&around);
    both.map(|(centre, around)| centre + around * 0.6).collect()
}

/// Writes a document with a chunk for each seed.
async fn write(
    store: &Store,
    collection: CollectionId,
    seeds: std::ops::Range<u64>,
    dimensions: usize,
) {
    let document = Arc::new(NewDocument {
        collection,
        source: Provenance {
            name: format!("from {}", seeds.start).into(),
            trust: Trust::Untrusted,
        },
        title: "numbers".into(),
        hash: [0; 32],
        size: 0,
        added: Timestamp(0),
    });
    let (start, end) = (seeds.start, seeds.end);
    for first in seeds.step_by(500) {
        let last = end.min(first + 500);
        let chunk = |seed: u64| NewChunk {
            heading: String::new(),
            text: format!("chunk {seed}"),
            position: 1,
            words: 2,
            vector: Some(clustered(seed, dimensions)),
        };
        let part = DocumentPart {
            document: Arc::clone(&document),
            before: first - start,
            is_last: last == end,
            chunks: (first..last).map(chunk).collect(),
        };
        let stored = store
            .write_documents(vec![part], Some(model(dimensions)))
            .await;
        assert_eq!(stored.unwrap(), VectorOutcome::Done(()));
    }
}

/// Creates a collection with this number of vectors.
async fn fill_only(store: &Store, user: &str, name: &str, vectors: u64) -> CollectionId {
    let collection = store.collection(&UserId::from(user), name, None).await;
    let collection = collection.unwrap();
    write(store, collection, 0..vectors, DIMENSIONS).await;
    collection
}

/// Creates a collection with this number of vectors, and the index if possible.
async fn fill(store: &Store, user: &str, name: &str, vectors: u64) -> CollectionId {
    let collection = fill_only(store, user, name, vectors).await;
    store.index_vectors().await.unwrap();
    collection
}

async fn nearest(
    store: &Store,
    collections: &[CollectionId],
    query: Vec<f32>,
    limit: usize,
) -> Vec<(i64, f64)> {
    let model = model(query.len());
    let found = store.search_vectors(collections.to_vec(), model, query, limit);
    let VectorOutcome::Done(found) = found.await.unwrap() else {
        panic!("the model is the same")
    };
    found
}

/// Returns the text of the chunk that is nearest to the vector of a seed.
async fn first(store: &Store, collection: CollectionId, seed: u64) -> Option<String> {
    let found = nearest(store, &[collection], clustered(seed, DIMENSIONS), 1).await;
    let keys = found.iter().map(|(key, _)| *key).collect();
    let chunks = store.chunks(keys).await.unwrap();
    chunks.first().map(|chunk| chunk.text.to_string())
}

async fn is_indexed(store: &Store) -> bool {
    matches!(
        store.vector_search().await.unwrap(),
        VectorSearch::Indexed { .. }
    )
}

/// Returns the reason why there is no index.
async fn scan_reason(store: &Store) -> String {
    match store.vector_search().await.unwrap() {
        VectorSearch::Scan { reason } => reason.unwrap(),
        VectorSearch::Indexed { by } => panic!("indexed by {by}"),
    }
}

#[tokio::test]
async fn the_index_finds_what_a_scan_finds_and_only_in_visible_collections() {
    let address = database().await;
    let plain = indexing(&address);
    let a = fill_only(&plain, "ada", "a", 2500).await;
    let b = fill_only(&plain, "ada", "b", 1500).await;
    fill_only(&plain, "bob", "c", 4000).await;
    let (mut same, mut all) = (0, 0);
    let queries: Vec<Vec<f32>> = (0..40)
        .map(|seed| clustered(5000 + seed, DIMENSIONS))
        .collect();
    let mut expected = Vec::new();
    for query in &queries {
        expected.push(nearest(&plain, &[a, b], query.clone(), LIMIT).await);
    }
    // The next start creates the index.
    let indexed = indexing(&address);
    let by = index_name(&indexed).await;
    assert!(by.starts_with("pgvector 0."), "{by}");
    execute(&address, "DELETE FROM library_bits").await;
    for (query, expected) in queries.into_iter().zip(expected) {
        let found = nearest(&indexed, &[a, b], query, LIMIT).await;
        assert_eq!(found.len(), LIMIT);
        assert!(found.is_sorted_by(|(_, one), (_, next)| one >= next));
        let keys = found.iter().map(|(key, _)| *key).collect();
        for chunk in indexed.chunks(keys).await.unwrap() {
            assert_ne!(&*chunk.collection, "c", "it belongs to another user");
        }
        let known: HashSet<(i64, u64)> = pairs(&expected).collect();
        // Cosines are the same to the last bit, with and without the index.
        same += pairs(&found).filter(|pair| known.contains(pair)).count();
        all += LIMIT;
    }
    println!("recall {same} of {all}");
    assert!(same * 100 >= all * 95, "{same} of {all}");
}

fn pairs(found: &[(i64, f64)]) -> impl Iterator<Item = (i64, u64)> {
    found.iter().map(|(key, cosine)| (*key, cosine.to_bits()))
}

async fn index_name(store: &Store) -> String {
    match store.vector_search().await.unwrap() {
        VectorSearch::Indexed { by } => by,
        VectorSearch::Scan { reason } => panic!("not indexed: {reason:?}"),
    }
}

#[tokio::test]
async fn an_index_that_exists_is_used_except_for_a_small_share_of_the_vectors() {
    let address = database().await;
    let usual = Store::at(&address, ROOT.into()).unwrap();
    let small = fill(&usual, "ada", "small", 300).await;
    let reason = scan_reason(&usual).await;
    assert!(
        reason.ends_with("is used from 20000 vectors on"),
        "{reason}"
    );
    let store = indexing(&address);
    let large = fill(&store, "bob", "large", 3000).await;
    let query = || clustered(7, DIMENSIONS);
    execute(&address, "DELETE FROM library_bits").await;
    // A share of 1/11 of the vectors is enough for the index, 1/21 is not.
    for store in [&usual, &store] {
        for searched in [&[small][..], &[small, large]] {
            assert_eq!(nearest(store, searched, query(), LIMIT).await.len(), LIMIT);
        }
    }
    write(&store, large, 3000..6000, DIMENSIONS).await;
    execute(&address, "ANALYZE library_vectors").await;
    assert!(nearest(&store, &[small], query(), LIMIT).await.is_empty());
    // A search for the zero vector uses a scan.
    let zero = vec![0.0; DIMENSIONS];
    assert!(nearest(&store, &[large], zero, LIMIT).await.len() == LIMIT);
}

#[tokio::test]
async fn a_search_that_the_index_gives_up_falls_back_to_a_scan() {
    let address = database().await;
    let store = indexing(&address);
    let own = store.collection(&UserId::from("ada"), "own", None).await;
    let own = own.unwrap();
    write(&store, own, 0..2500, DIMENSIONS).await;
    // The nearest vectors belong to another user, and are more than the index visits.
    let others = store.collection(&UserId::from("bob"), "others", None).await;
    let others = others.unwrap();
    let key = "SELECT id FROM library_collections WHERE name = 'others'";
    let key = number(&address, key).await;
    let many = format!(
        "INSERT INTO library_vectors SELECT ({key}::bigint << 32) + n,
             decode(repeat('7f', 61) || lpad(to_hex(n / 14400), 2, '0') || lpad(to_hex(n % 120), 2, '0') || lpad(to_hex(n / 120 % 120), 2, '0'), 'hex')
           FROM generate_series(0, 24999) AS n;
         UPDATE library_collections SET vectors = 25000 WHERE id = {key}"
    );
    execute(&address, &many).await;
    let query = vec![1.0; DIMENSIONS];
    let expected = nearest(&store, &[own], query.clone(), LIMIT).await;
    store.index_vectors().await.unwrap();
    assert_eq!(
        nearest(&store, &[own], query.clone(), LIMIT).await,
        expected
    );
    assert_eq!(nearest(&store, &[others], query, LIMIT).await.len(), LIMIT);
}

#[tokio::test]
async fn vectors_of_another_length_get_their_own_index() {
    let address = database().await;
    let store = indexing(&address);
    let collection = fill(&store, "ada", "c", 500).await;
    let other = model(48);
    store.set_vector_model(other.clone()).await.unwrap();
    assert!(
        nearest(&store, &[collection], noise(1, 48), 3)
            .await
            .is_empty()
    );
    let chunks = store.chunks_without_vectors(0, 1000).await.unwrap();
    let vectors = chunks.iter().enumerate();
    let vectors = vectors.map(|(seed, (key, ..))| (*key, clustered(seed as u64, 48)));
    let stored = store.set_vectors(other, vectors.collect()).await.unwrap();
    assert_eq!(stored, VectorOutcome::Done(()));
    // The next start creates the index.
    let later = indexing(&address);
    assert!(!is_indexed(&store).await);
    later.open_now().await.unwrap();
    assert!(is_indexed(&store).await);
    execute(&address, "DELETE FROM library_bits").await;
    let found = nearest(&store, &[collection], clustered(321, 48), 3).await;
    assert_eq!(found[0].0, chunks[321].0);
    // The old index is harmless, and is dropped when the database is compacted.
    let old = "SELECT count(*) FROM pg_class WHERE relname = 'library_near_64'";
    assert_eq!(number(&address, old).await, 1);
    store.index_vectors().await.unwrap();
    assert_eq!(number(&address, old).await, 0);
    let found = nearest(&store, &[collection], clustered(321, 48), 3).await;
    assert_eq!(found[0].0, chunks[321].0);
}

#[tokio::test]
async fn vectors_that_are_too_long_for_the_index_are_scanned() {
    let address = database().await;
    let store = indexing(&address);
    let collection = store.collection(&UserId::from("ada"), "c", None).await;
    let collection = collection.unwrap();
    write(&store, collection, 0..50, 4001).await;
    let found = nearest(&store, &[collection], clustered(17, 4001), 3).await;
    assert_eq!(found.len(), 3);
    let reason = scan_reason(&store).await;
    assert!(reason.contains("at most 4000 dimensions"), "{reason}");
    assert_eq!(
        store.index_vectors().await.unwrap(),
        VectorSearch::Scan {
            reason: Some(reason)
        }
    );
}

#[tokio::test]
async fn removed_documents_are_not_found() {
    let address = database().await;
    let (store, user) = (indexing(&address), UserId::from("ada"));
    let collection = fill(&store, "ada", "c", 400).await;
    write(&store, collection, 400..600, DIMENSIONS).await;
    assert_eq!(
        first(&store, collection, 7).await.as_deref(),
        Some("chunk 7")
    );
    let named = DocumentFilter::Named("from 0".to_owned());
    let document = store.documents(&user, named).await.unwrap()[0].id;
    let removed = store
        .remove_document(&user, document, DeleteMode::Normal)
        .await
        .unwrap();
    assert_eq!(removed, Some(400));
    execute(&address, "DELETE FROM library_bits").await;
    let found = nearest(&store, &[collection], clustered(7, DIMENSIONS), LIMIT).await;
    assert_eq!(found.len(), LIMIT);
    let keys = found.iter().map(|(key, _)| *key).collect();
    for chunk in store.chunks(keys).await.unwrap() {
        let seed: u64 = chunk.text.strip_prefix("chunk ").unwrap().parse().unwrap();
        assert!(seed >= 400, "{seed}");
    }
}

#[tokio::test]
async fn without_permission_to_install_pgvector_searches_scan_until_it_is_installed() {
    let (admin, own) = database_of_a_role().await;
    let store = indexing(&own);
    let collection = fill(&store, "ada", "c", 400).await;
    let reason = scan_reason(&store).await;
    assert!(
        reason.contains("not installed in this database"),
        "{reason}"
    );
    assert_eq!(
        first(&store, collection, 5).await.as_deref(),
        Some("chunk 5")
    );

    // The schema is not in the search path, and its name must be quoted.
    let role = own.split("://").nth(1).unwrap().split('@').next().unwrap();
    let installed = format!(
        "CREATE SCHEMA \"Of all\"; GRANT USAGE ON SCHEMA \"Of all\" TO {role}; CREATE EXTENSION vector SCHEMA \"Of all\""
    );
    execute(&admin, &installed).await;
    let reason = scan_reason(&store).await;
    assert!(reason.contains("lango store compact"), "{reason}");
    // There are few vectors, so the next start creates the index.
    let later = indexing(&own);
    assert!(is_indexed(&later).await);
    execute(&admin, "DELETE FROM library_bits").await;
    for store in [&store, &later] {
        // A replica that was already open uses the index too.
        write(store, collection, 1000..1001, DIMENSIONS).await;
        assert_eq!(
            first(store, collection, 8).await,
            Some("chunk 8".to_owned())
        );
        let user = UserId::from("ada");
        let named = DocumentFilter::Named("from 1000".to_owned());
        let document = store.documents(&user, named).await.unwrap()[0].id;
        store
            .remove_document(&user, document, DeleteMode::Normal)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn many_vectors_are_indexed_when_the_database_is_compacted() {
    let (admin, own) = database_of_a_role().await;
    let store = indexing(&own);
    let user = UserId::from("ada");
    let collection = store.collection(&user, "c", None).await.unwrap();
    // The vectors have the maximum length, and are counted as if they were many.
    write(&store, collection, 0..120, 4000).await;
    let many = "UPDATE library_collections SET vectors = vectors + 100000";
    execute(&own, many).await;
    execute(&admin, "CREATE EXTENSION vector SCHEMA public").await;
    let later = indexing(&own);
    let reason = scan_reason(&later).await;
    assert!(reason.contains("lango store compact"), "{reason}");
    let search = later.index_vectors().await.unwrap();
    assert!(matches!(search, VectorSearch::Indexed { .. }), "{search:?}");
    execute(&admin, "DELETE FROM library_bits").await;
    let query = || clustered(77, 4000);
    let found = nearest(&store, &[collection], query(), 5).await;
    let chunks = store.chunks(vec![found[0].0]).await.unwrap();
    assert_eq!(&*chunks[0].text, "chunk 77");

    // An interrupted creation leaves an invalid index.
    let broken =
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'library_near_4000'::regclass";
    execute(&admin, broken).await;
    let without = indexing(&own);
    assert!(
        nearest(&without, &[collection], query(), 5)
            .await
            .is_empty()
    );
    assert!(!is_indexed(&without).await);
    without.index_vectors().await.unwrap();
    assert_eq!(nearest(&store, &[collection], query(), 5).await, found);
}

#[tokio::test]
async fn everything_works_after_the_extension_is_dropped() {
    let (admin, own) = database_of_a_role().await;
    execute(&admin, "CREATE EXTENSION vector SCHEMA public").await;
    let store = indexing(&own);
    let collection = fill(&store, "ada", "c", 400).await;
    assert!(is_indexed(&store).await);
    assert_eq!(
        first(&store, collection, 5).await.as_deref(),
        Some("chunk 5")
    );

    execute(&admin, "DROP EXTENSION vector CASCADE").await;
    write(&store, collection, 400..500, DIMENSIONS).await;
    for store in [&store, &indexing(&own)] {
        assert_eq!(
            first(store, collection, 5).await.as_deref(),
            Some("chunk 5")
        );
        assert_eq!(
            first(store, collection, 450).await.as_deref(),
            Some("chunk 450")
        );
        assert!(!is_indexed(store).await);
    }

    // After it is installed again, the new index has all vectors.
    execute(&admin, "CREATE EXTENSION vector SCHEMA public").await;
    assert!(is_indexed(&indexing(&own)).await);
    execute(&admin, "DELETE FROM library_bits").await;
    assert_eq!(
        first(&store, collection, 450).await.as_deref(),
        Some("chunk 450")
    );
}

#[tokio::test]
async fn an_older_version_is_not_used() {
    let address = database().await;
    let store = indexing(&address);
    let collection = fill(&store, "ada", "c", 200).await;
    assert!(is_indexed(&store).await);
    let old = "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'";
    execute(&address, old).await;
    let reason = scan_reason(&indexing(&address)).await;
    assert_eq!(reason, "pgvector 0.7.4 is older than 0.8");
    execute(&address, "DELETE FROM library_bits").await;
    assert_eq!(first(&store, collection, 5).await, None);
}

#[tokio::test]
async fn replicas_that_start_together_create_one_index_for_each_schema() {
    let address = database().await;
    let (base, schema) = address.rsplit_once("%3D").unwrap();
    let other = format!("{base}%3D{schema}_too");
    for address in [&address, &other] {
        let store = indexing(address);
        fill(&store, "ada", "c", 300).await;
    }
    execute(&address, "DROP EXTENSION vector CASCADE").await;
    let mut replicas = JoinSet::new();
    for number in 0..10 {
        let store = indexing([&address, &other][number % 2]);
        replicas.spawn(async move {
            store.open_now().await.unwrap();
            is_indexed(&store).await
        });
    }
    while let Some(indexed) = replicas.join_next().await {
        assert!(indexed.unwrap());
    }
    let indexes = "SELECT count(*) FROM pg_class WHERE relname = 'library_near_64'";
    assert_eq!(number(&address, indexes).await, 2);
}
