//! Search by words, over the postings of the full-text index.
//!
//! The index keeps the words of all users together. FTS5's own ranking cannot leave those of others out of account, and
//! looks up the length of every chunk that has any of the words.

use super::super::failure::Failure;
use super::statements::{
    ALL_CHUNKS, ASK, ASKED, CHUNK_LENGTH, COLLECTION_SIZE, FORGET_QUERY, HAS_QUERY, MAKE_QUERY,
    WORD_COUNT, WORD_PLACES,
};
use crate::library::bm25::{ChunkLength, Posting, Scorer, Size, Term, TermSelection};
use crate::library::vectors::COLLECTION_SHIFT;
use crate::library::{CollectionId, QueryWord, Ranked};
use rusqlite::{Connection, OptionalExtension as _, params};

/// The chunks that hold any of the words.
pub(super) fn search(
    connection: &Connection,
    collections: &[CollectionId],
    words: &[QueryWord],
    most: usize,
) -> Result<Ranked, Failure> {
    let mut terms = Vec::new();
    for (word, text) in terms_of(connection, words.iter().map(|word| word.text.as_str()))? {
        let (_, places) = count(connection, &text)?;
        terms.push(Term { text, places, word });
    }
    let selection = TermSelection::new(terms, words);
    let mut postings = Vec::with_capacity(selection.terms.len());
    for term in &selection.terms {
        postings.push(posting(connection, collections, &term.text)?);
    }
    let scorer = Scorer::new(size(connection, collections)?, selection, postings);
    let selected = lengths(connection, &scorer.select(most))?;
    Ok(scorer.rank(&selected, most))
}

/// The documents and lengths of the chunks that exist.
fn lengths(connection: &Connection, chunks: &[i64]) -> Result<Vec<ChunkLength>, Failure> {
    let mut statement = connection.prepare_cached(CHUNK_LENGTH)?;
    let mut lengths = Vec::with_capacity(chunks.len());
    for id in chunks {
        let length = statement.query_row([id], |row| {
            Ok(ChunkLength {
                id: *id,
                document: row.get(0)?,
                words: row.get(1)?,
            })
        });
        lengths.extend(length.optional()?);
    }
    Ok(lengths)
}

/// How many chunks there are, and how many hold each word.
pub(super) fn frequencies(
    connection: &Connection,
    words: &[String],
) -> Result<(u64, Vec<u64>), Failure> {
    let all: i64 = connection
        .prepare_cached(ALL_CHUNKS)?
        .query_row([], |row| row.get(0))?;
    let mut frequencies = vec![0; words.len()];
    for (word, term) in terms_of(connection, words.iter().map(String::as_str))? {
        let (chunks, _) = count(connection, &term)?;
        frequencies[word] = chunks.max(frequencies[word]);
    }
    Ok((all.cast_unsigned(), frequencies))
}

/// What the index has for each word: the word without its ending, in small letters, without accents. Most words give
/// one term; marks give none. The index's own tokenizer is asked, so that both always agree.
fn terms_of<'a>(
    connection: &Connection,
    words: impl Iterator<Item = &'a str>,
) -> Result<Vec<(usize, String)>, Failure> {
    if !connection.prepare_cached(HAS_QUERY)?.exists([])? {
        connection.execute_batch(MAKE_QUERY)?;
    }
    // What another search left behind when it failed.
    connection.prepare_cached(FORGET_QUERY)?.execute([])?;
    let mut ask = connection.prepare_cached(ASK)?;
    for (at, word) in words.enumerate() {
        ask.execute(params![at as i64, word])?;
    }
    let mut asked = connection.prepare_cached(ASKED)?;
    let rows = asked.query_map([], |row| Ok((row.get::<_, i64>(0)? as usize, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// In how many chunks a term is, and how often, in all collections.
fn count(connection: &Connection, term: &str) -> Result<(u64, u64), Failure> {
    let count = connection
        .prepare_cached(WORD_COUNT)?
        .query_row([term], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
        .optional()?;
    let (chunks, places) = count.unwrap_or_default();
    Ok((chunks.cast_unsigned(), places.cast_unsigned()))
}

fn posting(
    connection: &Connection,
    collections: &[CollectionId],
    term: &str,
) -> Result<Posting, Failure> {
    let mut statement = connection.prepare_cached(WORD_PLACES)?;
    let mut rows = statement.query([term])?;
    let mut posting = Posting::new();
    // Chunks come collection by collection.
    let mut last = (CollectionId(-1), false);
    while let Some(row) = rows.next()? {
        let chunk: i64 = row.get(0)?;
        match posting.last_mut() {
            Some((last, times)) if *last == chunk => *times += 1,
            _ => {
                let collection = CollectionId(chunk >> COLLECTION_SHIFT);
                if last.0 != collection {
                    last = (collection, collections.contains(&collection));
                }
                if last.1 {
                    posting.push((chunk, 1));
                }
            }
        }
    }
    Ok(posting)
}

fn size(connection: &Connection, collections: &[CollectionId]) -> Result<Size, Failure> {
    let mut statement = connection.prepare_cached(COLLECTION_SIZE)?;
    let (mut chunks, mut words) = (0, 0);
    for collection in collections {
        let size = statement
            .query_row([collection.0], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })
            .optional()?;
        let size = size.unwrap_or_default();
        (chunks, words) = (chunks + size.0, words + size.1);
    }
    Ok(Size::new(chunks, words))
}
