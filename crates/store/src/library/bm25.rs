//! BM25: the ranking of a search by words, the same over every store.
//!
//! A store counts the terms of a question and reads their postings; which terms are read and how chunks are scored is
//! decided here. Only the chunks of the searched collections count, both as hits and for how rare a term is. A term counts
//! once for each time the question has it. Lengths are read for the best candidates only.

use super::{QueryWord, Ranked};
use std::collections::HashMap;

/// How fast repetitions of a term saturate, and how much the length of a chunk matters.
const K1: f64 = 1.5;
const B: f64 = 0.75;

/// The number of places in the index that one search reads, at most, unless a single term has more.
const MAX_PLACES: u64 = 60_000;

/// The number of chunks that are scored with their lengths, at least.
const MIN_CANDIDATES: usize = 300;

/// A term of the index that a word of a question stands for, as a store counts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub text: String,
    /// The number of its places in the index, over all collections.
    pub places: u64,
    /// The position of the word among those of the question.
    pub word: usize,
}

/// The terms of a question whose postings are worth reading, and what became of the others.
#[derive(Debug)]
pub(crate) struct TermSelection {
    /// The order is that of the postings which [`Scorer::new`] takes.
    pub terms: Vec<SelectedTerm>,
    left_out: usize,
    is_known: Vec<bool>,
}

#[derive(Debug)]
pub(crate) struct SelectedTerm {
    pub text: String,
    places: u64,
    /// Query term frequency: how often the question has a word of this term.
    times: f64,
    words: Vec<usize>,
}

impl TermSelection {
    /// Joins the words that have the same term, as `flow` and `flows` do, and selects the terms with the fewest places
    /// for each time that the question has them, as far as [`MAX_PLACES`] goes.
    pub(crate) fn new(terms: Vec<Term>, words: &[QueryWord]) -> Self {
        let mut terms = join(terms, words);
        terms.sort_by(|a, b| {
            let cost = |term: &SelectedTerm| term.places as f64 / term.times;
            cost(a)
                .total_cmp(&cost(b))
                .then_with(|| a.text.cmp(&b.text))
        });
        let mut is_known = vec![false; words.len()];
        let (mut places, mut left_out) = (0, 0);
        terms.retain(|term| {
            let is_too_common = places > 0 && places + term.places > MAX_PLACES;
            if is_too_common {
                left_out += term.words.len();
                term.words.iter().for_each(|word| is_known[*word] = true);
            } else {
                places += term.places;
            }
            !is_too_common
        });
        Self {
            terms,
            left_out,
            is_known,
        }
    }
}

/// Joins terms of the same text, without those that the index does not have.
fn join(terms: Vec<Term>, words: &[QueryWord]) -> Vec<SelectedTerm> {
    let mut by_text: HashMap<String, SelectedTerm> = HashMap::new();
    for term in terms.into_iter().filter(|term| term.places > 0) {
        let joined = by_text
            .entry(term.text.clone())
            .or_insert_with(|| SelectedTerm {
                text: term.text,
                places: term.places,
                times: 0.0,
                words: Vec::new(),
            });
        joined.times += f64::from(words[term.word].times.max(1));
        joined.words.push(term.word);
    }
    by_text.into_values().collect()
}

/// The chunks of the searched collections that hold a term, in the order of their keys, with how often they do.
pub(crate) type Posting = Vec<(i64, u32)>;

/// The size of the searched collections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    chunks: f64,
    mean_words: f64,
}

impl Size {
    pub(crate) fn new(chunks: i64, words: i64) -> Self {
        Self {
            chunks: chunks as f64,
            mean_words: (words as f64 / chunks.max(1) as f64).max(1.0),
        }
    }
}

/// Scores the chunks that hold any of the selected terms.
#[derive(Debug)]
pub(crate) struct Scorer {
    mean_words: f64,
    postings: Vec<WeightedPosting>,
    unknown: usize,
    left_out: usize,
}

#[derive(Debug)]
struct WeightedPosting {
    /// Query term frequency times inverse document frequency.
    weight: f64,
    chunks: Posting,
}

impl Scorer {
    /// Takes one posting for each selected term, in the order of [`TermSelection::terms`].
    pub(crate) fn new(size: Size, selection: TermSelection, postings: Vec<Posting>) -> Self {
        let mut is_known = selection.is_known;
        let mut weighted = Vec::with_capacity(postings.len());
        for (term, chunks) in selection.terms.iter().zip(postings) {
            if !chunks.is_empty() {
                term.words.iter().for_each(|word| is_known[*word] = true);
                weighted.push(WeightedPosting {
                    weight: term.times * inverse_frequency(size, chunks.len()),
                    chunks,
                });
            }
        }
        Self {
            mean_words: size.mean_words,
            postings: weighted,
            unknown: is_known.iter().filter(|known| !**known).count(),
            left_out: selection.left_out,
        }
    }

    /// The best chunks as if all had the same length: those whose lengths are worth reading for `limit` hits.
    pub(crate) fn candidates(&self, limit: usize) -> Vec<i64> {
        let mut scores: Vec<(i64, f64)> = Vec::new();
        for posting in &self.postings {
            let chunks = posting.chunks.iter();
            scores.extend(
                chunks.map(|(chunk, times)| (*chunk, posting.weight * saturation(*times, 1.0))),
            );
        }
        // The postings are sorted, so this merges.
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

    /// Ranks the candidates, each given with its number of words.
    pub(crate) fn rank(&self, candidates: &[(i64, i64)], limit: usize) -> Ranked {
        let scores = candidates.iter().map(|(chunk, words)| {
            let length = *words as f64 / self.mean_words;
            let score = self.postings.iter().filter_map(|posting| {
                let chunks = &posting.chunks;
                let at = chunks.binary_search_by_key(chunk, |(chunk, _)| *chunk);
                Some(posting.weight * saturation(chunks[at.ok()?].1, length))
            });
            (*chunk, score.sum())
        });
        Ranked {
            hits: best(scores.collect(), limit),
            unknown: self.unknown,
            left_out: self.left_out,
        }
    }
}

/// The rarer a term is, the more it says.
fn inverse_frequency(size: Size, chunks: usize) -> f64 {
    let with = chunks as f64;
    (1.0 + (size.chunks - with + 0.5).max(0.0) / (with + 0.5)).ln()
}

/// How much it counts that a chunk of this length, relative to the mean, has a term so often.
fn saturation(times: u32, length: f64) -> f64 {
    let times = f64::from(times);
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length))
}

/// The best scores, the best first; of equal ones the older chunk first.
fn best(mut scores: Vec<(i64, f64)>, limit: usize) -> Vec<(i64, f64)> {
    let order = |(a, x): &(i64, f64), (b, y): &(i64, f64)| y.total_cmp(x).then(a.cmp(b));
    if scores.len() > limit && limit > 0 {
        scores.select_nth_unstable_by(limit - 1, order);
    }
    scores.truncate(limit);
    scores.sort_by(order);
    scores
}
