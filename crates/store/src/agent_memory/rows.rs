//! Reads the memory of sessions and users.
//!
//! A step reads a [`Watermark`], asks a model, which may take long, and commits for the revision that it read. If anything was
//! observed, condensed or deleted in between, the commit is `CommitOutcome::Stale` and changes nothing. So no turn is observed
//! twice or skipped, and nothing that was deleted comes back.

use super::statements::*;
use super::{
    Generation, MemoryId, MemoryOrder, MemoryOwner, MemoryRecord, PromptMemory, SavedMemory,
    TurnRange, UnobservedTurn, Watermark,
};
use crate::StoreFuture;
use crate::backend::{FromRow as _, Result, Row, Tx, records, values, work};
use crate::decode::{exchange_in, not_found};
use crate::store::Store;
use lango_core::{AgentName, Provenance, SessionId, StoreError, Text, TurnId, UserId};
use std::borrow::Cow;
use std::cmp::Reverse;

records! {
    Watermark { observed, revision, trust, failures }
}

/// Access to memory. If the session does not belong to the owner's user, a method fails with
/// [`NotFound`](lango_core::StoreError::NotFound) or returns nothing.
impl Store {
    /// Returns how far a session has been observed.
    pub async fn watermark(&self, owner: &MemoryOwner) -> Result<Watermark, StoreError> {
        let values = values![owner.session, owner.user];
        let found = self.backend.query_opt(WATERMARK, values, |row| row.read());
        found.await?.ok_or_else(|| not_found(&owner.session))
    }

    /// Returns turns in order, up to the first one that may still be running.
    pub async fn unobserved_turns(
        &self,
        owner: &MemoryOwner,
        range: TurnRange,
    ) -> Result<Vec<UnobservedTurn>, StoreError> {
        let values = values![owner.session, owner.user, range.from, range.limit];
        let (session, root_agent) = (owner.session.clone(), self.root_agent.clone());
        let read = move |row: Row<'_>| unobserved(row, &session, range.text_bytes, &root_agent);
        let turns = self.backend.query(UNOBSERVED, values, read).await?;
        Ok(turns.into_iter().flatten().collect())
    }

    /// Returns the ordinal of a turn if it is the session's last.
    pub fn current_turn(&self, owner: &MemoryOwner, turn: &TurnId) -> StoreFuture<'_, Option<u64>> {
        let args = (owner.clone(), turn.clone());
        work!(self.backend.snapshot(args), |tx, owner, turn| {
            must_own(tx, owner).await?;
            let values = values![owner.session];
            let last = tx.query_opt(LAST_TURN, values, |row| {
                let is_current = turn == row.get::<Cow<'_, str>>(1)?.as_ref();
                is_current.then(|| row.get(0)).transpose()
            });
            Ok(last.await?.flatten())
        })
    }

    /// Returns the memory that a prompt includes, at most `limit` of each kind.
    pub fn prompt_memory(
        &self,
        owner: &MemoryOwner,
        limit: usize,
    ) -> StoreFuture<'_, PromptMemory> {
        let args = (owner.clone(), limit);
        work!(self.backend.lookup(args), |tx, owner, limit| {
            let (mut memory, mut is_owned) = (PromptMemory::default(), false);
            let values = values![owner.session, owner.user, limit];
            tx.query(PROMPT_MEMORY, values, |row| {
                match row.get::<i64>(0)? {
                    -2 => is_owned = true,
                    -1 => memory.saved.push(saved_memory(row)?),
                    _ => {
                        let recollection = recollection(row)?;
                        let place = 2 - recollection.generation as usize;
                        memory.recollections[place].push(recollection);
                    }
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
        })
    }

    pub fn recollections(
        &self,
        owner: &MemoryOwner,
        generation: Generation,
        order: MemoryOrder,
        limit: usize,
    ) -> StoreFuture<'_, Vec<MemoryRecord>> {
        let statement = match order {
            MemoryOrder::Newest => NEWEST,
            MemoryOrder::OldestUncondensed => OLDEST_UNCONDENSED,
        };
        let values = values![owner.session, owner.user, generation, limit];
        self.backend.query(statement, values, recollection)
    }

    /// Returns a user's saved memories, newest first.
    pub fn saved_memories(&self, user: &UserId, limit: usize) -> StoreFuture<'_, Vec<SavedMemory>> {
        let values = values![user, limit];
        self.backend.query(SAVED, values, saved_memory)
    }
}

/// Fails unless the session belongs to the user.
pub(super) async fn must_own(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<()> {
    if tx.exists(OWNS, values![owner.session, owner.user]).await? {
        return Ok(());
    }
    Err(not_found(&owner.session).into())
}

/// Reads a turn. Returns `None` if it is the last one and unfinished. An earlier turn that never finished has no exchange.
fn unobserved(
    row: Row<'_>,
    session: &SessionId,
    text_bytes: usize,
    root_agent: &AgentName,
) -> Result<Option<UnobservedTurn>> {
    let (is_forgotten, is_last): (bool, bool) = (row.get(2)?, row.get(3)?);
    let is_finished: bool = row.get(6)?;
    if is_last && !is_finished {
        return Ok(None);
    }
    let exchange = if is_finished && !is_forgotten {
        let mut exchange = exchange_in(row, 4, session, root_agent)?;
        exchange.question = cut(exchange.question, text_bytes);
        if let Some(answer) = &mut exchange.answer {
            answer.text = cut(std::mem::take(&mut answer.text), text_bytes);
        }
        Some(exchange)
    } else {
        None
    };
    Ok(Some(UnobservedTurn {
        ordinal: row.get(0)?,
        started: row.get(1)?,
        exchange,
    }))
}

/// Truncates a text to this number of bytes and adds a note.
fn cut(text: Text, bytes: usize) -> Text {
    if text.len() <= bytes {
        return text;
    }
    let start = &text[..text.floor_char_boundary(bytes)];
    format!("{start} [cut: {} more bytes]", text.len() - start.len()).into()
}

pub(super) fn recollection(row: Row<'_>) -> Result<MemoryRecord> {
    let generation: Generation = row.get(0)?;
    Ok(MemoryRecord {
        id: generation.id(row.get(1)?),
        generation,
        turns: (row.get(2)?, row.get(3)?),
        text: row.get(4)?,
        source: Provenance::read(row, &mut 5)?,
        created: row.get(7)?,
        is_part: row.get::<Option<i64>>(8)?.is_some(),
    })
}

fn saved_memory(row: Row<'_>) -> Result<SavedMemory> {
    Ok(SavedMemory {
        id: MemoryId::Saved(row.get(1)?),
        text: row.get(4)?,
        source: Provenance::read(row, &mut 5)?,
        created: row.get(7)?,
        tags: row.get(8)?,
    })
}
