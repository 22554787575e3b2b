//! The nearest vectors through pgvector's index. What proves that it was asked: the signs are deleted, so that a search
//! without it would find nothing.

use super::{execute, number, unique};
use crate::ROOT;
use crate::place::indexing;
use lango_core::{EmbeddingMaker, Source, Timestamp, Trust, UserId};
use lango_store::{
    CollectionId, DocumentFilter, DocumentPart, NewChunk, NewDocument, Removal, Store,
    VectorOutcome, VectorSearch,
};
use lango_testkit::postgres;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::JoinSet;

const DIMENSIONS: usize = 64;

/// How many are looked for.
const MOST: usize = 20;

/// A database of its own, where the extension is to come and go; as the superuser.
async fn database() -> String {
    let (server, name) = (postgres::empty_with_pgvector(), unique("near"));
    execute(&server, &format!("CREATE DATABASE {name}")).await;
    server.replace("/postgres?", &format!("/{name}?"))
}

/// The same, for a role that may not install extensions.
async fn database_of_a_role() -> (String, String) {
    let above = database().await;
    let role = unique("role");
    let name = above.rsplit('/').next().unwrap().split('?').next().unwrap();
    let made = format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {name} OWNER TO {role}");
    execute(&above, &made).await;
    let own = above.replace("postgres@", &format!("{role}@"));
    (above, own)
}

fn maker(dimensions: usize) -> EmbeddingMaker {
    EmbeddingMaker {
        provider: "test".into(),
        model: "clusters".into(),
        dimensions: dimensions as u32,
        version: 1,
    }
}

/// Numbers that look like chance, the same for the same seed.
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

/// One of forty clusters, and some noise.
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
        source: Source {
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
        let piece = DocumentPart {
            document: Arc::clone(&document),
            before: first - start,
            is_last: last == end,
            chunks: (first..last).map(chunk).collect(),
        };
        let stored = store
            .write_documents(vec![piece], Some(maker(dimensions)))
            .await;
        assert_eq!(stored.unwrap(), VectorOutcome::Done(()));
    }
}

/// A collection of a user with so many vectors.
async fn fill_only(store: &Store, user: &str, name: &str, vectors: u64) -> CollectionId {
    let collection = store.collection(&UserId::from(user), name, None).await;
    let collection = collection.unwrap();
    write(store, collection, 0..vectors, DIMENSIONS).await;
    collection
}

/// The same, indexed if that is possible.
async fn fill(store: &Store, user: &str, name: &str, vectors: u64) -> CollectionId {
    let collection = fill_only(store, user, name, vectors).await;
    store.index_vectors().await.unwrap();
    collection
}

async fn nearest(
    store: &Store,
    collections: &[CollectionId],
    asked: Vec<f32>,
    most: usize,
) -> Vec<(i64, f64)> {
    let maker = maker(asked.len());
    let found = store.search_vectors(collections.to_vec(), maker, asked, most);
    let VectorOutcome::Done(found) = found.await.unwrap() else {
        panic!("the maker is the same")
    };
    found
}

/// The text of what is nearest to the vector of a seed.
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

/// Why there is no index.
async fn why(store: &Store) -> String {
    match store.vector_search().await.unwrap() {
        VectorSearch::Plain { why } => why.unwrap(),
        VectorSearch::Indexed { by } => panic!("indexed by {by}"),
    }
}

#[tokio::test]
async fn the_index_finds_what_the_plain_search_finds_in_what_is_visible_alone() {
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
        expected.push(nearest(&plain, &[a, b], query.clone(), MOST).await);
    }
    // The next start creates the index.
    let asking = indexing(&address);
    let by = store_says(&asking).await;
    assert!(by.starts_with("pgvector 0."), "{by}");
    execute(&address, "DELETE FROM library_bits").await;
    for (query, expected) in queries.into_iter().zip(expected) {
        let found = nearest(&asking, &[a, b], query, MOST).await;
        assert_eq!(found.len(), MOST);
        assert!(found.is_sorted_by(|(_, one), (_, next)| one >= next));
        let keys = found.iter().map(|(key, _)| *key).collect();
        for chunk in asking.chunks(keys).await.unwrap() {
            assert_ne!(&*chunk.collection, "c", "somebody else's");
        }
        let known: HashSet<(i64, u64)> = pairs(&expected).collect();
        // A cosine is the same to the last bit, whoever found it.
        same += pairs(&found).filter(|pair| known.contains(pair)).count();
        all += MOST;
    }
    println!("recall {same} of {all}");
    assert!(same * 100 >= all * 95, "{same} of {all}");
}

fn pairs(found: &[(i64, f64)]) -> impl Iterator<Item = (i64, u64)> {
    found.iter().map(|(key, cosine)| (*key, cosine.to_bits()))
}

async fn store_says(store: &Store) -> String {
    match store.vector_search().await.unwrap() {
        VectorSearch::Indexed { by } => by,
        VectorSearch::Plain { why } => panic!("plain: {why:?}"),
    }
}

#[tokio::test]
async fn an_index_that_exists_is_used_except_for_a_small_share_of_the_vectors() {
    let address = database().await;
    let usual = Store::at(&address, ROOT.into()).unwrap();
    let small = fill(&usual, "ada", "small", 300).await;
    let said = why(&usual).await;
    assert!(said.ends_with("is of use from 20000 vectors on"), "{said}");
    let store = indexing(&address);
    let large = fill(&store, "bob", "large", 3000).await;
    let asked = || clustered(7, DIMENSIONS);
    execute(&address, "DELETE FROM library_bits").await;
    // One vector in eleven is enough for the index, one in twenty is not.
    for store in [&usual, &store] {
        for searched in [&[small][..], &[small, large]] {
            assert_eq!(nearest(store, searched, asked(), MOST).await.len(), MOST);
        }
    }
    write(&store, large, 3000..6000, DIMENSIONS).await;
    execute(&address, "ANALYZE library_vectors").await;
    assert!(nearest(&store, &[small], asked(), MOST).await.is_empty());
    // A vector without a direction is compared by a scan.
    let nowhere = vec![0.0; DIMENSIONS];
    assert!(nearest(&store, &[large], nowhere, MOST).await.len() == MOST);
}

#[tokio::test]
async fn a_search_that_the_index_gives_up_is_made_without_it() {
    let address = database().await;
    let store = indexing(&address);
    let own = store.collection(&UserId::from("ada"), "own", None).await;
    let own = own.unwrap();
    write(&store, own, 0..2500, DIMENSIONS).await;
    // Whatever is near is somebody else's, more than the index looks at.
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
    let asked = vec![1.0; DIMENSIONS];
    let expected = nearest(&store, &[own], asked.clone(), MOST).await;
    store.index_vectors().await.unwrap();
    assert_eq!(nearest(&store, &[own], asked.clone(), MOST).await, expected);
    assert_eq!(nearest(&store, &[others], asked, MOST).await.len(), MOST);
}

#[tokio::test]
async fn vectors_of_another_length_get_an_index_of_their_own() {
    let address = database().await;
    let store = indexing(&address);
    let collection = fill(&store, "ada", "c", 500).await;
    let other = maker(48);
    store.begin_vectors(other.clone()).await.unwrap();
    assert!(
        nearest(&store, &[collection], noise(1, 48), 3)
            .await
            .is_empty()
    );
    let chunks = store.without_vectors(0, 1000).await.unwrap();
    let made = chunks.iter().enumerate();
    let made = made.map(|(seed, (key, ..))| (*key, clustered(seed as u64, 48)));
    let stored = store.set_vectors(other, made.collect()).await.unwrap();
    assert_eq!(stored, VectorOutcome::Done(()));
    // The next start makes it.
    let later = indexing(&address);
    assert!(!is_indexed(&store).await);
    later.open_now().await.unwrap();
    assert!(is_indexed(&store).await);
    execute(&address, "DELETE FROM library_bits").await;
    let found = nearest(&store, &[collection], clustered(321, 48), 3).await;
    assert_eq!(found[0].0, chunks[321].0);
    // The old one does no harm, and goes when there is time for it.
    let old = "SELECT count(*) FROM pg_class WHERE relname = 'library_near_64'";
    assert_eq!(number(&address, old).await, 1);
    store.index_vectors().await.unwrap();
    assert_eq!(number(&address, old).await, 0);
    let found = nearest(&store, &[collection], clustered(321, 48), 3).await;
    assert_eq!(found[0].0, chunks[321].0);
}

#[tokio::test]
async fn more_numbers_than_it_indexes_are_compared_without_it() {
    let address = database().await;
    let store = indexing(&address);
    let collection = store.collection(&UserId::from("ada"), "c", None).await;
    let collection = collection.unwrap();
    write(&store, collection, 0..50, 4001).await;
    let found = nearest(&store, &[collection], clustered(17, 4001), 3).await;
    assert_eq!(found.len(), 3);
    let why = why(&store).await;
    assert!(why.contains("4000 numbers at most"), "{why}");
    assert_eq!(
        store.index_vectors().await.unwrap(),
        VectorSearch::Plain { why: Some(why) }
    );
}

#[tokio::test]
async fn what_was_removed_is_not_found() {
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
        .remove_document(&user, document, Removal::Plain)
        .await
        .unwrap();
    assert_eq!(removed, Some(400));
    execute(&address, "DELETE FROM library_bits").await;
    let found = nearest(&store, &[collection], clustered(7, DIMENSIONS), MOST).await;
    assert_eq!(found.len(), MOST);
    let keys = found.iter().map(|(key, _)| *key).collect();
    for chunk in store.chunks(keys).await.unwrap() {
        let seed: u64 = chunk.text.strip_prefix("chunk ").unwrap().parse().unwrap();
        assert!(seed >= 400, "{seed}");
    }
}

#[tokio::test]
async fn a_role_that_may_not_install_it_does_without_until_somebody_does() {
    let (above, own) = database_of_a_role().await;
    let store = indexing(&own);
    let collection = fill(&store, "ada", "c", 400).await;
    let said = why(&store).await;
    assert!(said.contains("not installed in this database"), "{said}");
    assert_eq!(
        first(&store, collection, 5).await.as_deref(),
        Some("chunk 5")
    );

    // In a schema that nobody looks in by itself, and with a name that has to be quoted.
    let role = own.split("://").nth(1).unwrap().split('@').next().unwrap();
    let installed = format!(
        "CREATE SCHEMA \"Of all\"; GRANT USAGE ON SCHEMA \"Of all\" TO {role}; CREATE EXTENSION vector SCHEMA \"Of all\""
    );
    execute(&above, &installed).await;
    let said = why(&store).await;
    assert!(said.contains("lango store compact"), "{said}");
    // There is little, so that the next start is enough.
    let later = indexing(&own);
    assert!(is_indexed(&later).await);
    execute(&above, "DELETE FROM library_bits").await;
    for store in [&store, &later] {
        // Those that were there before ask it as well.
        write(store, collection, 1000..1001, DIMENSIONS).await;
        assert_eq!(
            first(store, collection, 8).await,
            Some("chunk 8".to_owned())
        );
        let user = UserId::from("ada");
        let named = DocumentFilter::Named("from 1000".to_owned());
        let document = store.documents(&user, named).await.unwrap()[0].id;
        store
            .remove_document(&user, document, Removal::Plain)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn many_vectors_are_indexed_when_the_database_is_compacted() {
    let (above, own) = database_of_a_role().await;
    let store = indexing(&own);
    let user = UserId::from("ada");
    let collection = store.collection(&user, "c", None).await.unwrap();
    // As long as they may be, and counted as if they were many.
    write(&store, collection, 0..120, 4000).await;
    let many = "UPDATE library_collections SET vectors = vectors + 100000";
    execute(&own, many).await;
    execute(&above, "CREATE EXTENSION vector SCHEMA public").await;
    let later = indexing(&own);
    let said = why(&later).await;
    assert!(said.contains("lango store compact"), "{said}");
    let made = later.index_vectors().await.unwrap();
    assert!(matches!(made, VectorSearch::Indexed { .. }), "{made:?}");
    execute(&above, "DELETE FROM library_bits").await;
    let asked = || clustered(77, 4000);
    let found = nearest(&store, &[collection], asked(), 5).await;
    let chunks = store.chunks(vec![found[0].0]).await.unwrap();
    assert_eq!(&*chunks[0].text, "chunk 77");

    // A making that broke off leaves an index that nobody may use.
    let broken =
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'library_near_4000'::regclass";
    execute(&above, broken).await;
    let without = indexing(&own);
    assert!(
        nearest(&without, &[collection], asked(), 5)
            .await
            .is_empty()
    );
    assert!(!is_indexed(&without).await);
    without.index_vectors().await.unwrap();
    assert_eq!(nearest(&store, &[collection], asked(), 5).await, found);
}

#[tokio::test]
async fn dropping_the_extension_leaves_everything_at_work() {
    let (above, own) = database_of_a_role().await;
    execute(&above, "CREATE EXTENSION vector SCHEMA public").await;
    let store = indexing(&own);
    let collection = fill(&store, "ada", "c", 400).await;
    assert!(is_indexed(&store).await);
    assert_eq!(
        first(&store, collection, 5).await.as_deref(),
        Some("chunk 5")
    );

    execute(&above, "DROP EXTENSION vector CASCADE").await;
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

    // When it comes back nothing is missing from its index.
    execute(&above, "CREATE EXTENSION vector SCHEMA public").await;
    assert!(is_indexed(&indexing(&own)).await);
    execute(&above, "DELETE FROM library_bits").await;
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
    let said = why(&indexing(&address)).await;
    assert_eq!(said, "pgvector 0.7.4 is older than 0.8");
    execute(&address, "DELETE FROM library_bits").await;
    assert_eq!(first(&store, collection, 5).await, None);
}

#[tokio::test]
async fn copies_that_start_at_once_make_one_index_for_each_schema() {
    let address = database().await;
    let (base, schema) = address.rsplit_once("%3D").unwrap();
    let other = format!("{base}%3D{schema}_too");
    for address in [&address, &other] {
        let store = indexing(address);
        fill(&store, "ada", "c", 300).await;
    }
    execute(&address, "DROP EXTENSION vector CASCADE").await;
    let mut copies = JoinSet::new();
    for copy in 0..10 {
        let store = indexing([&address, &other][copy % 2]);
        copies.spawn(async move {
            store.open_now().await.unwrap();
            is_indexed(&store).await
        });
    }
    while let Some(indexed) = copies.join_next().await {
        assert!(indexed.unwrap());
    }
    let indexes = "SELECT count(*) FROM pg_class WHERE relname = 'library_near_64'";
    assert_eq!(number(&address, indexes).await, 2);
}
