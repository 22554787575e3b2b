//! Documents and their chunks: written in pieces, removed in pieces, read by key.

use super::super::asking::{claim, execute, number, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::{bound, limit, text, unsigned};
use super::super::text::{Words, words};
use super::collections::{hold, session_of};
use super::fold::fold;
use super::statements::{
    ADD_CHUNK_COUNTS, CHUNKS, COMPLETE_DOCUMENT, DELETE_CHUNKS, DELETE_DOCUMENT, DELETE_KNOWLEDGE,
    DELETE_LEARNING, DOCUMENT_BY_ID, DOCUMENT_KEY, DOCUMENTS_IN_RANGE, DOCUMENTS_NAMED,
    INSERT_CHUNKS, INSERT_DOCUMENT, INSERT_WORDS, OWNED_DOCUMENT, SOME_CHUNKS, TAKE_CHUNK_KEYS,
};
use super::vectors;
use crate::library::vectors::COLLECTION_SHIFT;
use crate::library::{DocumentRow, Found, NewDocument, Piece, Stored, Wanted};
use deadpool_postgres::Transaction;
use lango_core::{EmbeddingMaker, Source, Timestamp, Trust, UserId};
use std::collections::HashMap;
use tokio_postgres::Row;

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
    for piece in pieces {
        write_piece(transaction, piece).await?;
    }
    Ok(Stored::Done(()))
}

/// Writes a piece whose vectors, if any, are of the right maker, into a collection that is held. Gives the key of its
/// document.
pub(super) async fn write_piece(
    transaction: &Transaction<'_>,
    piece: &Piece,
) -> Result<i64, Failure> {
    let document = &piece.document;
    let collection = document.collection.0;
    if piece.part.before == 0 {
        insert_document(transaction, document).await?;
    }
    let name = Words(&document.source.name);
    let id = number(transaction, DOCUMENT_KEY, &[&collection, &name]).await?;
    let id = id.ok_or_else(|| Failure::other("a document was removed while it was written"))?;

    let words: u64 = piece.chunks.iter().map(|chunk| chunk.words).sum();
    let count = limit(piece.chunks.len());
    let taken: Values<'_> = &[&collection, &count, &bound(words)];
    let first = number(transaction, TAKE_CHUNK_KEYS, taken).await?;
    let first = first.ok_or_else(|| Failure::other("a collection is gone"))?;
    let keys: Vec<i64> = (first..first + count)
        .map(|number| (collection << COLLECTION_SHIFT) + number)
        .collect();
    insert_chunks(transaction, piece, id, &keys).await?;

    let made = keys.iter().zip(&piece.chunks);
    let made: Vec<(i64, &[f32])> = made
        .filter_map(|(key, chunk)| Some((*key, chunk.vector.as_deref()?)))
        .collect();
    vectors::store(transaction, &made).await?;
    if piece.part.is_last {
        execute(transaction, COMPLETE_DOCUMENT, &[&id]).await?;
    }
    Ok(id)
}

async fn insert_document(
    transaction: &Transaction<'_>,
    document: &NewDocument,
) -> Result<(), Failure> {
    let values: Values<'_> = &[
        &document.collection.0,
        &Words(&document.source.name),
        &trust_word(document.source.trust),
        &Words(&document.title),
        &document.hash.as_slice(),
        &bound(document.size),
        &bound(document.added.0),
    ];
    match execute(transaction, INSERT_DOCUMENT, values).await? {
        0 => Err(Failure::other(format!(
            "`{}` is there already",
            document.source.name
        ))),
        _ => Ok(()),
    }
}

async fn insert_chunks(
    transaction: &Transaction<'_>,
    piece: &Piece,
    document: i64,
    keys: &[i64],
) -> Result<(), Failure> {
    let chunks = &piece.chunks;
    let before = bound(piece.part.before);
    let ordinals: Vec<i64> = (before..).take(chunks.len()).collect();
    let positions: Vec<i64> = chunks.iter().map(|chunk| bound(chunk.position)).collect();
    let lengths: Vec<i64> = chunks.iter().map(|chunk| bound(chunk.words)).collect();
    let headings: Vec<Words<'_>> = chunks.iter().map(|chunk| Words(&chunk.heading)).collect();
    let texts: Vec<Words<'_>> = chunks.iter().map(|chunk| Words(&chunk.text)).collect();
    let values: Values<'_> = &[
        &document, &keys, &ordinals, &positions, &lengths, &headings, &texts,
    ];
    execute(transaction, INSERT_CHUNKS, values).await?;
    let texts: Vec<(&str, &str)> = chunks
        .iter()
        .map(|chunk| (chunk.heading.as_str(), chunk.text.as_str()))
        .collect();
    index(transaction, keys, &texts).await
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

/// What of a document was removed.
pub(super) struct Removed {
    /// How many chunks.
    pub chunks: u64,
    /// Whether nothing is left of it.
    pub is_gone: bool,
}

/// Removes up to `most` chunks of a user's document, and the document itself with the last of them.
pub(super) async fn remove_some(
    transaction: &Transaction<'_>,
    user: &UserId,
    document: i64,
    most: usize,
) -> Result<Option<Removed>, Failure> {
    let owned: Values<'_> = &[&document, &Words(user.as_str())];
    let collection = number(transaction, OWNED_DOCUMENT, owned).await?;
    let Some(collection) = collection else {
        return Ok(None);
    };
    hold(transaction, std::iter::once(collection)).await?;
    let found = rows(transaction, SOME_CHUNKS, &[&document, &limit(most)]).await?;
    let (mut keys, mut length) = (Vec::with_capacity(found.len()), 0);
    for row in &found {
        keys.push(row.try_get::<_, i64>(0)?);
        length += row.try_get::<_, i64>(1)?;
    }
    vectors::forget(transaction, &keys).await?;
    execute(transaction, DELETE_CHUNKS, &[&keys]).await?;
    let fewer: Values<'_> = &[&collection, &-limit(keys.len()), &-length];
    execute(transaction, ADD_CHUNK_COUNTS, fewer).await?;
    let is_gone = keys.len() < most;
    if is_gone {
        // What was saved is forgotten with the document by which it is found.
        let owned: Values<'_> = &[&Words(user.as_str()), &document];
        execute(transaction, DELETE_KNOWLEDGE, owned).await?;
        execute(transaction, DELETE_LEARNING, owned).await?;
        execute(transaction, DELETE_DOCUMENT, &[&document]).await?;
    }
    Ok(Some(Removed {
        chunks: keys.len() as u64,
        is_gone,
    }))
}

/// Documents of a user.
pub(super) async fn list(
    transaction: &Transaction<'_>,
    user: &UserId,
    wanted: &Wanted,
) -> Result<Vec<DocumentRow>, Failure> {
    let user = Words(user.as_str());
    let found = match wanted {
        Wanted::Range {
            collection,
            from,
            before,
            most,
        } => {
            let (from, before) = (Words(from), before.as_deref().map(Words));
            let values: Values<'_> = &[&user, &collection.0, &from, &before, &limit(*most)];
            rows(transaction, DOCUMENTS_IN_RANGE, values).await?
        }
        Wanted::Named(name) => rows(transaction, DOCUMENTS_NAMED, &[&user, &Words(name)]).await?,
        Wanted::Id(id) => rows(transaction, DOCUMENT_BY_ID, &[&user, id]).await?,
    };
    let document = |row| {
        Ok(DocumentRow {
            id: Row::try_get(row, 0)?,
            collection: text(row, 1)?,
            session: session_of(text(row, 2)?),
            source: source(row, 3)?,
            title: text(row, 5)?,
            hash: row.try_get(6)?,
            size: unsigned(row, 7)?,
            added: Timestamp(unsigned(row, 8)?),
            is_complete: claim(row, 9)?,
            chunks: unsigned(row, 10)?,
        })
    };
    found.iter().map(document).collect()
}

/// Chunks by their keys.
pub(super) async fn chunks(
    transaction: &Transaction<'_>,
    ids: &[i64],
) -> Result<Vec<Found>, Failure> {
    let mut found = HashMap::new();
    for row in &rows(transaction, CHUNKS, &[&ids]).await? {
        let chunk = Found {
            id: row.try_get(0)?,
            document: row.try_get(1)?,
            collection: text(row, 2)?,
            source: source(row, 3)?,
            title: text(row, 5)?,
            heading: text(row, 6)?,
            text: text(row, 7)?,
            ordinal: unsigned(row, 8)?,
            position: unsigned(row, 9)?,
        };
        found.insert(chunk.id, chunk);
    }
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

/// The source in two columns: its name, and whether it is trusted.
pub(super) fn source(row: &Row, column: usize) -> Result<Source, Failure> {
    let trust = match words(row, column + 1)?.as_ref() {
        "trusted" => Trust::Trusted,
        // Whatever else it says, it is not believed.
        _ => Trust::Untrusted,
    };
    Ok(Source {
        name: text(row, column)?,
        trust,
    })
}

/// Trust as it is stored.
pub(super) fn trust_word(trust: Trust) -> &'static str {
    match trust {
        Trust::Trusted => "trusted",
        Trust::Untrusted => "untrusted",
    }
}
