//! Search by words, over the index of terms.
//!
//! PostgreSQL's own rankings know neither how rare a word is nor how long a chunk is on the average, so the ranking is ours.
//! Which chunks have a term, and how often up to nine times, is read from the index.

use super::super::asking::{row, rows};
use super::super::failure::Failure;
use super::super::rows::{optional, unsigned};
use super::fold::fold;
use super::statements::{ALL_CHUNKS, COLLECTION_SIZES, LENGTHS, POSTINGS, TERM_COUNTS, TERMS};
use crate::library::bm25::{ChunkLength, Posting, Scorer, SelectedTerm, Size, Term, TermSelection};
use crate::library::{CollectionId, QueryWord, Ranked};
use deadpool_postgres::Transaction;
use std::collections::{BTreeMap, HashMap};
use tokio_postgres::Row;

/// A term that is in more chunks than this is not counted where the server has an estimate.
const MOST_COUNTED: u64 = 5_000;

/// The numbers of times that the index has a mark for; the first has none.
const TIMES: [u32; 6] = [1, 2, 3, 4, 6, 9];

/// The chunks that hold any of the words.
pub(super) async fn search(
    transaction: &Transaction<'_>,
    collections: &[CollectionId],
    words: &[QueryWord],
    most: usize,
) -> Result<Ranked, Failure> {
    let terms = counted(transaction, words.iter().map(|word| word.text.as_str())).await?;
    let selection = TermSelection::new(terms, words);
    let postings = places(transaction, collections, &selection.terms).await?;
    let size = size(transaction, collections).await?;
    let selecting = tokio::task::spawn_blocking(move || {
        let scorer = Scorer::new(size, selection, postings);
        let selected = scorer.select(most);
        (scorer, selected)
    });
    let (scorer, selected) = selecting
        .await
        .map_err(|error| Failure::other(error.to_string()))?;
    let selected = lengths(transaction, &selected).await?;
    Ok(scorer.rank(&selected, most))
}

/// The documents and lengths of the chunks that exist.
async fn lengths(
    transaction: &Transaction<'_>,
    chunks: &[i64],
) -> Result<Vec<ChunkLength>, Failure> {
    let found = rows(transaction, LENGTHS, &[&chunks]).await?;
    let length = |row: &Row| {
        Ok(ChunkLength {
            id: row.try_get(0)?,
            document: row.try_get(1)?,
            words: row.try_get(2)?,
        })
    };
    found.iter().map(length).collect()
}

/// How many chunks there are, and how many hold each word.
pub(super) async fn frequencies(
    transaction: &Transaction<'_>,
    words: &[String],
) -> Result<(u64, Vec<u64>), Failure> {
    let mut frequencies = vec![0; words.len()];
    for term in counted(transaction, words.iter().map(String::as_str)).await? {
        frequencies[term.word] = term.places.max(frequencies[term.word]);
    }
    let all = row(transaction, ALL_CHUNKS, &[]).await?;
    let all = all.ok_or_else(|| Failure::other("nothing was counted"))?;
    Ok((unsigned(&all, 0)?, frequencies))
}

/// What the index has for each word, and in how many chunks of all collections that is: counted, or estimated where that
/// is more than anybody wants to count. Most words give one term; marks give none.
async fn counted(
    transaction: &Transaction<'_>,
    words: impl Iterator<Item = &str>,
) -> Result<Vec<Term>, Failure> {
    let folded: Vec<String> = words.map(fold).collect();
    let mut terms = Vec::new();
    for row in &rows(transaction, TERMS, &[&folded]).await? {
        let common = optional(row, 2)?.filter(|chunks| *chunks >= MOST_COUNTED);
        terms.push(Term {
            places: common.unwrap_or_default(),
            text: row.try_get(1)?,
            word: usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or_default(),
        });
    }
    let mut uncounted: Vec<&mut Term> = terms.iter_mut().filter(|term| term.places == 0).collect();
    let queries: Vec<String> = uncounted.iter().map(|term| query(&term.text, 1)).collect();
    let counts = rows(transaction, TERM_COUNTS, &[&queries]).await?;
    for (term, row) in uncounted.iter_mut().zip(&counts) {
        term.places = unsigned(row, 0)?;
    }
    Ok(terms)
}

/// A question to the index: which chunks have a term so often.
fn query(term: &str, times: u32) -> String {
    // Terms are letters and digits; the quotes keep the mark and the word together.
    match times {
        1 => format!("'{term}'"),
        _ => format!("'{term} {times}'"),
    }
}

/// The places of each term in the collections.
async fn places(
    transaction: &Transaction<'_>,
    collections: &[CollectionId],
    terms: &[SelectedTerm],
) -> Result<Vec<Posting>, Failure> {
    let ids: Vec<i64> = collections.iter().map(|id| id.0).collect();
    let of_term = |term: &SelectedTerm| TIMES.map(|times| query(&term.text, times));
    let queries: Vec<String> = terms.iter().flat_map(of_term).collect();
    let found = rows(transaction, POSTINGS, &[&queries, &ids]).await?;
    let mut postings = Vec::with_capacity(terms.len());
    for rows in found.chunks(TIMES.len()) {
        let mut times_of: BTreeMap<i64, u32> = BTreeMap::new();
        for (row, times) in rows.iter().zip(TIMES) {
            for chunk in row.try_get::<_, Vec<i64>>(0)? {
                times_of.insert(chunk, times);
            }
        }
        postings.push(times_of.into_iter().collect());
    }
    Ok(postings)
}

async fn size(
    transaction: &Transaction<'_>,
    collections: &[CollectionId],
) -> Result<Size, Failure> {
    let ids: Vec<i64> = collections.iter().map(|id| id.0).collect();
    let sizes: HashMap<i64, (i64, i64)> = rows(transaction, COLLECTION_SIZES, &[&ids])
        .await?
        .iter()
        .map(|row| Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?))))
        .collect::<Result<_, Failure>>()?;
    let (mut chunks, mut words) = (0, 0);
    for size in sizes.values() {
        (chunks, words) = (chunks + size.0, words + size.1);
    }
    Ok(Size::new(chunks, words))
}
