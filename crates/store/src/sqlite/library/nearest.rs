//! The nearest vectors: a coarse look at the signs of all, then a fine one at the bytes of the best.

use super::super::failure::Failure;
use super::statements::{BLOCKS, GENERATION, VECTOR};
use super::vectors::{BLOCK_CHUNKS, bits_of, maker as stored_maker};
use crate::library::{CollectionId, Stored};
use lango_core::EmbeddingMaker;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many chunks are looked at finely, at least.
const LOOKED_AT_FINELY: usize = 384;

/// How many blocks the key range of one collection spans: 2^32 chunks, 128 to a block.
const BLOCK_SHIFT: u32 = 25;

/// How much memory the signs that are kept take at most, in bytes.
const MOST_KEPT: usize = 64 * 1024 * 1024;

/// What is looked for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Where.
    pub collections: &'a [CollectionId],
    /// Who made the vector.
    pub maker: &'a EmbeddingMaker,
    /// What the others are to be near to.
    pub vector: &'a [f32],
    /// How many.
    pub most: usize,
}

/// The chunks whose vectors are nearest.
pub(super) fn search(
    connection: &Connection,
    memory: &BitsInMemory,
    asked: Asked<'_>,
) -> Result<Stored<Vec<(i64, f64)>>, Failure> {
    match stored_maker(connection)? {
        None => return Ok(Stored::Done(Vec::new())),
        Some(stored) if stored != *asked.maker => return Ok(Stored::OtherMaker(stored)),
        Some(_) => {}
    }
    let wanted = words_of(&bits_of(asked.vector));
    let mut coarse = Coarse {
        distances: Vec::new(),
        counts: vec![0; wanted.len() * 64 + 1],
    };
    for collection in asked.collections {
        let bits = memory.of(connection, *collection, wanted.len())?;
        coarse.add(&bits, &wanted);
    }
    let mut statement = connection.prepare_cached(VECTOR)?;
    let mut nearest = Vec::new();
    for key in coarse.best(LOOKED_AT_FINELY.max(asked.most)) {
        let cosine = statement
            .query_row([key], |row| {
                Ok(cosine(asked.vector, row.get_ref(0)?.as_blob()?))
            })
            .optional()?;
        nearest.extend(cosine.map(|cosine| (key, cosine)));
    }
    nearest.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    nearest.truncate(asked.most);
    Ok(Stored::Done(nearest))
}

/// The signs of the collections that were searched, kept until their vectors change: reading them takes longer than
/// comparing them. Beyond a bound nothing is kept.
#[derive(Default)]
pub(in crate::sqlite) struct BitsInMemory {
    kept: Mutex<Kept>,
}

/// The signs of collections, each with its generation.
type Kept = HashMap<CollectionId, (i64, Arc<Bits>)>;

/// The signs of a collection: the keys of its chunks, and for each the same number of words.
struct Bits {
    keys: Vec<i64>,
    words: Vec<u64>,
}

impl Bits {
    fn size(&self) -> usize {
        (self.keys.len() + self.words.len()) * 8
    }
}

impl BitsInMemory {
    fn of(
        &self,
        connection: &Connection,
        collection: CollectionId,
        width: usize,
    ) -> Result<Arc<Bits>, Failure> {
        // Read before the bits: if they change in between, the next search reads them again.
        let generation: Option<(i64, i64)> = connection
            .prepare_cached(GENERATION)?
            .query_row([collection.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (generation, vectors) = generation.unwrap_or_default();
        if let Some((kept, bits)) = self.kept().get(&collection)
            && *kept == generation
        {
            return Ok(Arc::clone(bits));
        }
        let bits = Arc::new(read(connection, collection, width, vectors)?);
        let mut kept = self.kept();
        kept.remove(&collection);
        let others: usize = kept.values().map(|(_, bits)| bits.size()).sum();
        if others + bits.size() > MOST_KEPT {
            kept.clear();
        }
        if bits.size() <= MOST_KEPT {
            kept.insert(collection, (generation, Arc::clone(&bits)));
        }
        Ok(bits)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The signs of a collection from the database.
fn read(
    connection: &Connection,
    collection: CollectionId,
    width: usize,
    vectors: i64,
) -> Result<Bits, Failure> {
    let vectors = usize::try_from(vectors).unwrap_or(0);
    let mut bits = Bits {
        keys: Vec::with_capacity(vectors),
        words: Vec::with_capacity(vectors * width),
    };
    let mut statement = connection.prepare_cached(BLOCKS)?;
    let range = params![
        collection.0 << BLOCK_SHIFT,
        (collection.0 + 1) << BLOCK_SHIFT
    ];
    let mut rows = statement.query(range)?;
    while let Some(row) = rows.next()? {
        let first = row.get::<_, i64>(0)? * BLOCK_CHUNKS;
        let present = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let block = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        for (slot, signs) in block.chunks_exact(width * 8).enumerate() {
            let byte = present.get(slot / 8);
            if byte.is_some_and(|byte| byte >> (slot % 8) & 1 == 1) {
                bits.keys.push(first + slot as i64);
                bits.words.extend(words_of(signs));
            }
        }
    }
    Ok(bits)
}

/// How many signs differ, for every chunk.
struct Coarse {
    distances: Vec<(u32, i64)>,
    /// How many chunks there are at each distance.
    counts: Vec<usize>,
}

impl Coarse {
    fn add(&mut self, bits: &Bits, wanted: &[u64]) {
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
    fn best(&self, most: usize) -> impl Iterator<Item = i64> {
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

fn words_of(bits: &[u8]) -> Vec<u64> {
    let (words, _) = bits.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The cosine of the angle between a vector and a stored one.
fn cosine(vector: &[f32], stored: &[u8]) -> f64 {
    let (mut dot, mut own, mut other) = (0.0_f32, 0.0_f32, 0.0_f32);
    for (number, byte) in vector.iter().zip(stored) {
        let byte = f32::from(byte.cast_signed());
        dot += number * byte;
        own += number * number;
        other += byte * byte;
    }
    let lengths = f64::from(own).sqrt() * f64::from(other).sqrt();
    if lengths > 0.0 {
        f64::from(dot) / lengths
    } else {
        0.0
    }
}
