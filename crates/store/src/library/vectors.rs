//! Stores vectors: a signed byte for each number, and blocks of their signs, which searches scan first.
//!
//! A block has the signs of 128 chunks with consecutive keys, so that a scan reads few large rows. The key of a chunk determines
//! its slot in the block.
//!
//! All vectors are from one embedding model. Its row is locked while vectors are stored.

use super::VectorOutcome;
use super::documents::lock;
use super::statements as sql;
use crate::StoreFuture;
use crate::backend::{BackendError, Result, Row, Sql, Tx, bulk_row, values, work};
use crate::store::Store;
use lango_core::EmbeddingModel;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Number of bits by which a collection's key is shifted in the keys of its chunks.
pub(crate) const COLLECTION_SHIFT: u32 = 32;

/// Number of chunks in a block.
pub(crate) const BLOCK_CHUNKS: usize = 128;

/// Number of bits by which a collection's key is shifted in the keys of its blocks: 2^32 chunks in blocks of 128.
const BLOCK_SHIFT: u32 = 25;

/// Returns the range of a collection's block keys: the first, and the one after the last.
pub(crate) fn blocks_of(collection: i64) -> (i64, i64) {
    (collection << BLOCK_SHIFT, (collection + 1) << BLOCK_SHIFT)
}

/// Returns the key of a chunk's block.
pub(crate) fn block_of(chunk: i64) -> i64 {
    chunk / BLOCK_CHUNKS as i64
}

fn slot_of(chunk: i64) -> usize {
    (chunk % BLOCK_CHUNKS as i64) as usize
}

/// Returns the signs of a vector, one bit each, padded to whole words of eight bytes.
pub(crate) fn bits_of(vector: &[f32]) -> Vec<u8> {
    let mut bits = vec![0; width(vector.len())];
    for (at, number) in vector.iter().enumerate() {
        if *number > 0.0 {
            bits[at / 8] |= 1 << (at % 8);
        }
    }
    bits
}

/// Converts a vector to signed bytes, scaled so that the greatest magnitude is 127.
pub(crate) fn bytes_of(vector: &[f32]) -> Vec<u8> {
    let greatest = vector
        .iter()
        .filter(|number| number.is_finite())
        .fold(f32::MIN_POSITIVE, |limit, number| limit.max(number.abs()));
    let scale = 127.0 / greatest;
    // NaN becomes 0, and the conversion saturates.
    let byte = |number: &f32| (number * scale).round() as i8;
    vector
        .iter()
        .map(|number| byte(number).cast_unsigned())
        .collect()
}

/// Returns the cosine of the angle between a vector and a stored one.
pub(crate) fn cosine(vector: &[f32], stored: &[u8]) -> f64 {
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

pub(super) async fn model(tx: &mut Tx<'_>) -> Result<Option<EmbeddingModel>> {
    read_model(tx, sql::MODEL).await
}

async fn read_model(tx: &mut Tx<'_>, statement: Sql) -> Result<Option<EmbeddingModel>> {
    tx.query_opt(statement, &[], |row| model_in(row, 0)).await
}

pub(super) fn model_in(row: Row<'_>, column: usize) -> Result<EmbeddingModel> {
    serde_json::from_str(&row.get::<Cow<'_, str>>(column)?).map_err(|error| {
        BackendError::other(format!("the stored embedding model is invalid: {error}"))
    })
}

/// Sets the embedding model if none is set, and locks it until the end of the transaction. Returns the stored model if it differs
/// from `wanted`.
pub(super) async fn claim(
    tx: &mut Tx<'_>,
    wanted: &EmbeddingModel,
) -> Result<Option<EmbeddingModel>> {
    let mut stored = read_model(tx, sql::MODEL_FOR_SHARE).await?;
    if stored.is_none() {
        tx.execute(sql::INSERT_MODEL, values![json(wanted)?])
            .await?;
        stored = read_model(tx, sql::MODEL_FOR_SHARE).await?;
    }
    Ok(stored.filter(|stored| stored != wanted))
}

impl Store {
    /// Sets the embedding model of the library, and deletes the vectors of any other model.
    pub fn set_vector_model(&self, model: EmbeddingModel) -> StoreFuture<'_, ()> {
        work!(self.backend.write(model), |tx, wanted| {
            let json = json(wanted)?;
            tx.execute(sql::INSERT_MODEL, values![json]).await?;
            let stored = read_model(tx, sql::MODEL_FOR_UPDATE).await?;
            if stored.is_some_and(|stored| stored != *wanted) {
                for statement in sql::DELETE_ALL_VECTORS {
                    tx.execute(statement, &[]).await?;
                }
                tx.execute(sql::SET_MODEL, values![json]).await?;
            }
            Ok(())
        })
    }

    /// Stores the vectors of chunks. Skips chunks that were deleted since the vectors were computed.
    pub fn set_vectors(
        &self,
        model: EmbeddingModel,
        vectors: Vec<(i64, Vec<f32>)>,
    ) -> StoreFuture<'_, VectorOutcome<()>> {
        let args = (model, vectors);
        work!(self.backend.write(args), |tx, model, vectors| {
            if let Some(other) = claim(tx, model).await? {
                return Ok(VectorOutcome::OtherModel(other));
            }
            let keys: Vec<i64> = vectors.iter().map(|(key, _)| *key).collect();
            lock(tx, keys.iter().map(|key| key >> COLLECTION_SHIFT).collect()).await?;
            let existing = tx.column(sql::EXISTING_CHUNKS, values![keys]).await?;
            let existing: HashSet<i64> = existing.into_iter().collect();
            let vectors = vectors.iter().filter(|(key, _)| existing.contains(key));
            let vectors = vectors.map(|(key, vector)| (*key, &vector[..]));
            let vectors: Vec<(i64, &[f32])> = vectors.collect();
            store(tx, &vectors).await?;
            Ok(VectorOutcome::Done(()))
        })
    }
}

fn json(model: &EmbeddingModel) -> Result<String> {
    serde_json::to_string(model).map_err(|error| BackendError::other(error.to_string()))
}

/// Stores the vectors of chunks in locked collections. The vectors must be from the stored model.
pub(super) async fn store(tx: &mut Tx<'_>, vectors: &[(i64, &[f32])]) -> Result<()> {
    let Some((_, any)) = vectors.first() else {
        return Ok(());
    };
    let model = model(tx).await?;
    let dimensions = model.map_or(any.len(), |model| model.dimensions as usize);
    if let Some((_, wrong)) = vectors
        .iter()
        .find(|(_, vector)| vector.len() != dimensions)
    {
        let length = wrong.len();
        return Err(BackendError::other(format!(
            "a vector has {length} dimensions, but its embedding model has {dimensions}"
        )));
    }
    let bytes = vectors.iter().map(|(key, vector)| (key, bytes_of(vector)));
    let bytes: Vec<(&i64, Vec<u8>)> = bytes.collect();
    let rows = bytes.iter().map(|(key, bytes)| bulk_row![key, bytes]);
    let rows: Vec<_> = rows.collect();
    let new = tx
        .batch(sql::INSERT_VECTOR, &[], &rows, |row| row.get(0))
        .await?;
    let keys: Vec<i64> = vectors.iter().map(|(key, _)| *key).collect();
    let mut blocks = read_blocks(tx, &keys).await?;
    for (key, vector) in vectors {
        let block = blocks.entry(block_of(*key));
        let block = block.or_insert_with(|| Block::empty(dimensions));
        if !block.set(*key, &bits_of(vector)) {
            return Err(BackendError::other(
                "the stored vectors have different lengths",
            ));
        }
    }
    write_blocks(tx, &blocks).await?;
    count(tx, &new, 1).await
}

/// Removes the vectors of chunks in a locked collection.
pub(super) async fn remove(tx: &mut Tx<'_>, keys: &[i64]) -> Result<()> {
    let removed = tx.column(sql::DELETE_VECTORS, values![keys]).await?;
    if removed.is_empty() {
        return Ok(());
    }
    let mut blocks = read_blocks(tx, &removed).await?;
    for key in &removed {
        if let Some(block) = blocks.get_mut(&block_of(*key)) {
            block.clear(*key);
        }
    }
    write_blocks(tx, &blocks).await?;
    count(tx, &removed, -1).await
}

/// Updates the number of vectors of each collection. The new generation invalidates cached signs.
async fn count(tx: &mut Tx<'_>, keys: &[i64], each: i64) -> Result<()> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key >> COLLECTION_SHIFT).or_insert(0) += each;
    }
    for (collection, change) in counts {
        tx.execute(sql::ADD_VECTOR_COUNT, values![collection, change])
            .await?;
    }
    Ok(())
}

async fn read_blocks(tx: &mut Tx<'_>, chunks: &[i64]) -> Result<BTreeMap<i64, Block>> {
    let keys: BTreeSet<i64> = chunks.iter().map(|chunk| block_of(*chunk)).collect();
    let keys: Vec<i64> = keys.into_iter().collect();
    let block = |row: Row<'_>| {
        let (present, bits) = (row.get(1)?, row.get(2)?);
        Ok((row.get(0)?, Block { present, bits }))
    };
    let blocks = tx.query(sql::BLOCKS, values![keys], block).await?;
    Ok(blocks.into_iter().collect())
}

async fn write_blocks(tx: &mut Tx<'_>, blocks: &BTreeMap<i64, Block>) -> Result<()> {
    let empty = blocks.iter().filter(|(_, block)| block.is_empty());
    let empty: Vec<i64> = empty.map(|(key, _)| *key).collect();
    if !empty.is_empty() {
        tx.execute(sql::DELETE_BLOCKS, values![empty]).await?;
    }
    let rows = blocks.iter().filter(|(_, block)| !block.is_empty());
    let rows: Vec<_> = rows
        .map(|(key, block)| bulk_row![key, block.present, block.bits])
        .collect();
    tx.batch(sql::SET_BLOCK, &[], &rows, |_| Ok(())).await?;
    Ok(())
}

/// The signs of chunks with consecutive keys.
struct Block {
    /// A bit for each chunk, set if the chunk has a vector.
    present: Vec<u8>,
    /// The signs of all chunks, one after the other.
    bits: Vec<u8>,
}

impl Block {
    fn empty(dimensions: usize) -> Self {
        Self {
            present: vec![0; BLOCK_CHUNKS / 8],
            bits: vec![0; width(dimensions) * BLOCK_CHUNKS],
        }
    }

    fn is_empty(&self) -> bool {
        self.present.iter().all(|byte| *byte == 0)
    }

    /// Sets the signs of a chunk. Returns false if the other signs of the block have a different length.
    #[must_use]
    fn set(&mut self, chunk: i64, bits: &[u8]) -> bool {
        let (width, slot) = (bits.len(), slot_of(chunk));
        if self.bits.len() != width * BLOCK_CHUNKS {
            return false;
        }
        self.present[slot / 8] |= 1 << (slot % 8);
        self.bits[slot * width..(slot + 1) * width].copy_from_slice(bits);
        true
    }

    /// Removes the signs of a chunk.
    fn clear(&mut self, chunk: i64) {
        let (width, slot) = (self.bits.len() / BLOCK_CHUNKS, slot_of(chunk));
        self.present[slot / 8] &= !(1 << (slot % 8));
        self.bits[slot * width..(slot + 1) * width].fill(0);
    }
}

/// Returns the size in bytes of the signs of a vector.
fn width(dimensions: usize) -> usize {
    dimensions.div_ceil(64) * 8
}
