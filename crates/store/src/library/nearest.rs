//! The coarse look at vectors: how many signs differ, for all chunks of some collections, and what of that is kept in memory.

use super::CollectionId;
use super::vectors::{BLOCK_CHUNKS, bits_of};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many chunks are looked at finely, at least.
pub(crate) const LOOKED_AT_FINELY: usize = 384;

/// How much memory the signs that are kept take at most, in bytes.
const MOST_KEPT: usize = 64 * 1024 * 1024;

/// Of how many collections it is kept which generation was searched.
const MOST_SEEN: usize = 10_000;

/// The signs of the collections that were searched, kept until their vectors change: reading them takes longer than
/// comparing them. Beyond a bound nothing is kept.
#[derive(Default)]
pub(crate) struct BitsInMemory {
    kept: Mutex<Kept>,
    /// The generations of collections that were searched without their signs.
    seen: Mutex<HashMap<CollectionId, i64>>,
}

/// The signs of collections, each with its generation.
type Kept = HashMap<CollectionId, (i64, Arc<Bits>)>;

impl BitsInMemory {
    /// The signs of a collection as they were at this generation, if they are kept.
    pub(crate) fn of(&self, collection: CollectionId, generation: i64) -> Option<Arc<Bits>> {
        let kept = self.kept();
        let (kept, bits) = kept.get(&collection)?;
        (*kept == generation).then(|| Arc::clone(bits))
    }

    /// Keeps the signs of a collection, of which this generation is the oldest that they may be of.
    pub(crate) fn keep(&self, collection: CollectionId, generation: i64, bits: &Arc<Bits>) {
        let mut kept = self.kept();
        kept.remove(&collection);
        let others: usize = kept.values().map(|(_, bits)| bits.size()).sum();
        if others + bits.size() > MOST_KEPT {
            kept.clear();
        }
        if bits.size() <= MOST_KEPT {
            kept.insert(collection, (generation, Arc::clone(bits)));
        }
    }

    /// Whether a collection is searched for the first time at this generation.
    pub(crate) fn is_news(&self, collection: CollectionId, generation: i64) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_SEEN {
            seen.clear();
        }
        seen.insert(collection, generation) != Some(generation)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signs of a collection: the keys of its chunks, and for each the same number of words.
pub(crate) struct Bits {
    keys: Vec<i64>,
    words: Vec<u64>,
    width: usize,
}

impl Bits {
    /// None yet, for vectors like this one, with room for as many as there will be.
    pub(crate) fn like(wanted: &Signs, vectors: i64) -> Self {
        let vectors = usize::try_from(vectors).unwrap_or(0);
        let width = wanted.0.len();
        Self {
            keys: Vec::with_capacity(vectors),
            words: Vec::with_capacity(vectors * width),
            width,
        }
    }

    /// Adds the signs of a stored block.
    pub(crate) fn add(&mut self, block: i64, present: &[u8], bits: &[u8]) {
        let first = block * BLOCK_CHUNKS as i64;
        for (slot, signs) in bits.chunks_exact((self.width * 8).max(1)).enumerate() {
            let byte = present.get(slot / 8);
            if byte.is_some_and(|byte| byte >> (slot % 8) & 1 == 1) {
                self.keys.push(first + slot as i64);
                self.words.extend(words_of(signs));
            }
        }
    }

    fn size(&self) -> usize {
        (self.keys.len() + self.words.len()) * 8
    }
}

/// The signs of the vector that others are to be near to.
pub(crate) struct Signs(Vec<u64>);

impl Signs {
    /// Those of this vector.
    pub(crate) fn of(vector: &[f32]) -> Self {
        Self(words_of(&bits_of(vector)).collect())
    }
}

/// How many signs differ, for every chunk.
pub(crate) struct Coarse {
    wanted: Signs,
    distances: Vec<(u32, i64)>,
    /// How many chunks there are at each distance.
    counts: Vec<usize>,
}

impl Coarse {
    /// A look for what is near to this.
    pub(crate) fn new(wanted: Signs) -> Self {
        Self {
            distances: Vec::new(),
            counts: vec![0; wanted.0.len() * 64 + 1],
            wanted,
        }
    }

    /// What is looked for.
    pub(crate) fn wanted(&self) -> &Signs {
        &self.wanted
    }

    /// Looks at the signs of one more collection.
    pub(crate) fn add(&mut self, bits: &Bits) {
        let wanted = &self.wanted.0;
        if bits.width != wanted.len() || wanted.is_empty() {
            // Of a maker that was replaced just now; its chunks are not near to anything any more.
            return;
        }
        self.distances.reserve(bits.keys.len());
        let words = bits.words.chunks_exact(wanted.len());
        for (key, words) in bits.keys.iter().zip(words) {
            let pairs = words.iter().zip(wanted);
            let distance: u32 = pairs
                .map(|(word, wanted)| (word ^ wanted).count_ones())
                .sum();
            self.distances.push((distance, *key));
            self.counts[distance as usize] += 1;
        }
    }

    /// The keys of the nearest, at least `most` of them if there are as many: all at the last distance are in.
    pub(crate) fn best(&self, most: usize) -> impl Iterator<Item = i64> {
        let mut left = most;
        let farthest = self.counts.iter().position(|count| {
            left = left.saturating_sub(*count);
            left == 0
        });
        let farthest = farthest.unwrap_or(self.counts.len()) as u32;
        let near = move |(distance, _): &&(u32, i64)| *distance <= farthest;
        self.distances.iter().filter(near).map(|(_, key)| *key)
    }
}

/// The best of what was looked at finely, the nearest first; of two that are equal, the older.
pub(crate) fn nearest_first(mut cosines: Vec<(i64, f64)>, most: usize) -> Vec<(i64, f64)> {
    cosines.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    cosines.truncate(most);
    cosines
}

fn words_of(bits: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bits.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}
