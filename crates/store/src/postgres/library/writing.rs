//! Writing documents in pieces, as many at once as come together: a few statements, however many there are.

use super::super::asking::{execute, number, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::{bound, limit};
use super::super::text::{Words, words};
use super::collections::hold;
use super::documents::trust_word;
use super::fold::fold;
use super::statements::{
    COMPLETE_DOCUMENTS, DOCUMENT_KEYS, INSERT_CHUNKS, INSERT_DOCUMENTS, INSERT_WORDS,
    TAKE_CHUNK_KEYS,
};
use super::vectors;
use crate::library::vectors::COLLECTION_SHIFT;
use crate::library::{NewChunk, NewDocument, Piece, Stored};
use deadpool_postgres::Transaction;
use lango_core::EmbeddingMaker;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Writes pieces of documents.
pub(super) async fn write(
    transaction: &Transaction<'_>,
    pieces: &[Piece],
    maker: Option<&EmbeddingMaker>,
) -> Result<Stored<()>, Failure> {
    let has_vectors = |piece: &Piece| piece.chunks.iter().any(|chunk| chunk.vector.is_some());
    if pieces.iter().any(has_vectors) {
        let maker = maker.ok_or_else(|| Failure::other("vectors came without their maker"))?;
        if let Some(other) = vectors::claim(transaction, maker).await? {
            return Ok(Stored::OtherMaker(other));
        }
    }
    let collections = pieces.iter().map(|piece| piece.document.collection.0);
    hold(transaction, collections).await?;
    write_held(transaction, pieces).await?;
    Ok(Stored::Done(()))
}

/// Writes pieces whose vectors, if any, are of the right maker, into collections that are held. Gives the keys of their
/// documents.
pub(super) async fn write_held(
    transaction: &Transaction<'_>,
    pieces: &[Piece],
) -> Result<Vec<i64>, Failure> {
    insert_documents(transaction, pieces).await?;
    let documents = document_keys(transaction, pieces).await?;
    let keys = take_keys(transaction, pieces).await?;
    insert_chunks(transaction, pieces, &documents, &keys).await?;
    let chunks = pieces.iter().flat_map(|piece| &piece.chunks);
    let made: Vec<(i64, &[f32])> = keys
        .iter()
        .zip(chunks)
        .filter_map(|(key, chunk)| Some((*key, chunk.vector.as_deref()?)))
        .collect();
    vectors::store(transaction, &made).await?;
    let complete: Vec<i64> = documents
        .iter()
        .zip(pieces)
        .filter(|(_, piece)| piece.part.is_last)
        .map(|(document, _)| *document)
        .collect();
    execute(transaction, COMPLETE_DOCUMENTS, &[&complete]).await?;
    Ok(documents)
}

/// Indexes the words of chunks: their keys, and their headings and texts.
pub(super) async fn index(
    transaction: &Transaction<'_>,
    keys: &[i64],
    texts: &[(&str, &str)],
) -> Result<(), Failure> {
    let folded = |(heading, text): &(&str, &str)| fold(&format!("{heading}\n{text}"));
    let folded: Vec<String> = texts.iter().map(folded).collect();
    execute(transaction, INSERT_WORDS, &[&keys, &folded]).await?;
    Ok(())
}

/// Makes the documents whose first pieces these are. Their names must be free.
async fn insert_documents(transaction: &Transaction<'_>, pieces: &[Piece]) -> Result<(), Failure> {
    let first = pieces.iter().filter(|piece| piece.part.before == 0);
    let new: Vec<&NewDocument> = first.map(|piece| &*piece.document).collect();
    if new.is_empty() {
        return Ok(());
    }
    let taken = || Failure::other("a document of that name is there already");
    let names: BTreeSet<(i64, &str)> = new
        .iter()
        .map(|document| (document.collection.0, &*document.source.name))
        .collect();
    if names.len() < new.len() {
        return Err(taken());
    }
    let collections: Vec<i64> = new.iter().map(|document| document.collection.0).collect();
    let sources: Vec<Words<'_>> = new.iter().map(|new| Words(&new.source.name)).collect();
    let trusts: Vec<&str> = new.iter().map(|new| trust_word(new.source.trust)).collect();
    let titles: Vec<Words<'_>> = new.iter().map(|new| Words(&new.title)).collect();
    let hashes: Vec<&[u8]> = new.iter().map(|new| new.hash.as_slice()).collect();
    let sizes: Vec<i64> = new.iter().map(|new| bound(new.size)).collect();
    let added: Vec<i64> = new.iter().map(|new| bound(new.added.0)).collect();
    let values: Values<'_> = &[
        &collections,
        &sources,
        &trusts,
        &titles,
        &hashes,
        &sizes,
        &added,
    ];
    match execute(transaction, INSERT_DOCUMENTS, values).await? {
        made if made == new.len() as u64 => Ok(()),
        _ => Err(taken()),
    }
}

/// The key of each piece's document.
async fn document_keys(
    transaction: &Transaction<'_>,
    pieces: &[Piece],
) -> Result<Vec<i64>, Failure> {
    let name = |piece: &Piece| {
        (
            piece.document.collection.0,
            piece.document.source.name.to_string(),
        )
    };
    let names: BTreeSet<(i64, String)> = pieces.iter().map(name).collect();
    let collections: Vec<i64> = names.iter().map(|(collection, _)| *collection).collect();
    let sources: Vec<Words<'_>> = names.iter().map(|(_, source)| Words(source)).collect();
    let mut keys = HashMap::with_capacity(names.len());
    for row in &rows(transaction, DOCUMENT_KEYS, &[&collections, &sources]).await? {
        let name = (row.try_get(1)?, words(row, 2)?.into_owned());
        keys.insert(name, row.try_get(0)?);
    }
    let missing = || Failure::other("a document was removed while it was written");
    let keys = pieces
        .iter()
        .map(|piece| keys.get(&name(piece)).copied().ok_or_else(missing));
    keys.collect()
}

/// The keys of all chunks, in their order.
async fn take_keys(transaction: &Transaction<'_>, pieces: &[Piece]) -> Result<Vec<i64>, Failure> {
    let mut counts: BTreeMap<i64, (i64, u64)> = BTreeMap::new();
    for piece in pieces {
        let counted = counts.entry(piece.document.collection.0).or_default();
        counted.0 += limit(piece.chunks.len());
        counted.1 += piece.chunks.iter().map(|chunk| chunk.words).sum::<u64>();
    }
    let mut next = BTreeMap::new();
    for (collection, (chunks, words)) in counts {
        let taken: Values<'_> = &[&collection, &chunks, &bound(words)];
        let first = number(transaction, TAKE_CHUNK_KEYS, taken).await?;
        let first = first.ok_or_else(|| Failure::other("a collection is gone"))?;
        next.insert(collection, (collection << COLLECTION_SHIFT) + first);
    }
    let mut keys = Vec::new();
    for piece in pieces {
        let next = next.entry(piece.document.collection.0).or_default();
        let end = *next + limit(piece.chunks.len());
        keys.extend(*next..end);
        *next = end;
    }
    Ok(keys)
}

async fn insert_chunks(
    transaction: &Transaction<'_>,
    pieces: &[Piece],
    documents: &[i64],
    keys: &[i64],
) -> Result<(), Failure> {
    let (mut owners, mut ordinals) = (Vec::new(), Vec::new());
    for (piece, document) in pieces.iter().zip(documents) {
        let before = bound(piece.part.before);
        owners.extend(std::iter::repeat_n(*document, piece.chunks.len()));
        ordinals.extend((before..).take(piece.chunks.len()));
    }
    let chunks: Vec<&NewChunk> = pieces.iter().flat_map(|piece| &piece.chunks).collect();
    let positions: Vec<i64> = chunks.iter().map(|chunk| bound(chunk.position)).collect();
    let lengths: Vec<i64> = chunks.iter().map(|chunk| bound(chunk.words)).collect();
    let headings: Vec<Words<'_>> = chunks.iter().map(|chunk| Words(&chunk.heading)).collect();
    let texts: Vec<Words<'_>> = chunks.iter().map(|chunk| Words(&chunk.text)).collect();
    let values: Values<'_> = &[
        &keys, &owners, &ordinals, &positions, &lengths, &headings, &texts,
    ];
    execute(transaction, INSERT_CHUNKS, values).await?;
    let texts: Vec<(&str, &str)> = chunks
        .iter()
        .map(|chunk| (chunk.heading.as_str(), chunk.text.as_str()))
        .collect();
    index(transaction, keys, &texts).await
}
