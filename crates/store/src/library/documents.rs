//! Writes and removes collections, documents and chunks in bounded parts.
//!
//! Writers of chunks, words or vectors first lock the embedding model, then the rows of the collections. They always use this
//! order, so that no two transactions deadlock. Readers never wait.

use super::fold::fold;
use super::statements as sql;
use super::vectors::{self, COLLECTION_SHIFT};
use super::{CollectionId, DeleteMode, DocumentPart, NewDocument};
use crate::StoreFuture;
use crate::backend::{BackendError, Result, Row, Sql, Tx, bulk_row, sql, values, work};
use crate::store::Store;
use lango_core::{EmbeddingModel, SessionId, Text, Trust, UserId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of chunks that one transaction deletes.
const DELETE_BATCH: usize = 200;
/// Maximum number of chunks that one transaction deletes and overwrites in SQLite, which takes about 10 ms per chunk in a library
/// of 100,000 chunks.
const WIPE_BATCH: usize = 4;

impl Store {
    /// Returns a user's collection with this name. Creates it if it does not exist.
    pub fn collection(
        &self,
        user: &UserId,
        name: &str,
        session: Option<&SessionId>,
    ) -> StoreFuture<'_, CollectionId> {
        let args = (user.clone(), name.to_owned(), session.cloned());
        work!(self.backend.write(args), |tx, user, name, session| {
            let session = session.as_ref().map_or("", SessionId::as_str);
            let key = values![user, name, session];
            if let Some(id) = tx.value(sql::COLLECTION, key).await? {
                return Ok(CollectionId(id));
            }
            tx.execute(sql::INSERT_COLLECTION, key).await?;
            let created = tx.value(sql::COLLECTION, key).await?;
            created
                .map(CollectionId)
                .ok_or_else(|| BackendError::other("the row of a new collection is missing"))
        })
    }
}

/// Locks collections against other writers until the end of the transaction.
pub(super) async fn lock(tx: &mut Tx<'_>, collections: BTreeSet<i64>) -> Result<()> {
    let collections: Vec<i64> = collections.into_iter().collect();
    tx.query(sql::LOCK_COLLECTIONS, values![collections], |_| Ok(()))
        .await?;
    Ok(())
}

/// Returns the model of the stored vectors if the parts have vectors from another model.
pub(super) async fn other_model(
    tx: &mut Tx<'_>,
    parts: &[DocumentPart],
    model: Option<&EmbeddingModel>,
) -> Result<Option<EmbeddingModel>> {
    let mut chunks = parts.iter().flat_map(|part| &part.chunks);
    if chunks.all(|chunk| chunk.vector.is_none()) {
        return Ok(None);
    }
    let model = model.ok_or_else(|| {
        BackendError::other("chunks have vectors, but the embedding model is missing")
    })?;
    vectors::claim(tx, model).await
}

/// Writes parts into locked collections and returns the keys of their documents. The vectors must be from the stored model.
pub(super) async fn write_locked(tx: &mut Tx<'_>, parts: &[DocumentPart]) -> Result<Vec<i64>> {
    insert_documents(tx, parts).await?;
    let documents = document_keys(tx, parts).await?;
    let mut next_keys = reserve_keys(tx, parts).await?;
    let mut chunks = Vec::new();
    for (part, document) in parts.iter().zip(&documents) {
        let key = next_keys.entry(part.document.collection.0).or_default();
        for (chunk, ordinal) in part.chunks.iter().zip(part.before..) {
            chunks.push((*key, *document, ordinal, chunk));
            *key += 1;
        }
    }
    let rows = chunks.iter().map(|(key, document, ordinal, chunk)| {
        let (heading, text) = (&chunk.heading, &chunk.text);
        let (position, words) = (&chunk.position, &chunk.words);
        bulk_row![key, document, ordinal, position, words, heading, text]
    });
    let rows: Vec<_> = rows.collect();
    tx.batch(sql::INSERT_CHUNK, &[], &rows, |_| Ok(())).await?;
    let keys: Vec<i64> = chunks.iter().map(|(key, ..)| *key).collect();
    let texts = chunks
        .iter()
        .map(|(.., chunk)| format!("{}\n{}", chunk.heading, chunk.text));
    index_words(tx, &keys, texts).await?;
    let embedded = chunks
        .iter()
        .filter_map(|(key, .., chunk)| Some((*key, chunk.vector.as_deref()?)));
    let embedded: Vec<_> = embedded.collect();
    vectors::store(tx, &embedded).await?;
    let last = documents.iter().zip(parts).filter(|(_, part)| part.is_last);
    let last: Vec<i64> = last.map(|(document, _)| *document).collect();
    tx.execute(sql::COMPLETE_DOCUMENTS, values![last]).await?;
    Ok(documents)
}

/// Creates a document for each part that is the first of its document. Fails if a name is taken.
async fn insert_documents(tx: &mut Tx<'_>, parts: &[DocumentPart]) -> Result<()> {
    let new = parts.iter().filter(|part| part.before == 0);
    let new: Vec<_> = new.map(|part| &*part.document).collect();
    let names: BTreeSet<_> = new.iter().map(|new| name_of(new)).collect();
    let rows = new.iter().map(|new| {
        let (collection, name, title) = (&new.collection.0, &new.source.name, &new.title);
        let (trust, hash) = (trust_word(new.source.trust), &new.hash[..]);
        bulk_row![collection, name, trust, title, hash, new.size, new.added]
    });
    let rows: Vec<_> = rows.collect();
    let inserted = tx
        .batch(sql::INSERT_DOCUMENT, &[], &rows, |_| Ok(()))
        .await?;
    if inserted.len() < new.len() || names.len() < new.len() {
        return Err(BackendError::other(
            "a document with this name already exists",
        ));
    }
    Ok(())
}

/// Returns the unique key of a document: its collection and its name.
fn name_of(document: &NewDocument) -> (i64, Text) {
    (document.collection.0, document.source.name.clone())
}

async fn document_keys(tx: &mut Tx<'_>, parts: &[DocumentPart]) -> Result<Vec<i64>> {
    let names: Vec<_> = parts.iter().map(|part| name_of(&part.document)).collect();
    let rows: Vec<_> = names.iter().map(|(of, name)| bulk_row![of, name]).collect();
    let key = |row: Row<'_>| Ok(((row.get(1)?, row.get(2)?), row.get(0)?));
    let keys = tx.batch(sql::DOCUMENT_KEY, &[], &rows, key).await?;
    let keys: HashMap<(i64, Text), i64> = keys.into_iter().collect();
    let missing = || BackendError::other("a document was removed while it was written");
    let keys = names.iter().map(|name| keys.get(name).copied());
    keys.map(|key| key.ok_or_else(missing)).collect()
}

/// Reserves keys for the chunks of all parts. Returns the first key of each collection.
async fn reserve_keys(tx: &mut Tx<'_>, parts: &[DocumentPart]) -> Result<BTreeMap<i64, i64>> {
    let mut counts: BTreeMap<i64, (usize, u64)> = BTreeMap::new();
    for part in parts {
        let count = counts.entry(part.document.collection.0).or_default();
        count.0 += part.chunks.len();
        count.1 += part.chunks.iter().map(|chunk| chunk.words).sum::<u64>();
    }
    let mut first_keys = BTreeMap::new();
    for (collection, (chunks, words)) in counts {
        let values = values![collection, chunks, words];
        let first = tx.value::<i64>(sql::RESERVE_CHUNK_KEYS, values);
        let missing = || BackendError::other("a collection was removed while it was written");
        let first = first.await?.ok_or_else(missing)?;
        first_keys.insert(collection, (collection << COLLECTION_SHIFT) + first);
    }
    Ok(first_keys)
}

/// Adds chunks with these keys and texts to the word index of PostgreSQL. In SQLite triggers do this.
pub(crate) async fn index_words(
    tx: &mut Tx<'_>,
    keys: &[i64],
    texts: impl Iterator<Item = String> + Send,
) -> Result<()> {
    if tx.as_sqlite().is_none() {
        let folded: Vec<String> = texts.map(|text| fold(&text)).collect();
        tx.execute(INDEX_WORDS, values![keys, folded]).await?;
    }
    Ok(())
}

/// The result of one transaction that removes part of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemovalProgress {
    pub chunks: u64,
    /// Whether nothing is left.
    pub is_complete: bool,
}

/// Removes a bounded part of a user's document in any session. SQLite overwrites the deleted bytes. Does nothing if
/// another user owns the document.
pub(crate) async fn remove_document(tx: &mut Tx<'_>, user: &UserId, document: i64) -> Result<()> {
    let removed = remove_portion(tx, user, document, DeleteMode::Overwrite).await;
    removed.map(|_| ())
}

/// Removes a bounded part of a user's document, and finally the document itself. Returns `None` if it does not exist.
pub(super) async fn remove_portion(
    tx: &mut Tx<'_>,
    user: &UserId,
    document: i64,
    removal: DeleteMode,
) -> Result<Option<RemovalProgress>> {
    if removal == DeleteMode::Normal || tx.as_sqlite().is_none() {
        return remove_chunks(tx, user, document, DELETE_BATCH).await;
    }
    tx.execute(WIPE_INDEX, values![true]).await?;
    tx.overwrite_deleted(true)?;
    let removed = remove_chunks(tx, user, document, WIPE_BATCH).await;
    tx.execute(WIPE_INDEX, values![false]).await?;
    tx.overwrite_deleted(false)?;
    removed
}

/// Removes up to `limit` chunks of a user's document, and the document itself if it has fewer chunks.
pub(super) async fn remove_chunks(
    tx: &mut Tx<'_>,
    user: &UserId,
    document: i64,
    limit: usize,
) -> Result<Option<RemovalProgress>> {
    let values = values![document, user];
    let collection = tx.value::<i64>(sql::COLLECTION_OF_DOCUMENT, values);
    let Some(collection) = collection.await? else {
        return Ok(None);
    };
    lock(tx, BTreeSet::from([collection])).await?;
    let mut words: i64 = 0;
    let key = |row: Row<'_>| {
        words += row.get::<i64>(1)?;
        row.get(0)
    };
    let values = values![document, limit];
    let keys: Vec<i64> = tx.query(sql::CHUNKS_OF_DOCUMENT, values, key).await?;
    vectors::remove(tx, &keys).await?;
    tx.execute(sql::DELETE_CHUNKS, values![keys]).await?;
    let (fewer, words) = (-(keys.len() as i64), -words);
    tx.execute(sql::ADD_CHUNK_COUNTS, values![collection, fewer, words])
        .await?;
    let (chunks, is_complete) = (keys.len() as u64, keys.len() < limit);
    if is_complete {
        let values = values![user, document];
        tx.execute(sql::DELETE_KNOWLEDGE, values).await?;
        tx.execute(sql::DELETE_LEARNING, values).await?;
        tx.execute(sql::DELETE_DOCUMENT, values![document]).await?;
    }
    Ok(Some(RemovalProgress {
        chunks,
        is_complete,
    }))
}

pub(super) fn trust_word(trust: Trust) -> &'static str {
    match trust {
        Trust::Trusted => "trusted",
        Trust::Untrusted => "untrusted",
    }
}

/// Inserts the terms of chunks. A term that occurs at least 2, 3, 4, 6 or 9 times is also inserted with a suffix for
/// each of these counts that it reaches.
const INDEX_WORDS: Sql = sql!(
    sqlite: "",
    postgres: "INSERT INTO library_index (chunk, terms)
     SELECT chunk.id, array_to_tsvector(coalesce(
                (SELECT array_agg(word.lexeme || often.mark)
                   FROM unnest(to_tsvector('library_words', chunk.folded)) AS word
                   JOIN (VALUES (1, ''), (2, ' 2'), (3, ' 3'), (4, ' 4'), (6, ' 6'), (9, ' 9'))
                        AS often (times, mark) ON often.times <= cardinality(word.positions)),
                '{}'))
       FROM unnest($1::bigint[], $2::text[]) AS chunk (id, folded)"
);

/// Sets whether SQLite removes the words of deleted chunks from the index, or only marks them as deleted.
const WIPE_INDEX: Sql = sql!(
    sqlite: "INSERT INTO library_index (library_index, rank) VALUES ('secure-delete', ?1)",
    postgres: ""
);
