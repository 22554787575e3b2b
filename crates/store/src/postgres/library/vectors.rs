//! Vectors and who made them. All are of one maker; the row that names it is held while vectors are stored.

use super::super::asking::{execute, numbers, row, rows};

use super::super::failure::Failure;
use super::super::text::words;
use super::collections::hold;
use super::statements::{
    ADD_VECTOR_COUNT, BLOCKS_WITH_KEYS, DELETE_BITS, DELETE_BLOCKS, DELETE_SOME_VECTORS,
    DELETE_VECTORS, HOLD_MAKER, INSERT_MAKER, INSERT_VECTORS, MAKER, MISSING_VECTORS, NO_VECTORS,
    SET_BLOCKS, SET_MAKER, SHARE_MAKER, THERE,
};
use crate::library::Stored;
use crate::library::vectors::{Block, COLLECTION_SHIFT, bits_of, block_of, bytes_of, wrong_length};
use deadpool_postgres::Transaction;
use lango_core::EmbeddingMaker;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tokio_postgres::Row;

/// Who made the vectors.
pub(super) async fn maker(
    transaction: &Transaction<'_>,
) -> Result<Option<EmbeddingMaker>, Failure> {
    stored_maker(transaction, MAKER).await
}

async fn stored_maker(
    transaction: &Transaction<'_>,
    statement: &str,
) -> Result<Option<EmbeddingMaker>, Failure> {
    match row(transaction, statement, &[]).await? {
        None => Ok(None),
        Some(row) => maker_in(&row, 0).map(Some),
    }
}

/// The maker in a column.
pub(super) fn maker_in(row: &Row, column: usize) -> Result<EmbeddingMaker, Failure> {
    serde_json::from_str(&words(row, column)?)
        .map_err(|error| Failure::other(format!("the maker of the vectors: {error}")))
}

/// Makes this the maker if there is none, and sees to it that it stays until the end of the transaction. Gives the one that
/// is there if it is another.
pub(super) async fn claim(
    transaction: &Transaction<'_>,
    wanted: &EmbeddingMaker,
) -> Result<Option<EmbeddingMaker>, Failure> {
    let mut stored = stored_maker(transaction, SHARE_MAKER).await?;
    if stored.is_none() {
        execute(transaction, INSERT_MAKER, &[&json(wanted)?]).await?;
        stored = stored_maker(transaction, SHARE_MAKER).await?;
    }
    Ok(stored.filter(|stored| stored != wanted))
}

/// Drops the vectors of another maker and makes this the one.
pub(super) async fn begin(
    transaction: &Transaction<'_>,
    wanted: &EmbeddingMaker,
) -> Result<(), Failure> {
    let json = json(wanted)?;
    execute(transaction, INSERT_MAKER, &[&json]).await?;
    let stored = stored_maker(transaction, HOLD_MAKER).await?;
    if stored.is_some_and(|stored| stored != *wanted) {
        for statement in [DELETE_VECTORS, DELETE_BITS, NO_VECTORS] {
            execute(transaction, statement, &[]).await?;
        }
        execute(transaction, SET_MAKER, &[&json]).await?;
    }
    Ok(())
}

/// Chunks without a vector.
pub(super) async fn missing(
    transaction: &Transaction<'_>,
    after: i64,
    most: usize,
) -> Result<Vec<(i64, String, String)>, Failure> {
    let most = super::super::rows::limit(most);
    let rows = rows(transaction, MISSING_VECTORS, &[&after, &most]).await?;
    let chunk = |row: &Row| {
        let (heading, text) = (words(row, 1)?, words(row, 2)?);
        Ok((row.try_get(0)?, heading.into_owned(), text.into_owned()))
    };
    rows.iter().map(chunk).collect()
}

/// Gives chunks that are still there their vectors.
pub(super) async fn set(
    transaction: &Transaction<'_>,
    maker: &EmbeddingMaker,
    made: &[(i64, Vec<f32>)],
) -> Result<Stored<()>, Failure> {
    if let Some(other) = claim(transaction, maker).await? {
        return Ok(Stored::OtherMaker(other));
    }
    let collections: BTreeSet<i64> = made
        .iter()
        .map(|(key, _)| key >> COLLECTION_SHIFT)
        .collect();
    hold(transaction, collections.into_iter()).await?;
    let keys: Vec<i64> = made.iter().map(|(key, _)| *key).collect();
    let there = numbers(transaction, THERE, &[&keys]).await?;
    let there: HashSet<i64> = there.into_iter().collect();
    let made: Vec<(i64, &[f32])> = made
        .iter()
        .filter(|(key, _)| there.contains(key))
        .map(|(key, vector)| (*key, vector.as_slice()))
        .collect();
    store(transaction, &made).await?;
    Ok(Stored::Done(()))
}

/// Stores the vectors of chunks, which must be of the maker, in collections that are held.
pub(super) async fn store(
    transaction: &Transaction<'_>,
    made: &[(i64, &[f32])],
) -> Result<(), Failure> {
    let Some((_, any)) = made.first() else {
        return Ok(());
    };
    let maker = maker(transaction).await?;
    let dimensions = maker.map_or(any.len(), |maker| maker.dimensions as usize);
    if let Some((_, wrong)) = made.iter().find(|(_, vector)| vector.len() != dimensions) {
        return Err(Failure::other(wrong_length(wrong.len(), dimensions)));
    }
    let keys: Vec<i64> = made.iter().map(|(key, _)| *key).collect();
    let bytes: Vec<Vec<u8>> = made.iter().map(|(_, vector)| bytes_of(vector)).collect();
    let new = numbers(transaction, INSERT_VECTORS, &[&keys, &bytes]).await?;
    let mut blocks = Blocks::of(transaction, &keys).await?;
    for (key, vector) in made {
        let block = blocks.touched.entry(block_of(*key));
        let block = block.or_insert_with(|| Block::empty(dimensions));
        if !block.set(*key, &bits_of(vector)) {
            return Err(Failure::other("vectors of different lengths are stored"));
        }
    }
    blocks.write(transaction).await?;
    count(transaction, &new, 1).await
}

/// Removes the vectors of chunks in a collection that is held.
pub(super) async fn forget(transaction: &Transaction<'_>, keys: &[i64]) -> Result<(), Failure> {
    let gone = numbers(transaction, DELETE_SOME_VECTORS, &[&keys]).await?;
    if gone.is_empty() {
        return Ok(());
    }
    let mut blocks = Blocks::of(transaction, &gone).await?;
    for key in &gone {
        if let Some(block) = blocks.touched.get_mut(&block_of(*key)) {
            block.clear(*key);
        }
    }
    blocks.write(transaction).await?;
    count(transaction, &gone, -1).await
}

fn json(maker: &EmbeddingMaker) -> Result<String, Failure> {
    serde_json::to_string(maker).map_err(|error| Failure::other(error.to_string()))
}

/// Counts vectors that came or went, and so marks what is kept of them in memory as old.
async fn count(transaction: &Transaction<'_>, keys: &[i64], each: i64) -> Result<(), Failure> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key >> COLLECTION_SHIFT).or_insert(0) += each;
    }
    for (collection, change) in counts {
        execute(transaction, ADD_VECTOR_COUNT, &[&collection, &change]).await?;
    }
    Ok(())
}

/// The blocks that a change touches.
struct Blocks {
    touched: BTreeMap<i64, Block>,
}

impl Blocks {
    /// Those of these chunks that are stored.
    async fn of(transaction: &Transaction<'_>, chunks: &[i64]) -> Result<Self, Failure> {
        let keys: BTreeSet<i64> = chunks.iter().map(|chunk| block_of(*chunk)).collect();
        let keys: Vec<i64> = keys.into_iter().collect();
        let mut touched = BTreeMap::new();
        for row in &rows(transaction, BLOCKS_WITH_KEYS, &[&keys]).await? {
            let block = Block {
                present: row.try_get(1)?,
                bits: row.try_get(2)?,
            };
            touched.insert(row.try_get(0)?, block);
        }
        Ok(Self { touched })
    }

    async fn write(self, transaction: &Transaction<'_>) -> Result<(), Failure> {
        let (mut empty, mut keys) = (Vec::new(), Vec::new());
        let (mut present, mut bits) = (Vec::new(), Vec::new());
        for (key, block) in self.touched {
            if block.is_empty() {
                empty.push(key);
            } else {
                keys.push(key);
                present.push(block.present);
                bits.push(block.bits);
            }
        }
        if !empty.is_empty() {
            execute(transaction, DELETE_BLOCKS, &[&empty]).await?;
        }
        execute(transaction, SET_BLOCKS, &[&keys, &present, &bits]).await?;
        Ok(())
    }
}
