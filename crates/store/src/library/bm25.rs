//! The ranking of a search by words: BM25 over the places of the words in the collections that are searched.
//!
//! Only the chunks of those collections count: for what is found, and for how rare a word is. The length of a chunk is
//! looked up for the best of them only.

/// How much a word that comes again counts, and how much the length of a chunk.
const K1: f64 = 1.5;
const B: f64 = 0.75;

/// How many places of words one search looks at. The rare words come first; those that would go beyond are left out,
/// unless there is no other.
const MOST_PLACES: u64 = 60_000;

/// How many chunks are ranked by their length too, at least.
const RANKED_FINELY: usize = 300;

/// A term of the index that a search asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    /// In how many places it is, in all collections.
    pub places: u64,
    /// The word as the index has it.
    pub text: String,
    /// Which word it is of.
    pub word: usize,
}

/// The terms that a search looks at, the rarest first, each once; and the words that are in too many places.
pub(crate) fn choose(mut terms: Vec<Term>) -> (Vec<Term>, Vec<usize>) {
    terms.retain(|term| term.places > 0);
    terms.sort();
    terms.dedup_by(|a, b| a.text == b.text);
    let mut looked_at = 0;
    let mut left_out = Vec::new();
    terms.retain(|term| {
        let is_too_much = looked_at > 0 && looked_at + term.places > MOST_PLACES;
        if is_too_much {
            left_out.push(term.word);
        } else {
            looked_at += term.places;
        }
        !is_too_much
    });
    (terms, left_out)
}

/// The chunks of the collections that hold a term, in the order of their keys, each with how often it does.
pub(crate) type Posting = Vec<(i64, u32)>;

/// How much is searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    chunks: f64,
    mean_words: f64,
}

impl Size {
    /// So many chunks, with so many words.
    pub(crate) fn new(chunks: i64, words: i64) -> Self {
        Self {
            chunks: chunks as f64,
            mean_words: (words as f64 / chunks.max(1) as f64).max(1.0),
        }
    }
}

/// The chunks whose lengths are worth a look.
pub(crate) fn candidates(size: Size, postings: &[Posting], most: usize) -> Vec<i64> {
    let best = best(roughly(size, postings), RANKED_FINELY.max(most * 2));
    best.into_iter().map(|(chunk, _)| chunk).collect()
}

/// The best of the candidates with their scores, the best first. Each comes with how many words it has.
pub(crate) fn rank(
    size: Size,
    postings: &[Posting],
    candidates: impl Iterator<Item = (i64, i64)>,
    most: usize,
) -> Vec<(i64, f64)> {
    let ranked = candidates.map(|(chunk, words)| {
        let length = words as f64 / size.mean_words;
        let score = postings.iter().filter_map(|posting| {
            let at = posting
                .binary_search_by_key(&chunk, |(chunk, _)| *chunk)
                .ok()?;
            Some(rarity(size, posting) * saturation(posting[at].1, length))
        });
        (chunk, score.sum())
    });
    best(ranked.collect(), most)
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
