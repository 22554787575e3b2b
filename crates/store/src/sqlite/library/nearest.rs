//! The nearest vectors: a coarse look at the signs of all, then a fine one at the bytes of the best.

use super::super::failure::Failure;
use super::statements::{BLOCKS, GENERATION, VECTOR};
use super::vectors::maker as stored_maker;
use crate::library::nearest::{Bits, BitsInMemory, Coarse, LOOKED_AT_FINELY, Signs, nearest_first};
use crate::library::vectors::{blocks_of, cosine};
use crate::library::{CollectionId, Stored};
use lango_core::EmbeddingMaker;
use rusqlite::{Connection, OptionalExtension as _};
use std::sync::Arc;

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
    let mut coarse = Coarse::new(Signs::of(asked.vector));
    for collection in asked.collections {
        let bits = bits(connection, memory, *collection, coarse.wanted())?;
        coarse.add(&bits);
    }
    let mut statement = connection.prepare_cached(VECTOR)?;
    let mut cosines = Vec::new();
    for key in coarse.best(LOOKED_AT_FINELY.max(asked.most)) {
        let cosine = statement
            .query_row([key], |row| {
                Ok(cosine(asked.vector, row.get_ref(0)?.as_blob()?))
            })
            .optional()?;
        cosines.extend(cosine.map(|cosine| (key, cosine)));
    }
    Ok(Stored::Done(nearest_first(cosines, asked.most)))
}

/// The signs of a collection, from memory if they are those of now.
fn bits(
    connection: &Connection,
    memory: &BitsInMemory,
    collection: CollectionId,
    wanted: &Signs,
) -> Result<Arc<Bits>, Failure> {
    // Read before the bits: if they change in between, the next search reads them again.
    let generation: Option<(i64, i64)> = connection
        .prepare_cached(GENERATION)?
        .query_row([collection.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (generation, vectors) = generation.unwrap_or_default();
    if let Some(bits) = memory.of(collection, generation) {
        return Ok(bits);
    }
    let mut bits = Bits::like(wanted, vectors);
    let mut statement = connection.prepare_cached(BLOCKS)?;
    let mut rows = statement.query(blocks_of(collection.0))?;
    while let Some(row) = rows.next()? {
        let present = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let block = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        bits.add(row.get(0)?, present, block);
    }
    let bits = Arc::new(bits);
    memory.keep(collection, generation, &bits);
    Ok(bits)
}
