//! Reads memory.

use super::statements::{
    LAST_TURN, NEWEST, OLDEST_UNCONDENSED, OWNS, PROMPT_MEMORY, SAVED, UNOBSERVED, WATERMARK,
};
use super::{
    Generation, MemoryId, MemoryOwner, PromptMemory, Recollection, RecollectionOrder, SavedMemory,
    TurnRange, UnobservedTurn, Watermark,
};
use crate::engine::{Failure, Row, Tx, values};
use crate::stored::{exchange_in, source, trust};
use lango_core::{AgentName, Exchange, StoreError, Text, Trust, TurnId, UserId};
use std::borrow::Cow;
use std::cmp::Reverse;

/// The watermark of a session; the initial one if it has none.
pub(super) async fn watermark(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<Watermark, Failure> {
    let found = tx
        .query_opt(WATERMARK, values![owner.session, owner.user], |row| {
            let Some(observed) = row.get(0)? else {
                return Ok(Watermark {
                    observed: 0,
                    revision: 0,
                    trust: Trust::Trusted,
                    failures: 0,
                });
            };
            Ok(Watermark {
                observed,
                revision: row.get(1)?,
                trust: trust(row, 2)?,
                failures: row.get(3)?,
            })
        })
        .await?;
    found.ok_or_else(|| not_found(owner))
}

/// Fails unless the session is the user's.
pub(super) async fn must_own(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<(), Failure> {
    let owned = tx
        .query_opt(OWNS, values![owner.session, owner.user], |_| Ok(()))
        .await?;
    owned.ok_or_else(|| not_found(owner))
}

fn not_found(owner: &MemoryOwner) -> Failure {
    let id = owner.session.clone();
    StoreError::NotFound { id }.into()
}

/// Turns in their order, up to the first that may still go on.
pub(super) async fn turns(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    range: TurnRange,
    root_agent: &AgentName,
) -> Result<Vec<UnobservedTurn>, Failure> {
    let values = values![owner.session, owner.user, range.from, range.limit];
    let turns = tx
        .query(UNOBSERVED, values, |row| {
            let (is_forgotten, is_last, is_finished): (bool, bool, bool) =
                (row.get(2)?, row.get(3)?, row.get(6)?);
            // Only the last turn of a session can still end; one before it that never did has no answer.
            if is_last && !is_finished {
                return Ok(None);
            }
            let exchange = if is_finished && !is_forgotten {
                let exchange = exchange_in(row, 4, &owner.session, root_agent)?;
                Some(shortened(exchange, range.text_bytes))
            } else {
                None
            };
            Ok(Some(UnobservedTurn {
                ordinal: row.get(0)?,
                started: row.get(1)?,
                exchange,
            }))
        })
        .await?;
    Ok(turns.into_iter().flatten().collect())
}

/// Cuts the question and the answer to so many bytes.
fn shortened(mut exchange: Exchange, bytes: usize) -> Exchange {
    exchange.question = cut(exchange.question, bytes);
    if let Some(answer) = &mut exchange.answer {
        answer.text = cut(std::mem::take(&mut answer.text), bytes);
    }
    exchange
}

fn cut(text: Text, bytes: usize) -> Text {
    if text.len() <= bytes {
        return text;
    }
    let start = &text[..text.floor_char_boundary(bytes)];
    format!("{start} [cut: {} more bytes]", text.len() - start.len()).into()
}

/// The ordinal of a turn, if it is the last one.
pub(super) async fn current_turn(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    turn: &TurnId,
) -> Result<Option<u64>, Failure> {
    must_own(tx, owner).await?;
    let last = tx
        .query_opt(LAST_TURN, values![owner.session], |row| {
            let is_current = turn == row.get::<Cow<'_, str>>(1)?.as_ref();
            is_current.then(|| row.get(0)).transpose()
        })
        .await?;
    Ok(last.flatten())
}

/// Recollections of one generation.
pub(super) async fn list(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    generation: Generation,
    order: RecollectionOrder,
    limit: usize,
) -> Result<Vec<Recollection>, Failure> {
    let query = match order {
        RecollectionOrder::Newest => NEWEST,
        RecollectionOrder::OldestUncondensed => OLDEST_UNCONDENSED,
    };
    let number = generation.number();
    let values = values![owner.session, owner.user, number, limit];
    let recollections = tx.query(query, values, |row| recollection(row, 0, generation));
    recollections.await
}

/// A user's saved memories, the newest first.
pub(super) async fn saved(
    tx: &mut Tx<'_>,
    user: &UserId,
    limit: usize,
) -> Result<Vec<SavedMemory>, Failure> {
    tx.query(SAVED, values![user, limit], |row| saved_memory(row, 0))
        .await
}

/// The memory that a prompt shows.
pub(super) async fn prompt_memory(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    limit: usize,
) -> Result<PromptMemory, Failure> {
    let (mut memory, mut is_owned) = (PromptMemory::default(), false);
    let [second, first, observations] = &mut memory.recollections;
    let values = values![owner.session, owner.user, limit];
    tx.query(PROMPT_MEMORY, values, |row| {
        match row.get::<i64>(0)? {
            2 => second.push(recollection(row, 1, Generation::Second)?),
            1 => first.push(recollection(row, 1, Generation::First)?),
            0 => observations.push(recollection(row, 1, Generation::Observation)?),
            -1 => memory.saved.push(saved_memory(row, 1)?),
            _ => is_owned = true,
        }
        Ok(())
    })
    .await?;
    if !is_owned {
        return Err(not_found(owner));
    }
    for recollections in &mut memory.recollections {
        recollections.sort_unstable_by_key(|recollection| Reverse(recollection.id));
    }
    memory.saved.sort_unstable_by_key(|saved| Reverse(saved.id));
    Ok(memory)
}

/// A recollection, from this column on.
fn recollection(
    row: Row<'_>,
    column: usize,
    generation: Generation,
) -> Result<Recollection, Failure> {
    Ok(Recollection {
        id: generation.id(row.get(column)?),
        generation,
        turns: (row.get(column + 1)?, row.get(column + 2)?),
        text: row.get(column + 3)?,
        source: source(row, column + 4)?,
        created: row.get(column + 6)?,
        is_part: row.get::<Option<i64>>(column + 7)?.is_some(),
    })
}

/// A saved memory, from this column on.
fn saved_memory(row: Row<'_>, column: usize) -> Result<SavedMemory, Failure> {
    let tags: Cow<'_, str> = row.get(column + 7)?;
    Ok(SavedMemory {
        id: MemoryId::Saved(row.get(column)?),
        text: row.get(column + 3)?,
        source: source(row, column + 4)?,
        created: row.get(column + 6)?,
        tags: serde_json::from_str(&tags).unwrap_or_default(),
    })
}
