//! The nearest vectors: a coarse look at the signs of all, then a fine one at the bytes of the best.

use super::super::asking::rows;
use super::super::failure::Failure;
use super::super::pgvector::{self, Within};
use super::statements::{BLOCKS, GENERATIONS, VECTORS};
use super::vectors::{maker, maker_in};
use crate::library::nearest::{Bits, BitsInMemory, Coarse, LOOKED_AT_FINELY, Signs, nearest_first};
use crate::library::vectors::{blocks_of, cosine};
use crate::library::{CollectionId, Stored};
use deadpool_postgres::Transaction;
use lango_core::EmbeddingMaker;
use std::sync::Arc;
use tokio_postgres::Row;

/// How many times as many signs are read when they are likely to be of use again: comparing them in memory is faster than an
/// index, and as many of 256 numbers are about what is kept there.
const READ_TO_BE_KEPT: u64 = 64;

/// What is looked for.
pub(super) struct Asked {
    /// The signs that were read before.
    pub memory: Arc<BitsInMemory>,
    /// How many vectors' signs are read at most, where an index could tell instead.
    pub signs_read: u64,
    /// Where.
    pub collections: Vec<CollectionId>,
    /// Who made the vector.
    pub maker: EmbeddingMaker,
    /// What the others are to be near to.
    pub vector: Vec<f32>,
    /// How many.
    pub most: usize,
}

/// The chunks whose vectors are nearest.
pub(super) async fn search(
    transaction: &Transaction<'_>,
    asked: &Asked,
) -> Result<Stored<Vec<(i64, f64)>>, Failure> {
    let ids: Vec<i64> = asked.collections.iter().map(|id| id.0).collect();
    let collections = rows(transaction, GENERATIONS, &[&ids]).await?;
    let stored = match collections.first() {
        None => maker(transaction).await?,
        Some(row) => match row.try_get::<_, Option<&str>>(3)? {
            None => None,
            Some(_) => Some(maker_in(row, 3)?),
        },
    };
    match stored {
        None => return Ok(Stored::Done(Vec::new())),
        Some(stored) if stored != asked.maker => return Ok(Stored::OtherMaker(stored)),
        Some(_) => {}
    }
    if let Some(found) = by_index(transaction, asked, &ids, &collections).await? {
        return Ok(Stored::Done(found));
    }
    let wanted = Signs::of(&asked.vector);
    let mut all = Vec::with_capacity(collections.len());
    for row in &collections {
        all.push(bits(transaction, asked, row, &wanted).await?);
    }
    let most = LOOKED_AT_FINELY.max(asked.most);
    let look = tokio::task::spawn_blocking(move || {
        let mut coarse = Coarse::new(wanted);
        for bits in &all {
            coarse.add(bits);
        }
        coarse.best(most).collect::<Vec<i64>>()
    });
    let near = look
        .await
        .map_err(|error| Failure::other(error.to_string()))?;
    let cosines = rows(transaction, VECTORS, &[&near]).await?;
    let cosines = cosines.iter().map(|row| {
        let key = row.try_get(0)?;
        Ok((key, cosine(&asked.vector, row.try_get(1)?)))
    });
    let cosines = cosines.collect::<Result<_, Failure>>()?;
    Ok(Stored::Done(nearest_first(cosines, asked.most)))
}

/// What the database's index tells, if there is one, and reading signs would take longer.
async fn by_index(
    transaction: &Transaction<'_>,
    asked: &Asked,
    ids: &[i64],
    collections: &[Row],
) -> Result<Option<Vec<(i64, f64)>>, Failure> {
    let (mut vectors, mut unread, mut has_changed) = (0_i64, 0_i64, false);
    for row in collections {
        let each: i64 = row.try_get(2)?;
        let (collection, generation) = (CollectionId(row.try_get(0)?), row.try_get(1)?);
        vectors += each;
        if asked.memory.of(collection, generation).is_none() {
            unread += each;
            has_changed |= asked.memory.is_news(collection, generation);
        }
    }
    let often = if has_changed { 1 } else { READ_TO_BE_KEPT };
    if u64::try_from(unread).unwrap_or(0) <= asked.signs_read.saturating_mul(often) {
        return Ok(None);
    }
    let within = Within {
        collections: ids,
        vectors,
    };
    pgvector::nearest(transaction, within, &asked.vector, asked.most).await
}

/// The signs of a collection, from memory if they are those of this transaction's moment. The row has its number, its
/// generation and how many vectors it has.
async fn bits(
    transaction: &Transaction<'_>,
    asked: &Asked,
    row: &Row,
    wanted: &Signs,
) -> Result<Arc<Bits>, Failure> {
    let collection = CollectionId(row.try_get(0)?);
    let (generation, vectors) = (row.try_get(1)?, row.try_get(2)?);
    if let Some(bits) = asked.memory.of(collection, generation) {
        return Ok(bits);
    }
    let (first, end) = blocks_of(collection.0);
    let mut bits = Bits::like(wanted, vectors);
    for row in &rows(transaction, BLOCKS, &[&first, &end]).await? {
        bits.add(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    }
    let bits = Arc::new(bits);
    asked.memory.keep(collection, generation, &bits);
    Ok(bits)
}
