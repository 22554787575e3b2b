//! Vectors and who made them. All are of one maker; the row that names it is checked in the transaction that stores them.

use super::super::failure::Failure;
use super::statements::{
    ADD_VECTOR_COUNT, BLOCK, DELETE_BITS, DELETE_BLOCK, DELETE_VECTOR, DELETE_VECTORS, HAS_CHUNK,
    INSERT_VECTOR, MAKER, MISSING_VECTORS, NO_VECTORS, SET_BLOCK, SET_MAKER,
};
use crate::library::Stored;
use crate::library::vectors::{Block, COLLECTION_SHIFT, bits_of, block_of, bytes_of, wrong_length};
use lango_core::EmbeddingMaker;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeMap;

/// Who made the vectors.
pub(super) fn maker(connection: &Connection) -> Result<Option<EmbeddingMaker>, Failure> {
    let stored: Option<String> = connection
        .prepare_cached(MAKER)?
        .query_row([], |row| row.get(0))
        .optional()?;
    let parse = |json: String| {
        serde_json::from_str(&json)
            .map_err(|error| Failure::other(format!("the maker of the vectors: {error}")))
    };
    stored.map(parse).transpose()
}

/// Makes this the maker if there is none. Gives the one that is there if it is another.
pub(super) fn claim(
    connection: &Connection,
    wanted: &EmbeddingMaker,
) -> Result<Option<EmbeddingMaker>, Failure> {
    match maker(connection)? {
        None => {
            write_maker(connection, wanted)?;
            Ok(None)
        }
        Some(stored) if stored == *wanted => Ok(None),
        other => Ok(other),
    }
}

/// Drops the vectors of another maker and makes this the one.
pub(super) fn begin(connection: &Connection, wanted: &EmbeddingMaker) -> Result<(), Failure> {
    if claim(connection, wanted)?.is_some() {
        // Without a condition, SQLite drops whole pages: this is short however many there are.
        connection.prepare_cached(DELETE_VECTORS)?.execute([])?;
        connection.prepare_cached(DELETE_BITS)?.execute([])?;
        connection.prepare_cached(NO_VECTORS)?.execute([])?;
        write_maker(connection, wanted)?;
    }
    Ok(())
}

/// Chunks without a vector.
pub(super) fn missing(
    connection: &Connection,
    after: i64,
    most: usize,
) -> Result<Vec<(i64, String, String)>, Failure> {
    let mut statement = connection.prepare_cached(MISSING_VECTORS)?;
    let rows = statement.query_map(params![after, most as i64], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Gives chunks that are still there their vectors.
pub(super) fn set(
    connection: &Connection,
    maker: &EmbeddingMaker,
    made: &[(i64, Vec<f32>)],
) -> Result<Stored<()>, Failure> {
    if let Some(other) = claim(connection, maker)? {
        return Ok(Stored::OtherMaker(other));
    }
    let mut has_chunk = connection.prepare_cached(HAS_CHUNK)?;
    let mut there = Vec::with_capacity(made.len());
    for (key, vector) in made {
        if has_chunk.exists([key])? {
            there.push((*key, vector.as_slice()));
        }
    }
    store(connection, &there)?;
    Ok(Stored::Done(()))
}

/// Stores the vectors of chunks, which must be of the maker.
pub(super) fn store(connection: &Connection, made: &[(i64, &[f32])]) -> Result<(), Failure> {
    let Some((_, any)) = made.first() else {
        return Ok(());
    };
    let dimensions = maker(connection)?.map_or(any.len(), |maker| maker.dimensions as usize);
    let mut blocks = Blocks::new(connection, dimensions);
    let mut insert = connection.prepare_cached(INSERT_VECTOR)?;
    let mut counts = BTreeMap::new();
    for (key, vector) in made {
        if vector.len() != dimensions {
            return Err(Failure::other(wrong_length(vector.len(), dimensions)));
        }
        if insert.execute(params![key, bytes_of(vector)])? > 0 {
            *counts.entry(key >> COLLECTION_SHIFT).or_insert(0) += 1;
        }
        blocks.set(*key, &bits_of(vector))?;
    }
    blocks.write()?;
    count(connection, &counts)
}

/// Removes the vectors of chunks.
pub(super) fn forget(
    connection: &Connection,
    keys: impl Iterator<Item = i64>,
) -> Result<(), Failure> {
    let mut delete = connection.prepare_cached(DELETE_VECTOR)?;
    let mut blocks = Blocks::new(connection, 0);
    let mut counts = BTreeMap::new();
    for key in keys {
        if delete.execute([key])? > 0 {
            *counts.entry(key >> COLLECTION_SHIFT).or_insert(0) -= 1;
        }
        blocks.clear(key)?;
    }
    blocks.write()?;
    count(connection, &counts)
}

fn write_maker(connection: &Connection, maker: &EmbeddingMaker) -> Result<(), Failure> {
    let json = serde_json::to_string(maker).map_err(|error| Failure::other(error.to_string()))?;
    connection.prepare_cached(SET_MAKER)?.execute([json])?;
    Ok(())
}

fn count(connection: &Connection, counts: &BTreeMap<i64, i64>) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(ADD_VECTOR_COUNT)?;
    for (collection, change) in counts {
        statement.execute([collection, change])?;
    }
    Ok(())
}

/// The blocks that a change touches, each read and written once.
struct Blocks<'a> {
    connection: &'a Connection,
    /// What a new block is for.
    dimensions: usize,
    touched: BTreeMap<i64, Block>,
}

impl<'a> Blocks<'a> {
    fn new(connection: &'a Connection, dimensions: usize) -> Self {
        Self {
            connection,
            dimensions,
            touched: BTreeMap::new(),
        }
    }

    fn set(&mut self, key: i64, bits: &[u8]) -> Result<(), Failure> {
        match self.block(key)?.set(key, bits) {
            true => Ok(()),
            false => Err(Failure::other("vectors of different lengths are stored")),
        }
    }

    fn clear(&mut self, key: i64) -> Result<(), Failure> {
        self.block(key)?.clear(key);
        Ok(())
    }

    fn block(&mut self, key: i64) -> Result<&mut Block, Failure> {
        use std::collections::btree_map::Entry;
        match self.touched.entry(block_of(key)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let stored = self
                    .connection
                    .prepare_cached(BLOCK)?
                    .query_row([*entry.key()], |row| {
                        Ok(Block {
                            present: row.get(0)?,
                            bits: row.get(1)?,
                        })
                    })
                    .optional()?;
                Ok(entry.insert(stored.unwrap_or_else(|| Block::empty(self.dimensions))))
            }
        }
    }

    fn write(self) -> Result<(), Failure> {
        for (key, block) in &self.touched {
            if block.is_empty() {
                self.connection
                    .prepare_cached(DELETE_BLOCK)?
                    .execute([key])?;
            } else {
                self.connection.prepare_cached(SET_BLOCK)?.execute(params![
                    key,
                    block.present,
                    block.bits
                ])?;
            }
        }
        Ok(())
    }
}
