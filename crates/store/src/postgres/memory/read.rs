//! What is read of memory: from rows to values.

use super::super::asking::{Ask, claim, row, rows, trust};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::{bound, limit as number_of, text, unsigned};
use super::super::text::{Words, words};
use super::statements::{
    LAST_TURN, NEWEST, OLDEST_LOOSE, OWNS, SAVED, SHOWN, UNOBSERVED, WATERMARK,
};
use crate::engine::Row as AnyRow;
use crate::log::exchange;
use crate::recollection::{
    Generation, MemoryId, MemoryOwner, Recollection, SavedMemory, ShownMemory, TurnsToRead,
    UnobservedTurn, Watermark, Which, exchange_within,
};
use deadpool_postgres::Transaction;
use lango_core::{AgentName, Source, StoreError, Timestamp, Trust, TurnId, UserId};
use std::cmp::Reverse;
use tokio_postgres::Row;

/// How far a session's memory is; at the beginning if it has none.
pub(super) async fn watermark(
    database: &impl Ask,
    owner: &MemoryOwner,
) -> Result<Watermark, Failure> {
    let values: Values<'_> = &[&Words(owner.session.as_str()), &Words(owner.user.as_str())];
    let Some(row) = row(database, WATERMARK, values).await? else {
        return Err(not_found(owner));
    };
    if row.try_get::<_, Option<i64>>(0)?.is_none() {
        return Ok(Watermark {
            observed: 0,
            revision: 0,
            trust: Trust::Trusted,
            failures: 0,
        });
    }
    Ok(Watermark {
        observed: unsigned(&row, 0)?,
        revision: unsigned(&row, 1)?,
        trust: trust(&row, 2)?,
        failures: u32::try_from(unsigned(&row, 3)?).unwrap_or(u32::MAX),
    })
}

/// A session of somebody else is none.
pub(super) async fn must_own(database: &impl Ask, owner: &MemoryOwner) -> Result<(), Failure> {
    let values: Values<'_> = &[&Words(owner.session.as_str()), &Words(owner.user.as_str())];
    match row(database, OWNS, values).await? {
        Some(_) => Ok(()),
        None => Err(not_found(owner)),
    }
}

fn not_found(owner: &MemoryOwner) -> Failure {
    let id = owner.session.clone();
    StoreError::NotFound { id }.into()
}

/// Turns in their order, up to the first that may still go on.
pub(super) async fn turns(
    database: &impl Ask,
    owner: &MemoryOwner,
    turns: TurnsToRead,
    root_agent: &AgentName,
) -> Result<Vec<UnobservedTurn>, Failure> {
    let values: Values<'_> = &[
        &Words(owner.session.as_str()),
        &Words(owner.user.as_str()),
        &bound(turns.from),
        &number_of(turns.limit),
    ];
    let mut found = Vec::new();
    for row in &rows(database, UNOBSERVED, values).await? {
        let finished = claim(row, 7)?;
        let (forgotten, last): (bool, bool) = (row.try_get(3)?, row.try_get(4)?);
        // Only the last turn of a session can still end; one before it that never did has no answer.
        if !finished && last {
            break;
        }
        let exchange = if finished && !forgotten {
            let exchange = exchange(AnyRow::Postgres(row), 5, &owner.session, root_agent)?;
            Some(exchange_within(exchange, turns.text_bytes))
        } else {
            None
        };
        found.push(UnobservedTurn {
            ordinal: unsigned(row, 0)?,
            began: Timestamp(unsigned(row, 1)?),
            exchange,
        });
    }
    Ok(found)
}

/// The ordinal of a turn that is going on.
pub(super) async fn current_turn(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    turn: &TurnId,
) -> Result<Option<u64>, Failure> {
    must_own(transaction, owner).await?;
    let last = row(transaction, LAST_TURN, &[&Words(owner.session.as_str())]).await?;
    let Some(last) = last else { return Ok(None) };
    let is_last = turn == words(&last, 1)?.as_ref();
    is_last.then(|| unsigned(&last, 0)).transpose()
}

/// Recollections of one generation.
pub(super) async fn list(
    database: &impl Ask,
    owner: &MemoryOwner,
    generation: Generation,
    which: Which,
    limit: usize,
) -> Result<Vec<Recollection>, Failure> {
    let query = match which {
        Which::Newest => NEWEST,
        Which::OldestLoose => OLDEST_LOOSE,
    };
    let values: Values<'_> = &[
        &Words(owner.session.as_str()),
        &Words(owner.user.as_str()),
        &generation.number(),
        &number_of(limit),
    ];
    let recollection = |row| {
        let mut recollection = recollection(row, 0, generation)?;
        recollection.is_part = Row::try_get::<_, Option<i64>>(row, 7)?.is_some();
        Ok(recollection)
    };
    let rows = rows(database, query, values).await?;
    rows.iter().map(recollection).collect()
}

/// A user's saved memories, the newest first.
pub(super) async fn saved(
    database: &impl Ask,
    user: &UserId,
    limit: usize,
) -> Result<Vec<SavedMemory>, Failure> {
    let values: Values<'_> = &[&Words(user.as_str()), &number_of(limit)];
    let rows = rows(database, SAVED, values).await?;
    rows.iter().map(|row| saved_memory(row, 0)).collect()
}

/// What a prompt shows.
pub(super) async fn shown(
    database: &impl Ask,
    owner: &MemoryOwner,
    most: usize,
) -> Result<ShownMemory, Failure> {
    let values: Values<'_> = &[
        &Words(owner.session.as_str()),
        &Words(owner.user.as_str()),
        &number_of(most),
    ];
    let (mut shown, mut is_owned) = (ShownMemory::default(), false);
    let [second, first, observations] = &mut shown.recollections;
    for row in &rows(database, SHOWN, values).await? {
        match row.try_get::<_, i64>(0)? {
            2 => second.push(recollection(row, 1, Generation::Second)?),
            1 => first.push(recollection(row, 1, Generation::First)?),
            0 => observations.push(recollection(row, 1, Generation::Observation)?),
            -1 => shown.saved.push(saved_memory(row, 1)?),
            _ => is_owned = true,
        }
    }
    if !is_owned {
        return Err(not_found(owner));
    }
    // Parts of a whole come in any order, by the letter of SQL.
    for recollections in &mut shown.recollections {
        recollections.sort_unstable_by_key(|recollection| Reverse(recollection.id));
    }
    shown.saved.sort_unstable_by_key(|saved| Reverse(saved.id));
    Ok(shown)
}

/// One that went into no other, from this column on.
fn recollection(row: &Row, at: usize, generation: Generation) -> Result<Recollection, Failure> {
    Ok(Recollection {
        id: generation.name(unsigned(row, at)?),
        generation,
        turns: (unsigned(row, at + 1)?, unsigned(row, at + 2)?),
        text: text(row, at + 3)?,
        source: source(row, at + 4)?,
        created: Timestamp(unsigned(row, at + 6)?),
        is_part: false,
    })
}

fn saved_memory(row: &Row, at: usize) -> Result<SavedMemory, Failure> {
    Ok(SavedMemory {
        id: MemoryId::Saved(unsigned(row, at)?),
        text: text(row, at + 3)?,
        source: source(row, at + 4)?,
        created: Timestamp(unsigned(row, at + 6)?),
        tags: serde_json::from_str(&words(row, at + 7)?).unwrap_or_default(),
    })
}

/// The name in one column, the trust in the next.
fn source(row: &Row, column: usize) -> Result<Source, Failure> {
    Ok(Source {
        name: text(row, column)?,
        trust: trust(row, column + 1)?,
    })
}
