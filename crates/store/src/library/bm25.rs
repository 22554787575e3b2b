//! BM25: the ranking of a search by words, the same over every store.
//!
//! A store counts the terms of a question and reads postings and lengths; which ones it reads and how chunks are scored is
//! decided here. Only the chunks of the searched collections count, both as hits and for how rare a term is. A term counts
//! once for each time the question has it.
//!
//! A text that is longer than a chunk may answer a question in several of them. So the best chunk of each document is
//! scored half by itself and half together with the chunks around it.

mod selection;

pub(crate) use selection::{SelectedTerm, Term, TermSelection};

use super::Ranked;
use std::collections::{BTreeSet, HashMap, HashSet};

/// How fast repetitions of a term saturate, and how much the length of a text matters. The usual values.
const K1: f64 = 1.5;
const B: f64 = 0.75;

/// The number of chunks that are scored with their lengths, at least.
const MIN_CANDIDATES: usize = 300;

/// The number of documents whose best chunk is scored together with the chunks around it, at most.
const MAX_PASSAGES: usize = 100;

/// The number of chunks on either side that belong to the passage around a chunk.
const PASSAGE_REACH: i64 = 3;

/// The share of the passage in the score of a chunk.
const PASSAGE_SHARE: f64 = 0.5;

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

/// What scoring needs of a stored chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkLength {
    pub id: i64,
    pub document: i64,
    pub words: i64,
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

/// Chunks with their own scores, the best first.
#[derive(Debug)]
pub(crate) struct Candidates(Vec<(ChunkLength, f64)>);

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

    /// Selects the chunks whose lengths are worth reading for so many hits: the best as if all had the same length.
    pub(crate) fn select(&self, limit: usize) -> Vec<i64> {
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

    /// Scores the selected chunks, each by itself.
    pub(crate) fn score(&self, selected: Vec<ChunkLength>) -> Candidates {
        let score = |chunk: ChunkLength| {
            let length = chunk.words as f64 / self.mean_words;
            (chunk, self.score_of(&[chunk.id], length))
        };
        let mut scored: Vec<_> = selected.into_iter().map(score).collect();
        scored.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.id.cmp(&b.id)));
        Candidates(scored)
    }

    /// Ranks the candidates, given the chunks that [`Candidates::neighbours`] names as far as they exist.
    pub(crate) fn rank(
        &self,
        candidates: &Candidates,
        neighbours: &[ChunkLength],
        limit: usize,
    ) -> Ranked {
        let mut scores: HashMap<i64, f64> = HashMap::new();
        scores.extend(candidates.0.iter().map(|(chunk, score)| (chunk.id, *score)));
        let passages = candidates.passages(neighbours);
        let words: i64 = passages.iter().map(|passage| passage.words).sum();
        let mean_words = words as f64 / passages.len().max(1) as f64;
        for passage in &passages {
            let length = passage.words as f64 / mean_words.max(1.0);
            let score = scores.entry(passage.chunk).or_default();
            *score += PASSAGE_SHARE * (self.score_of(&passage.chunks, length) - *score);
        }
        Ranked {
            hits: best(scores.into_iter().collect(), limit),
            unknown: self.unknown,
            left_out: self.left_out,
        }
    }

    /// The score of some chunks, in the order of their keys, taken as one text of this length relative to the mean.
    fn score_of(&self, chunks: &[i64], length: f64) -> f64 {
        let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else {
            return 0.0;
        };
        let score = self.postings.iter().map(|posting| {
            let from = posting.chunks.partition_point(|(chunk, _)| chunk < first);
            let near = posting.chunks[from..]
                .iter()
                .take_while(|(chunk, _)| chunk <= last);
            let times = near
                .filter(|(chunk, _)| chunks.contains(chunk))
                .map(|(_, times)| times)
                .sum();
            posting.weight * saturation(times, length)
        });
        score.sum()
    }
}

/// A chunk together with those around it in its document.
struct Passage {
    /// The chunk that is scored.
    chunk: i64,
    /// All of them, in the order of their keys.
    chunks: Vec<i64>,
    words: i64,
}

impl Candidates {
    /// The best chunk of each document, the best first.
    fn best_of_documents(&self) -> impl Iterator<Item = ChunkLength> {
        let mut seen = HashSet::new();
        let chunks = self.0.iter().map(|(chunk, _)| *chunk);
        let best = chunks.filter(move |chunk| seen.insert(chunk.document));
        best.take(MAX_PASSAGES)
    }

    /// The keys of the chunks that may belong to the passages around the best chunks and are no candidates themselves.
    pub(crate) fn neighbours(&self) -> Vec<i64> {
        let mut around: BTreeSet<i64> = self.best_of_documents().flat_map(reach).collect();
        for (chunk, _) in &self.0 {
            around.remove(&chunk.id);
        }
        around.into_iter().collect()
    }

    fn passages(&self, neighbours: &[ChunkLength]) -> Vec<Passage> {
        let candidates = self.0.iter().map(|(chunk, _)| chunk);
        let all: HashMap<i64, &ChunkLength> = candidates
            .chain(neighbours)
            .map(|chunk| (chunk.id, chunk))
            .collect();
        let passage = |best: ChunkLength| {
            let chunks: Vec<&ChunkLength> = reach(best)
                .filter_map(|id| all.get(&id).copied())
                .filter(|chunk| chunk.document == best.document)
                .collect();
            Passage {
                chunk: best.id,
                words: chunks.iter().map(|chunk| chunk.words).sum(),
                chunks: chunks.iter().map(|chunk| chunk.id).collect(),
            }
        };
        self.best_of_documents().map(passage).collect()
    }
}

/// The keys around a chunk. Chunks of a document that are written together have keys one after the other.
fn reach(chunk: ChunkLength) -> impl Iterator<Item = i64> {
    chunk.id.saturating_sub(PASSAGE_REACH)..=chunk.id.saturating_add(PASSAGE_REACH)
}

/// The rarer a term is, the more it says.
fn inverse_frequency(size: Size, chunks: usize) -> f64 {
    let with = chunks as f64;
    (1.0 + (size.chunks - with + 0.5).max(0.0) / (with + 0.5)).ln()
}

/// How much it counts that a text of this length, relative to the mean, has a term so often.
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
