//! The nearest vectors: a coarse look at the signs of all, then a fine one at the bytes of the best.

use super::super::failure::Failure;
use super::statements::{BLOCKS, VECTOR};
use super::vectors::{BLOCK_CHUNKS, bits_of, maker as stored_maker};
use crate::library::{CollectionId, Stored};
use lango_core::EmbeddingMaker;
use rusqlite::{Connection, OptionalExtension as _, params};

/// How many chunks are looked at finely, at least.
const LOOKED_AT_FINELY: usize = 384;

/// How many blocks the key range of one collection spans: 2^32 chunks, 128 to a block.
const BLOCK_SHIFT: u32 = 25;

/// The chunks whose vectors are nearest.
pub(super) fn search(
    connection: &Connection,
    collections: &[CollectionId],
    maker: &EmbeddingMaker,
    vector: &[f32],
    most: usize,
) -> Result<Stored<Vec<(i64, f64)>>, Failure> {
    match stored_maker(connection)? {
        None => return Ok(Stored::Done(Vec::new())),
        Some(stored) if stored != *maker => return Ok(Stored::OtherMaker(stored)),
        Some(_) => {}
    }
    let coarse = Coarse::over(connection, collections, vector)?;
    let mut statement = connection.prepare_cached(VECTOR)?;
    let mut nearest = Vec::new();
    for key in coarse.best(LOOKED_AT_FINELY.max(most)) {
        let cosine = statement
            .query_row([key], |row| Ok(cosine(vector, row.get_ref(0)?.as_blob()?)))
            .optional()?;
        nearest.extend(cosine.map(|cosine| (key, cosine)));
    }
    nearest.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
    nearest.truncate(most);
    Ok(Stored::Done(nearest))
}

/// How many signs differ, for every chunk.
struct Coarse {
    distances: Vec<(u32, i64)>,
    /// How many chunks there are at each distance.
    counts: Vec<usize>,
}

impl Coarse {
    fn over(
        connection: &Connection,
        collections: &[CollectionId],
        vector: &[f32],
    ) -> Result<Self, Failure> {
        let wanted = words_of(&bits_of(vector));
        let width = wanted.len() * 8;
        let mut coarse = Self {
            distances: Vec::new(),
            counts: vec![0; width * 8 + 1],
        };
        let mut statement = connection.prepare_cached(BLOCKS)?;
        for collection in collections {
            let range = params![
                collection.0 << BLOCK_SHIFT,
                (collection.0 + 1) << BLOCK_SHIFT
            ];
            let mut rows = statement.query(range)?;
            while let Some(row) = rows.next()? {
                let first = row.get::<_, i64>(0)? * BLOCK_CHUNKS;
                let present = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
                let bits = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
                coarse.add_block(first, present, bits, &wanted);
            }
        }
        Ok(coarse)
    }

    fn add_block(&mut self, first: i64, present: &[u8], bits: &[u8], wanted: &[u64]) {
        for (slot, bits) in bits.chunks_exact(wanted.len() * 8).enumerate() {
            let is_present = present
                .get(slot / 8)
                .is_some_and(|byte| byte >> (slot % 8) & 1 == 1);
            if is_present {
                let distance = distance(bits, wanted);
                self.distances.push((distance, first + slot as i64));
                self.counts[distance as usize] += 1;
            }
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

/// How many bits differ.
fn distance(bits: &[u8], wanted: &[u64]) -> u32 {
    let (words, _) = bits.as_chunks::<8>();
    words
        .iter()
        .zip(wanted)
        .map(|(word, wanted)| (u64::from_le_bytes(*word) ^ wanted).count_ones())
        .sum()
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
