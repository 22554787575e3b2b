//! The memory of sessions and users: what a step reads, and the one short transaction that ends it.
//!
//! A step reads a [`Watermark`], asks a model for as long as that takes, and commits for the revision it read. If anything
//! was observed, condensed or deleted meanwhile, the commit is [`Commit::Stale`] and changes nothing. So no turn is
//! observed twice, none is left out, and nothing that was deleted comes back.

use super::statements::*;
use super::{
    Commit, ForgetRequest, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection,
    NewSavedMemory, PromptMemory, Recollection, RecollectionOrder, SaveOutcome, SavedMemory,
    TurnRange, UnobservedTurn, Watermark, changes,
};
use crate::Answer;
use crate::engine::{Failure, Row, Tx, values};
use crate::store::Store;
use crate::stored::{exchange_in, not_found, source, trust};
use lango_core::{AgentName, Exchange, Text, TurnId, UserId};
use std::borrow::Cow;
use std::cmp::Reverse;

/// The memory in a database. Every method with an owner wants a session that is the user's, and fails with
/// [`NotFound`](lango_core::StoreError::NotFound) or returns nothing if it is not.
pub trait MemoryRows: Send + Sync {
    /// Returns how far a session is observed.
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark>;

    /// Returns turns in their order, up to the first that may still go on.
    fn turns(&self, owner: &MemoryOwner, range: TurnRange) -> Answer<'_, Vec<UnobservedTurn>>;

    /// Returns the ordinal of a turn that is running.
    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>>;

    /// Returns the memory that a prompt shows, at most so many of each kind.
    fn prompt_memory(&self, owner: &MemoryOwner, limit: usize) -> Answer<'_, PromptMemory>;

    /// Returns recollections of one generation.
    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        order: RecollectionOrder,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>>;

    /// Returns a user's saved memories, the newest first.
    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>>;

    /// Ends a step that was started at this revision: stores its result and the watermark, together or not at all.
    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>>;

    /// Counts a failure of the model; returns how many there were in a row.
    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32>;

    /// Adds an observation that needed no model. The same text of the same source is added once.
    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId>;

    /// Saves a memory for a user, who may have `most`.
    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, SaveOutcome>;

    /// Deletes what was chosen at this revision. Returns the ids of all that was deleted.
    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        request: ForgetRequest,
    ) -> Answer<'_, Commit<Vec<MemoryId>>>;
}

impl MemoryRows for Store {
    fn watermark(&self, owner: &MemoryOwner) -> Answer<'_, Watermark> {
        self.engine.read(owner.clone(), |tx, owner| {
            Box::pin(async move {
                let values = values![owner.session, owner.user];
                let found = tx.query_opt(WATERMARK, values, watermark).await?;
                found.ok_or_else(|| not_found(&owner.session).into())
            })
        })
    }

    fn turns(&self, owner: &MemoryOwner, range: TurnRange) -> Answer<'_, Vec<UnobservedTurn>> {
        let given = (owner.clone(), range, self.root_agent.clone());
        self.engine.read(given, |tx, (owner, range, root_agent)| {
            Box::pin(async move {
                let values = values![owner.session, owner.user, range.from, range.limit];
                let turns = tx.query(UNOBSERVED, values, |row| {
                    unobserved(row, owner, range, root_agent)
                });
                Ok(turns.await?.into_iter().flatten().collect())
            })
        })
    }

    fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> Answer<'_, Option<u64>> {
        let given = (owner.clone(), turn.clone());
        self.engine.snapshot(given, |tx, (owner, turn)| {
            Box::pin(async move {
                must_own(tx, owner).await?;
                let values = values![owner.session];
                let last = tx.query_opt(LAST_TURN, values, |row| {
                    let is_current = turn == row.get::<Cow<'_, str>>(1)?.as_ref();
                    is_current.then(|| row.get(0)).transpose()
                });
                Ok(last.await?.flatten())
            })
        })
    }

    fn prompt_memory(&self, owner: &MemoryOwner, limit: usize) -> Answer<'_, PromptMemory> {
        let given = (owner.clone(), limit);
        self.engine.read(given, |tx, (owner, limit)| {
            Box::pin(prompt_memory(tx, owner, *limit))
        })
    }

    fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        order: RecollectionOrder,
        limit: usize,
    ) -> Answer<'_, Vec<Recollection>> {
        let given = (owner.clone(), generation, order, limit);
        self.engine
            .read(given, |tx, (owner, generation, order, limit)| {
                Box::pin(async move {
                    let statement = match order {
                        RecollectionOrder::Newest => NEWEST,
                        RecollectionOrder::OldestUncondensed => OLDEST_UNCONDENSED,
                    };
                    let number = generation.number();
                    let values = values![owner.session, owner.user, number, limit];
                    let read = tx.query(statement, values, |row| recollection(row, 0, *generation));
                    read.await
                })
            })
    }

    fn saved(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SavedMemory>> {
        let given = (user.clone(), limit);
        self.engine.read(given, |tx, (user, limit)| {
            Box::pin(async move {
                let values = values![user, limit];
                tx.query(SAVED, values, |row| saved_memory(row, 0)).await
            })
        })
    }

    fn commit(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> Answer<'_, Commit<Option<MemoryId>>> {
        let given = (owner.clone(), revision, step);
        self.engine.write(given, |tx, (owner, revision, step)| {
            Box::pin(changes::commit(tx, owner, *revision, step))
        })
    }

    fn count_failure(&self, owner: &MemoryOwner) -> Answer<'_, u32> {
        self.engine.write(owner.clone(), |tx, owner| {
            Box::pin(async move {
                changes::insert_watermark(tx, owner).await?;
                let values = values![owner.session, owner.user];
                let failures = tx.value(COUNT_FAILURE, values).await?;
                Ok(failures.unwrap_or_default())
            })
        })
    }

    fn add_note(&self, owner: &MemoryOwner, note: NewRecollection) -> Answer<'_, MemoryId> {
        self.engine
            .write((owner.clone(), note), |tx, (owner, note)| {
                Box::pin(changes::add_note(tx, owner, note))
            })
    }

    fn save(&self, user: &UserId, memory: NewSavedMemory, most: u64) -> Answer<'_, SaveOutcome> {
        let given = (user.clone(), memory, most);
        self.engine.write(given, |tx, (user, memory, most)| {
            Box::pin(changes::save(tx, user, memory, *most))
        })
    }

    fn forget(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        request: ForgetRequest,
    ) -> Answer<'_, Commit<Vec<MemoryId>>> {
        let given = (owner.clone(), revision, request);
        self.engine.write(given, |tx, (owner, revision, request)| {
            Box::pin(changes::forget(tx, owner, *revision, request))
        })
    }
}

fn watermark(row: Row<'_>) -> Result<Watermark, Failure> {
    Ok(Watermark {
        observed: row.get(0)?,
        revision: row.get(1)?,
        trust: trust(row, 2)?,
        failures: row.get(3)?,
    })
}

/// Fails unless the session is the user's.
pub(super) async fn must_own(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<(), Failure> {
    if tx.exists(OWNS, values![owner.session, owner.user]).await? {
        return Ok(());
    }
    Err(not_found(&owner.session).into())
}

/// Reads a turn that has ended, or another one than the last: an earlier turn that never ended has no answer.
fn unobserved(
    row: Row<'_>,
    owner: &MemoryOwner,
    range: &TurnRange,
    root_agent: &AgentName,
) -> Result<Option<UnobservedTurn>, Failure> {
    let (is_forgotten, is_last): (bool, bool) = (row.get(2)?, row.get(3)?);
    let is_finished: bool = row.get(6)?;
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

async fn prompt_memory(
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
        return Err(not_found(&owner.session).into());
    }
    for recollections in &mut memory.recollections {
        recollections.sort_unstable_by_key(|recollection| Reverse(recollection.id));
    }
    memory.saved.sort_unstable_by_key(|saved| Reverse(saved.id));
    Ok(memory)
}

/// Reads a recollection from this column on.
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

/// Reads a saved memory from this column on.
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
