//! Searches by words. The databases' own rankings are not used: FTS5's cannot ignore the chunks of other users, and PostgreSQL's
//! considers neither how rare a term is nor the average length of chunks.
//!
//! SQLite lists every occurrence of a term. PostgreSQL's index returns the chunks that contain a term, and how often
//! each contains it, counted up to nine.

use super::bm25::{ChunkLength, Posting, Scorer, SelectedTerm, Term, TermSelection};
use super::fold::fold;
use super::statements as sql;
use super::vectors::COLLECTION_SHIFT;
use super::{CollectionId, QueryWord, Ranking};
use crate::StoreFuture;
use crate::backend::{Result, Row, Sql, Tx, records, sql, values, work};
use crate::store::Store;
use std::collections::BTreeMap;

records! {
    ChunkLength { id, document, words }
    Term { word, text, chunks, places }
}

/// If PostgreSQL estimates that at least this many chunks contain a term, the estimate is used. Otherwise the chunks are counted.
const MIN_ESTIMATED: u64 = 5_000;

/// The numbers of occurrences that PostgreSQL's index distinguishes. The first has no suffix.
const TIMES: [u32; 6] = [1, 2, 3, 4, 6, 9];

impl Store {
    /// Ranks the chunks that contain any of the words with BM25.
    pub fn search_words(
        &self,
        collections: Vec<CollectionId>,
        words: Vec<QueryWord>,
        limit: usize,
    ) -> StoreFuture<'_, Ranking> {
        let collections: Vec<i64> = collections.iter().map(|id| id.0).collect();
        let args = (collections, words, limit);
        work!(self.backend.snapshot(args), |tx, within, words, limit| {
            let limit = *limit;
            let terms = terms(tx, words.iter().map(|word| word.text.as_str()).collect()).await?;
            let selection = TermSelection::new(terms, words);
            let postings = match tx.as_sqlite() {
                Some(_) => sqlite_postings(tx, within, &selection.terms).await?,
                None => postgres_postings(tx, within, &selection.terms).await?,
            };
            let size = |row: Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let size = tx.query_opt(sql::SIZE, values![within], size).await?;
            let size = size.unwrap_or_default();
            let selected = tx.compute(move || {
                let scorer = Scorer::new(size, selection, postings);
                let selected = scorer.select(limit);
                (scorer, selected)
            });
            let (scorer, selected) = selected.await?;
            let selected = tx
                .query(sql::CHUNK_LENGTHS, values![selected], |row| row.read())
                .await?;
            Ok(scorer.rank(&selected, limit))
        })
    }

    /// Counts the chunks of all users, and for each word those that contain it; see [`search_words`](Self::search_words).
    pub fn word_frequencies(&self, words: Vec<String>) -> StoreFuture<'_, (u64, Vec<u64>)> {
        work!(self.backend.snapshot(words), |tx, words| {
            let mut frequencies = vec![0; words.len()];
            for term in terms(tx, words.iter().map(String::as_str).collect()).await? {
                frequencies[term.word] = term.chunks.max(frequencies[term.word]);
            }
            let all = tx.value(ALL_CHUNKS, &[]).await?;
            Ok((all.unwrap_or_default(), frequencies))
        })
    }
}

/// Looks up the index term of each word: the lower-case stem without accents. Most words have one term, punctuation has none.
async fn terms(tx: &mut Tx<'_>, words: Vec<&str>) -> Result<Vec<Term>> {
    match tx.as_sqlite() {
        Some(_) => sqlite_terms(tx, words).await,
        None => postgres_terms(tx, words).await,
    }
}

/// Converts words to terms by inserting them into a temporary table with the tokenizer of the index, so that queries
/// and the index always agree.
async fn sqlite_terms(tx: &mut Tx<'_>, words: Vec<&str>) -> Result<Vec<Term>> {
    if let Some(connection) = tx.as_sqlite()
        && !connection.prepare_cached(HAS_QUERY)?.exists([])?
    {
        connection.execute_batch(CREATE_QUERY)?;
    }
    // A failed search may have left its words in the table.
    tx.execute(CLEAR_QUERY, &[]).await?;
    tx.execute(SET_QUERY, values![words]).await?;
    tx.query(SQLITE_TERMS, &[], |row| row.read()).await
}

async fn postgres_terms(tx: &mut Tx<'_>, words: Vec<&str>) -> Result<Vec<Term>> {
    let folded: Vec<String> = words.into_iter().map(fold).collect();
    let term = |row: Row<'_>| {
        let estimate = row.get::<Option<u64>>(2)?;
        let chunks = estimate.filter(|chunks| *chunks >= MIN_ESTIMATED);
        Ok(Term {
            word: row.get::<usize>(0)?.saturating_sub(1),
            text: row.get(1)?,
            chunks: chunks.unwrap_or_default(),
            places: chunks.unwrap_or_default(),
        })
    };
    let mut terms = tx.query(POSTGRES_TERMS, values![folded], term).await?;
    let mut uncounted: Vec<&mut Term> = terms.iter_mut().filter(|term| term.chunks == 0).collect();
    let queries: Vec<String> = uncounted.iter().map(|term| query(&term.text, 1)).collect();
    let counts = tx.column(TERM_COUNTS, values![queries]).await?;
    for (term, count) in uncounted.iter_mut().zip(counts) {
        (term.chunks, term.places) = (count, count);
    }
    Ok(terms)
}

/// Returns a PostgreSQL query for the chunks that contain a term at least `times` times.
fn query(term: &str, times: u32) -> String {
    // Terms have only letters and digits. The quotes join the term and its suffix.
    match times {
        1 => format!("'{term}'"),
        _ => format!("'{term} {times}'"),
    }
}

async fn sqlite_postings(
    tx: &mut Tx<'_>,
    collections: &[i64],
    terms: &[SelectedTerm],
) -> Result<Vec<Posting>> {
    let mut postings = Vec::with_capacity(terms.len());
    for term in terms {
        let mut posting = Posting::new();
        // The chunks of a collection are consecutive.
        let (mut current, mut is_searched) = (-1, false);
        let place = |row: Row<'_>| {
            let chunk: i64 = row.get(0)?;
            match posting.last_mut() {
                Some((last, times)) if *last == chunk => *times += 1,
                _ => {
                    let collection = chunk >> COLLECTION_SHIFT;
                    if current != collection {
                        (current, is_searched) = (collection, collections.contains(&collection));
                    }
                    if is_searched {
                        posting.push((chunk, 1));
                    }
                }
            }
            Ok(())
        };
        tx.query(TERM_PLACES, values![term.text], place).await?;
        postings.push(posting);
    }
    Ok(postings)
}

async fn postgres_postings(
    tx: &mut Tx<'_>,
    collections: &[i64],
    terms: &[SelectedTerm],
) -> Result<Vec<Posting>> {
    let of_term = |term: &SelectedTerm| TIMES.map(|times| query(&term.text, times));
    let queries: Vec<String> = terms.iter().flat_map(of_term).collect();
    let chunks = |row: Row<'_>| row.get::<Vec<i64>>(0);
    let chunks = tx
        .query(POSTINGS, values![queries, collections], chunks)
        .await?;
    let posting = |each_time: &[Vec<i64>]| {
        let mut times_of: BTreeMap<i64, u32> = BTreeMap::new();
        for (chunks, times) in each_time.iter().zip(TIMES) {
            times_of.extend(chunks.iter().map(|chunk| (*chunk, times)));
        }
        times_of.into_iter().collect()
    };
    Ok(chunks.chunks(TIMES.len()).map(posting).collect())
}

const ALL_CHUNKS: Sql = sql!("SELECT coalesce(sum(chunks), 0)::bigint FROM library_collections");

const HAS_QUERY: &str = "SELECT 1 FROM temp.sqlite_schema WHERE name = 'library_query_words'";
const CREATE_QUERY: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.library_query USING fts5 (
         text, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
     CREATE VIRTUAL TABLE IF NOT EXISTS temp.library_query_words
         USING fts5vocab ('temp', 'library_query', 'instance');";
const CLEAR_QUERY: Sql =
    sql!("INSERT INTO temp.library_query (library_query) VALUES ('delete-all')");
const SET_QUERY: Sql =
    sql!("INSERT INTO temp.library_query (rowid, text) SELECT key, value FROM json_each($1)");
const SQLITE_TERMS: Sql = sql!(
    "SELECT query.doc, query.term, coalesce(words.doc, 0), coalesce(words.cnt, 0)
       FROM temp.library_query_words AS query
       LEFT JOIN library_words AS words ON words.term = query.term"
);

/// Selects all chunks that contain a term, ordered by key, once for each occurrence.
const TERM_PLACES: Sql = sql!("SELECT doc FROM library_places WHERE term = $1");

/// Selects the terms of words and, for the most common terms, the server's estimate of the number of chunks that contain them. Also
/// disables sequential and index scans for the rest of the transaction: the planner would prefer them for common words, but they
/// unpack every list of terms.
const POSTGRES_TERMS: Sql = sql!(
    "SELECT word.place, term.lexeme, (common.share * common.chunks)::bigint
       FROM set_config('enable_seqscan', 'off', true) AS sequential
      CROSS JOIN set_config('enable_indexscan', 'off', true) AS by_key
      CROSS JOIN unnest($1::text[]) WITH ORDINALITY AS word (folded, place)
      CROSS JOIN unnest(to_tsvector('library_words', word.folded)) AS term
       LEFT JOIN (
            SELECT known.term, known.share, pg_class.reltuples AS chunks
              FROM pg_class
              JOIN pg_stats ON schemaname = current_schema() AND tablename = 'library_index' AND attname = 'terms'
             CROSS JOIN unnest(most_common_elems::text::text[], most_common_elem_freqs) AS known (term, share)
             WHERE pg_class.oid = 'library_index'::regclass) AS common ON common.term = term.lexeme
      ORDER BY word.place, term.lexeme"
);

/// Counts the chunks in all collections that contain each term.
const TERM_COUNTS: Sql = sql!(
    "SELECT (SELECT count(*) FROM library_index WHERE terms @@ query.term::tsquery)
       FROM unnest($1::text[]) WITH ORDINALITY AS query (term, place) ORDER BY query.place"
);

/// Selects the chunks of some collections that contain each term. It compares shifted keys, because with a range of
/// keys the planner would read every list of terms in the range.
const POSTINGS: Sql = sql!(
    "SELECT coalesce((SELECT array_agg(chunk) FROM library_index
                       WHERE terms @@ query.term::tsquery AND chunk >> 32 = ANY ($2)), '{}')
       FROM unnest($1::text[]) WITH ORDINALITY AS query (term, place) ORDER BY query.place"
);

/// The statements that use PostgreSQL's word index.
#[cfg(test)]
pub(crate) const BY_WORDS: [Sql; 2] = [TERM_COUNTS, POSTINGS];
