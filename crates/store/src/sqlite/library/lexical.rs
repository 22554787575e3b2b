//! Search by words: BM25 over the postings of the full-text index.
//!
//! The index keeps the words of all users together. Here only the chunks of the collections that are searched count: for
//! what is found, and for how rare a word is. FTS5's own ranking can do neither,
//! and looks up the length of every chunk that has any of the words; here that is done for the best of them only.

use super::super::failure::Failure;
use super::documents::COLLECTION_SHIFT;
use super::statements::{
    ALL_CHUNKS, ASK, ASKED, CHUNK_WORDS, COLLECTION_SIZE, FORGET_QUERY, HAS_QUERY, MAKE_QUERY,
    WORD_COUNT, WORD_PLACES,
};
use crate::library::{CollectionId, Ranked};
use rusqlite::{Connection, OptionalExtension as _, params};

/// How much a word that comes again counts, and how much the length of a chunk.
const K1: f64 = 1.5;
const B: f64 = 0.75;

/// How many places of words one search looks at. The rare words come first; those that would go beyond are left out,
/// unless there is no other.
const MOST_PLACES: u64 = 60_000;

/// How many chunks are ranked by their length too, at least.
const RANKED_FINELY: usize = 300;

/// The chunks that hold any of the words.
pub(super) fn search(
    connection: &Connection,
    collections: &[CollectionId],
    words: &[String],
    most: usize,
) -> Result<Ranked, Failure> {
    let mut terms = Vec::new();
    for (word, term) in terms_of(connection, words)? {
        let (_, places) = count(connection, &term)?;
        terms.push((places, word, term));
    }
    terms.sort();
    terms.dedup_by(|a, b| a.2 == b.2);

    let mut is_known = vec![false; words.len()];
    let mut postings = Vec::new();
    let (mut looked_at, mut left_out) = (0, 0);
    for (places, word, term) in terms {
        if places == 0 {
            continue;
        }
        if looked_at > 0 && looked_at + places > MOST_PLACES {
            left_out += 1;
            is_known[word] = true;
            continue;
        }
        looked_at += places;
        let posting = posting(connection, collections, &term)?;
        if !posting.is_empty() {
            is_known[word] = true;
            postings.push(posting);
        }
    }
    let size = size(connection, collections)?;
    Ok(Ranked {
        hits: rank(connection, size, &postings, most)?,
        unknown: is_known.iter().filter(|known| !**known).count(),
        left_out,
    })
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
    for (word, term) in terms_of(connection, words)? {
        let (chunks, _) = count(connection, &term)?;
        frequencies[word] = chunks.max(frequencies[word]);
    }
    Ok((all.cast_unsigned(), frequencies))
}

/// What the index has for each word: the word without its ending, in small letters, without accents. Most words give
/// one term; marks give none. The index's own tokenizer is asked, so that both always agree.
fn terms_of(connection: &Connection, words: &[String]) -> Result<Vec<(usize, String)>, Failure> {
    if !connection.prepare_cached(HAS_QUERY)?.exists([])? {
        connection.execute_batch(MAKE_QUERY)?;
    }
    // What another search left behind when it failed.
    connection.prepare_cached(FORGET_QUERY)?.execute([])?;
    let mut ask = connection.prepare_cached(ASK)?;
    for (at, word) in words.iter().enumerate() {
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

/// The chunks of the collections that hold a term, in the order of their keys, each with how often it does.
type Posting = Vec<(i64, u32)>;

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

/// How much is searched.
#[derive(Clone, Copy)]
struct Size {
    chunks: f64,
    mean_words: f64,
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
    Ok(Size {
        chunks: chunks as f64,
        mean_words: (words as f64 / chunks.max(1) as f64).max(1.0),
    })
}

/// How much a term says: the rarer the more.
fn rarity(size: Size, posting: &Posting) -> f64 {
    let with = posting.len() as f64;
    (1.0 + (size.chunks - with + 0.5).max(0.0) / (with + 0.5)).ln()
}

/// How much it counts that a chunk of this length has a term so often.
fn saturation(times: u32, length: f64) -> f64 {
    let times = f64::from(times);
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length))
}

fn rank(
    connection: &Connection,
    size: Size,
    postings: &[Posting],
    most: usize,
) -> Result<Vec<(i64, f64)>, Failure> {
    let mut statement = connection.prepare_cached(CHUNK_WORDS)?;
    let mut ranked = Vec::new();
    for (chunk, _) in best(roughly(size, postings), RANKED_FINELY.max(most * 2)) {
        let words: Option<i64> = statement.query_row([chunk], |row| row.get(0)).optional()?;
        let Some(words) = words else { continue };
        let length = words as f64 / size.mean_words;
        let score = postings
            .iter()
            .filter_map(|posting| {
                let at = posting
                    .binary_search_by_key(&chunk, |(chunk, _)| *chunk)
                    .ok()?;
                Some(rarity(size, posting) * saturation(posting[at].1, length))
            })
            .sum();
        ranked.push((chunk, score));
    }
    Ok(best(ranked, most))
}

/// Every chunk with its score as if all were of the same length.
fn roughly(size: Size, postings: &[Posting]) -> Vec<(i64, f64)> {
    let mut scores: Vec<(i64, f64)> = Vec::new();
    for posting in postings {
        let rarity = rarity(size, posting);
        scores.extend(
            posting
                .iter()
                .map(|(chunk, times)| (*chunk, rarity * saturation(*times, 1.0))),
        );
    }
    // The postings are sorted, so this merges.
    scores.sort_by_key(|(chunk, _)| *chunk);
    scores.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 += next.1;
        }
        is_same
    });
    scores
}

/// The best of them, the best first; of two that are equal, the older.
fn best(mut scores: Vec<(i64, f64)>, most: usize) -> Vec<(i64, f64)> {
    let order = |(a, x): &(i64, f64), (b, y): &(i64, f64)| y.total_cmp(x).then(a.cmp(b));
    if scores.len() > most && most > 0 {
        scores.select_nth_unstable_by(most - 1, order);
    }
    scores.truncate(most);
    scores.sort_by(order);
    scores
}
