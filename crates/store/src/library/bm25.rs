//! BM25 ranking of searches by words, the same for every database.
//!
//! The database counts the terms of a query and reads postings and chunk lengths. This module decides which ones to read, and
//! scores the chunks. Only chunks of the searched collections count, both as hits and for the inverse document frequency. A term is
//! weighted by the number of times that the query contains it.
//!
//! The answer to a query may be spread over several chunks of a document. So the best chunk of each document gets half of its score
//! from itself, and half from all candidates of its document scored as one text.

mod selection;

pub(crate) use selection::{SelectedTerm, Term, TermSelection};

use super::Ranking;
use std::collections::{HashMap, HashSet};

/// How fast repetitions of a term saturate; the usual value.
const K1: f64 = 1.5;
/// How much the length of a text matters; the usual value.
const B: f64 = 0.75;

/// Minimum number of chunks that are scored with their lengths.
const MIN_CANDIDATES: usize = 300;

/// The share of the document in the score of its best chunk.
const DOCUMENT_SHARE: f64 = 0.5;

/// The chunks of the searched collections that contain a term, ordered by key, with the number of occurrences.
pub(crate) type Posting = Vec<(i64, u32)>;

/// The properties of a chunk that scoring needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkLength {
    pub id: i64,
    pub document: i64,
    pub words: i64,
}

/// Scores the chunks that contain any of the selected terms.
#[derive(Debug)]
pub(crate) struct Scorer {
    mean_words: f64,
    /// The postings with their weights: query term frequency times inverse document frequency.
    postings: Vec<(f64, Posting)>,
    unknown: usize,
    left_out: usize,
}

/// A text to score: a chunk, or all candidates of a document.
struct Candidate {
    words: i64,
    /// The number of occurrences of each term, in the order of the postings.
    times: Vec<u32>,
}

impl Scorer {
    /// Creates a scorer from the number of searched chunks, the number of their words, and one posting list for each
    /// selected term, in the order of [`TermSelection::terms`].
    pub(crate) fn new(
        (chunks, words): (u64, u64),
        selection: TermSelection,
        postings: Vec<Posting>,
    ) -> Self {
        let mut is_known = selection.is_known;
        let mut weighted = Vec::with_capacity(postings.len());
        for (term, posting) in selection.terms.iter().zip(postings) {
            if !posting.is_empty() {
                term.words.iter().for_each(|word| is_known[*word] = true);
                let weight = term.times * inverse_frequency(chunks, posting.len());
                weighted.push((weight, posting));
            }
        }
        Self {
            mean_words: (words as f64 / chunks.max(1) as f64).max(1.0),
            postings: weighted,
            unknown: is_known.iter().filter(|known| !**known).count(),
            left_out: selection.left_out,
        }
    }

    /// Selects the candidates whose lengths are worth reading for `limit` hits: the chunks that would be best if all
    /// had the same length.
    pub(crate) fn select(&self, limit: usize) -> Vec<i64> {
        let mut scores: Vec<(i64, f64)> = Vec::new();
        for (weight, posting) in &self.postings {
            let score = |times: u32| weight * saturation(times, 1.0);
            scores.extend(posting.iter().map(|(chunk, times)| (*chunk, score(*times))));
        }
        // The postings are sorted, so this sort merges them.
        scores.sort_by_key(|(chunk, _)| *chunk);
        scores.dedup_by(|next, sum| {
            let is_same = next.0 == sum.0;
            if is_same {
                sum.1 += next.1;
            }
            is_same
        });
        let best = best(scores, MIN_CANDIDATES.max(limit * 2));
        best.into_iter().map(|(chunk, _)| chunk).collect()
    }

    pub(crate) fn rank(&self, selected: &[ChunkLength], limit: usize) -> Ranking {
        let mut documents: HashMap<i64, Candidate> = HashMap::new();
        let mut scores = Vec::with_capacity(selected.len());
        for chunk in selected {
            let candidate = self.candidate(chunk);
            scores.push((chunk, self.score(&candidate, self.mean_words)));
            match documents.get_mut(&chunk.document) {
                Some(document) => document.add(&candidate),
                None => {
                    documents.insert(chunk.document, candidate);
                }
            }
        }
        scores.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.id.cmp(&b.id)));
        // If every document has one candidate, each document gets the same score as its chunk.
        let chunks_per_document = selected.len() as f64 / documents.len().max(1) as f64;
        let mean_words = self.mean_words * chunks_per_document;
        let mut seen = HashSet::new();
        let scores = scores.into_iter().map(|(chunk, score)| {
            if !seen.insert(chunk.document) {
                return (chunk.id, score);
            }
            let document = self.score(&documents[&chunk.document], mean_words);
            (chunk.id, score + DOCUMENT_SHARE * (document - score))
        });
        Ranking {
            hits: best(scores.collect(), limit),
            unknown: self.unknown,
            left_out: self.left_out,
        }
    }

    fn candidate(&self, chunk: &ChunkLength) -> Candidate {
        let times = self.postings.iter().map(|(_, posting)| {
            let at = posting.binary_search_by_key(&chunk.id, |(id, _)| *id);
            at.map_or(0, |at| posting[at].1)
        });
        Candidate {
            words: chunk.words,
            times: times.collect(),
        }
    }

    fn score(&self, candidate: &Candidate, mean_words: f64) -> f64 {
        let length = candidate.words as f64 / mean_words;
        let terms = self.postings.iter().zip(&candidate.times);
        let terms = terms.filter(|(_, times)| **times > 0);
        let scores = terms.map(|((weight, _), times)| weight * saturation(*times, length));
        scores.sum()
    }
}

impl Candidate {
    fn add(&mut self, other: &Self) {
        self.words += other.words;
        for (sum, times) in self.times.iter_mut().zip(&other.times) {
            *sum += times;
        }
    }
}

/// Returns the inverse document frequency: the rarer a term, the greater its weight.
fn inverse_frequency(chunks: u64, with_term: usize) -> f64 {
    let with = with_term as f64;
    (1.0 + (chunks as f64 - with + 0.5).max(0.0) / (with + 0.5)).ln()
}

/// Returns the score of a term that occurs `times` times in a text. `length` is relative to the mean length.
fn saturation(times: u32, length: f64) -> f64 {
    let times = f64::from(times);
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length))
}

/// Returns the `limit` best scores, best first. Equal scores are ordered by age, older chunks first.
fn best(mut scores: Vec<(i64, f64)>, limit: usize) -> Vec<(i64, f64)> {
    let order = |(a, x): &(i64, f64), (b, y): &(i64, f64)| y.total_cmp(x).then(a.cmp(b));
    if scores.len() > limit && limit > 0 {
        scores.select_nth_unstable_by(limit - 1, order);
    }
    scores.truncate(limit);
    scores.sort_by(order);
    scores
}
