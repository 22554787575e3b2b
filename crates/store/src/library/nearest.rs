//! Finds the nearest vectors: a coarse scan counts differing signs, then exact cosines are computed for the best candidates.
//! Scanned signs are cached in memory.
//!
//! In PostgreSQL, pgvector's index replaces the scan if it exists.

use super::VectorOutcome;
use super::statements as sql;
use super::vectors::{self, BLOCK_CHUNKS, bits_of, blocks_of, cosine};
use crate::backend::{Result, Row, Tx, values};
use crate::postgres::pgvector;
use lango_core::EmbeddingModel;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Minimum number of chunks whose cosines are computed.
const MIN_CANDIDATES: usize = 384;

/// The index is used only if the searched collections have at least 1/16 of the indexed vectors. It visits the vectors of all
/// other collections too, so for a smaller share a scan is faster.
const MIN_SHARE: i64 = 16;

/// Maximum size of the cache, in bytes.
const MAX_CACHED: usize = 64 * 1024 * 1024;

pub(crate) struct NearestQuery {
    pub cache: Arc<BitsCache>,
    pub collections: Vec<i64>,
    pub model: EmbeddingModel,
    pub vector: Vec<f32>,
    pub limit: usize,
}

/// The state of a collection's vectors.
struct CollectionVectors {
    collection: i64,
    /// Number of changes so far.
    generation: i64,
    vectors: i64,
}

pub(super) async fn search(
    tx: &mut Tx<'_>,
    query: &NearestQuery,
) -> Result<VectorOutcome<Vec<(i64, f64)>>> {
    let (mut stored, mut indexed) = (None, None);
    let generation = |row: Row<'_>| {
        if row.get::<Option<Cow<'_, str>>>(3)?.is_some() {
            stored = Some(vectors::model_in(row, 3)?);
        }
        indexed = row.get::<Option<i64>>(4)?;
        Ok(CollectionVectors {
            collection: row.get(0)?,
            generation: row.get(1)?,
            vectors: row.get(2)?,
        })
    };
    let values = values![query.collections];
    let collections = tx.query(sql::GENERATIONS, values, generation).await?;
    if collections.is_empty() {
        stored = vectors::model(tx).await?;
    }
    match stored {
        None => return Ok(VectorOutcome::Done(Vec::new())),
        Some(stored) if stored != query.model => return Ok(VectorOutcome::OtherModel(stored)),
        Some(_) => {}
    }
    let vectors: i64 = collections.iter().map(|of| of.vectors).sum();
    if indexed.is_some_and(|indexed| vectors.saturating_mul(MIN_SHARE) >= indexed)
        && let Some(nearest) = pgvector::nearest(tx, query, vectors).await?
    {
        return Ok(VectorOutcome::Done(nearest));
    }
    Ok(VectorOutcome::Done(scan(tx, query, &collections).await?))
}

async fn scan(
    tx: &mut Tx<'_>,
    query: &NearestQuery,
    collections: &[CollectionVectors],
) -> Result<Vec<(i64, f64)>> {
    let signs: Vec<u64> = words_of(&bits_of(&query.vector)).collect();
    let mut all = Vec::with_capacity(collections.len());
    for collection in collections {
        all.push(read_bits(tx, &query.cache, collection, signs.len()).await?);
    }
    let candidates = MIN_CANDIDATES.max(query.limit);
    let near = tx.compute(move || {
        let mut scan = Scan::new(signs);
        all.iter().for_each(|bits| scan.add(bits));
        scan.best(candidates).collect::<Vec<i64>>()
    });
    let near = near.await?;
    let with_cosine = |row: Row<'_>| Ok((row.get(0)?, cosine(&query.vector, row.get(1)?)));
    let cosines = tx.query(sql::VECTORS, values![near], with_cosine).await?;
    Ok(nearest_first(cosines, query.limit))
}

/// Returns the signs of a collection, from the cache if they have not changed.
async fn read_bits(
    tx: &mut Tx<'_>,
    cache: &BitsCache,
    of: &CollectionVectors,
    width: usize,
) -> Result<Arc<Bits>> {
    if let Some(bits) = cache.get(of) {
        return Ok(bits);
    }
    let (first, end) = blocks_of(of.collection);
    let vectors = usize::try_from(of.vectors).unwrap_or(0);
    let mut bits = Bits {
        keys: Vec::with_capacity(vectors),
        words: Vec::with_capacity(vectors * width),
        width,
    };
    let add = |row: Row<'_>| {
        bits.add(row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(())
    };
    tx.query(sql::BLOCKS_IN_RANGE, values![first, end], add)
        .await?;
    let bits = Arc::new(bits);
    cache.insert(of, &bits);
    Ok(bits)
}

/// A cache of the signs of scanned collections, with their generations. Reading signs takes longer than comparing them.
#[derive(Default)]
pub(crate) struct BitsCache(Mutex<HashMap<i64, (i64, Arc<Bits>)>>);

impl BitsCache {
    fn get(&self, of: &CollectionVectors) -> Option<Arc<Bits>> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, bits) = cached.get(&of.collection)?;
        (*generation == of.generation).then(|| Arc::clone(bits))
    }

    fn insert(&self, of: &CollectionVectors, bits: &Arc<Bits>) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.remove(&of.collection);
        let others: usize = cached.values().map(|(_, bits)| bits.size()).sum();
        if others + bits.size() > MAX_CACHED {
            cached.clear();
        }
        if bits.size() <= MAX_CACHED {
            cached.insert(of.collection, (of.generation, Arc::clone(bits)));
        }
    }
}

/// The signs of a collection's vectors: the keys of its chunks, and for each chunk `width` words of 64 signs.
struct Bits {
    keys: Vec<i64>,
    words: Vec<u64>,
    width: usize,
}

impl Bits {
    /// Adds a stored block.
    fn add(&mut self, block: i64, present: &[u8], bits: &[u8]) {
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

/// The number of differing signs (Hamming distance) of every chunk.
struct Scan {
    wanted: Vec<u64>,
    distances: Vec<(u32, i64)>,
    /// Number of chunks at each distance.
    counts: Vec<usize>,
}

impl Scan {
    fn new(wanted: Vec<u64>) -> Self {
        Self {
            distances: Vec::new(),
            counts: vec![0; wanted.len() * 64 + 1],
            wanted,
        }
    }

    fn add(&mut self, bits: &Bits) {
        let wanted = &self.wanted;
        if bits.width != wanted.len() || wanted.is_empty() {
            // The vectors are from another model, which has just been replaced.
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

    /// Returns the keys of at least `limit` of the nearest chunks, if there are that many. Includes all chunks at the last distance.
    fn best(&self, limit: usize) -> impl Iterator<Item = i64> {
        let mut left = limit;
        let farthest = self.counts.iter().position(|count| {
            left = left.saturating_sub(*count);
            left == 0
        });
        let farthest = farthest.unwrap_or(self.counts.len()) as u32;
        let near = move |(distance, _): &&(u32, i64)| *distance <= farthest;
        self.distances.iter().filter(near).map(|(_, key)| *key)
    }
}

/// Sorts by cosine, nearest first, then by key, and returns the first `limit`.
pub(crate) fn nearest_first(mut cosines: Vec<(i64, f64)>, limit: usize) -> Vec<(i64, f64)> {
    cosines.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    cosines.truncate(limit);
    cosines
}

fn words_of(bits: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bits.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}
