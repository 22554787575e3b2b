//! Writes memory. Each function is one short transaction.
//!
//! The transaction updates or locks the session's watermark first. So if several replicas commit a step for the same
//! revision, one succeeds and the others change nothing.

use super::rows::must_own;
use super::statements::*;
use super::{
    CommitOutcome, ForgetRequest, Generation, MemoryId, MemoryOwner, MemoryStep, NewMemoryRecord,
    NewSavedMemory, SaveOutcome,
};
use crate::StoreFuture;
use crate::backend::{BackendError, Result, Sql, ToValue as _, Tx, Value, values, work};
use crate::store::Store;
use lango_core::UserId;
use std::collections::BTreeSet;

impl Store {
    /// Commits a step that was started at this revision: stores its result and the new watermark atomically.
    pub fn commit_step(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        step: MemoryStep,
    ) -> StoreFuture<'_, CommitOutcome<Option<MemoryId>>> {
        let args = (owner.clone(), revision, step);
        work!(self.backend.write(args), |tx, owner, revision, step| {
            insert_watermark(tx, owner).await?;
            match step {
                MemoryStep::Observe {
                    observed,
                    trust,
                    observation,
                } => {
                    let values = values![owner.session, owner.user, revision, observed, trust];
                    if tx.execute(MOVE_OBSERVED, values).await? == 0 {
                        return Ok(CommitOutcome::Stale);
                    }
                    let id = match observation {
                        Some(new) => Some(insert(tx, owner, Generation::Observation, new).await?),
                        None => None,
                    };
                    Ok(CommitOutcome::Done(id))
                }
                MemoryStep::Condense {
                    parts,
                    generation,
                    reflection,
                } => {
                    if !move_revision(tx, owner, *revision).await? {
                        return Ok(CommitOutcome::Stale);
                    }
                    let whole = insert(tx, owner, *generation, reflection).await?;
                    set_parts(tx, owner, parts, whole).await?;
                    Ok(CommitOutcome::Done(Some(whole)))
                }
            }
        })
    }

    /// Counts a failure of the model. Returns the number of consecutive failures.
    pub fn count_failure(&self, owner: &MemoryOwner) -> StoreFuture<'_, u32> {
        work!(self.backend.write(owner.clone()), |tx, owner| {
            insert_watermark(tx, owner).await?;
            let values = values![owner.session, owner.user];
            let failures = tx.value(COUNT_FAILURE, values).await?;
            Ok(failures.unwrap_or_default())
        })
    }

    /// Adds an observation that was made without a model. The same text from the same source is added only once.
    pub fn add_note(
        &self,
        owner: &MemoryOwner,
        note: NewMemoryRecord,
    ) -> StoreFuture<'_, MemoryId> {
        let args = (owner.clone(), note);
        work!(self.backend.write(args), |tx, owner, note| {
            insert_watermark(tx, owner).await?;
            let values = values![owner.session, owner.user];
            tx.exists(LOCK_WATERMARK, values).await?;
            let values = values![owner.session, owner.user, note.text, note.source.name];
            match tx.value(SAME_NOTE, values).await? {
                Some(number) => Ok(MemoryId::Observation(number)),
                None => insert(tx, owner, Generation::Observation, note).await,
            }
        })
    }

    /// Saves a memory for a user, who may have at most `limit` saved memories.
    pub fn save_memory(
        &self,
        user: &UserId,
        memory: NewSavedMemory,
        limit: u64,
    ) -> StoreFuture<'_, SaveOutcome> {
        let args = (user.clone(), memory, limit);
        work!(self.backend.write(args), |tx, user, memory, limit| {
            let NewSavedMemory { text, source, .. } = memory;
            let tags = serde_json::to_string(&memory.tags);
            let tags = tags.map_err(|error| BackendError::other(error.to_string()))?;
            tx.exists(LOCK_SAVED, values![user]).await?;
            let values = values![user, text, tags, source.trust];
            if let Some(number) = tx.value(RETAG_SAVED, values).await? {
                return Ok(SaveOutcome::Updated(MemoryId::Saved(number)));
            }
            let count: Option<u64> = tx.value(COUNT_SAVED, values![user]).await?;
            if count.unwrap_or_default() >= *limit {
                return Ok(SaveOutcome::Full);
            }
            let values = values![user, text, tags, source.name, source.trust, memory.created];
            let number = tx.value(INSERT_SAVED, values).await?;
            let number = number.ok_or_else(|| BackendError::other("a memory was not stored"))?;
            Ok(SaveOutcome::New(MemoryId::Saved(number)))
        })
    }

    /// Returns the memories that [`forget_memories`](Self::forget_memories) would delete for this request, sorted, and the
    /// requested ids that do not exist.
    pub fn memories_to_forget(
        &self,
        owner: &MemoryOwner,
        request: ForgetRequest,
    ) -> StoreFuture<'_, Vec<MemoryId>> {
        let args = (owner.clone(), request);
        work!(self.backend.snapshot(args), |tx, owner, request| {
            let ids = with_dependents(tx, owner, request).await?;
            Ok(ids.into_iter().collect())
        })
    }

    /// Deletes the memories that were selected at this revision. Returns the ids of all deleted memories.
    pub fn forget_memories(
        &self,
        owner: &MemoryOwner,
        revision: u64,
        request: ForgetRequest,
    ) -> StoreFuture<'_, CommitOutcome<Vec<MemoryId>>> {
        let args = (owner.clone(), revision, request);
        work!(self.backend.write(args), |tx, owner, revision, request| {
            insert_watermark(tx, owner).await?;
            if !move_revision(tx, owner, *revision).await? {
                return Ok(CommitOutcome::Stale);
            }
            let ids = with_dependents(tx, owner, request).await?;
            let deleted = delete(tx, owner, &ids).await?;
            let turns: Vec<_> = request.turns.iter().map(|turn| [turn.to_value()]).collect();
            let shared = values![owner.session, owner.user];
            tx.batch(FORGET_TURNS, shared, &turns, |_| Ok(())).await?;
            Ok(CommitOutcome::Done(deleted))
        })
    }
}

/// Returns the memories of a request, with the recollections that are deleted with them.
async fn with_dependents(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    request: &ForgetRequest,
) -> Result<BTreeSet<MemoryId>> {
    let mut ids: BTreeSet<MemoryId> = request.ids.iter().copied().collect();
    if request.with_parts {
        // An observation has no parts.
        let is_reflection = |id: &&MemoryId| matches!(id, MemoryId::Reflection(_));
        follow(tx, owner, &mut ids, PARTS_OF, is_reflection).await?;
    }
    follow(tx, owner, &mut ids, WHOLES_OF, |id| !is_saved(id)).await?;
    Ok(ids)
}

/// Adds to `found` all recollections that a statement reaches from those already in it, one generation at a time.
/// Continues only from ids that `leads_on` accepts. This terminates, because there are no cycles.
async fn follow(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    found: &mut BTreeSet<MemoryId>,
    statement: Sql,
    leads_on: fn(&&MemoryId) -> bool,
) -> Result<()> {
    let mut open: Vec<MemoryId> = found.iter().copied().collect();
    while !open.is_empty() {
        let from = open.iter().filter(leads_on);
        let from: Vec<_> = from.map(|id| [id.number().to_value()]).collect();
        let shared = values![owner.session, owner.user];
        let reached = tx.batch(statement, shared, &from, |row| {
            Ok(row.get::<Generation>(1)?.id(row.get(0)?))
        });
        let reached = reached.await?.into_iter();
        open = reached.filter(|id| found.insert(*id)).collect();
    }
    Ok(())
}

/// Deletes memories. Returns the ids of those that existed, sorted.
async fn delete(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    ids: &BTreeSet<MemoryId>,
) -> Result<Vec<MemoryId>> {
    type Kind = fn(u64) -> MemoryId;
    let MemoryOwner { session, user } = owner;
    let kinds: [(Kind, Sql, &[Value<'_>]); 3] = [
        (
            MemoryId::Observation,
            DELETE_RECOLLECTIONS,
            values![session, user, 0_i64],
        ),
        (
            MemoryId::Reflection,
            DELETE_RECOLLECTIONS,
            values![session, user, 1_i64],
        ),
        (MemoryId::Saved, DELETE_SAVED, values![user]),
    ];
    let mut deleted = BTreeSet::new();
    for (kind, statement, shared) in kinds {
        let chosen = ids.iter().filter(|id| kind(*id.number()) == **id);
        let chosen: Vec<_> = chosen.map(|id| [id.number().to_value()]).collect();
        let rows = tx.batch(statement, shared, &chosen, |row| row.get(0));
        deleted.extend(rows.await?.into_iter().map(kind));
    }
    Ok(deleted.into_iter().collect())
}

pub(super) async fn insert_watermark(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<()> {
    must_own(tx, owner).await?;
    tx.execute(INSERT_WATERMARK, values![owner.session, owner.user])
        .await?;
    Ok(())
}

async fn move_revision(tx: &mut Tx<'_>, owner: &MemoryOwner, revision: u64) -> Result<bool> {
    let values = values![owner.session, owner.user, revision];
    Ok(tx.execute(MOVE_REVISION, values).await? > 0)
}

async fn insert(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    generation: Generation,
    new: &NewMemoryRecord,
) -> Result<MemoryId> {
    let MemoryOwner { session, user } = owner;
    let ((first, last), text, created) = (new.turns, &new.text, new.created);
    let (source, trust) = (&new.source.name, new.source.trust);
    let values = values![
        session, user, generation, first, last, text, source, trust, created,
    ];
    let number = tx.value(INSERT_RECOLLECTION, values).await?;
    let number = number.ok_or_else(|| BackendError::other("a recollection was not stored"))?;
    Ok(generation.id(number))
}

/// Marks recollections as parts of a reflection. Fails if one of them does not exist or was already condensed, which cannot happen
/// at this revision.
async fn set_parts(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    parts: &[MemoryId],
    whole: MemoryId,
) -> Result<()> {
    let MemoryId::Reflection(whole) = whole else {
        return Err(BackendError::other(format!(
            "`{whole}` is not a reflection"
        )));
    };
    if let Some(part) = parts.iter().find(is_saved) {
        return Err(BackendError::other(format!("`{part}` cannot be condensed")));
    }
    let ids: Vec<_> = parts.iter().map(|id| [id.number().to_value()]).collect();
    let shared = values![owner.session, owner.user, whole];
    let changed = tx.batch(SET_PARTS, shared, &ids, |row| row.get(0)).await?;
    let changed: BTreeSet<u64> = changed.into_iter().collect();
    match parts.iter().find(|part| !changed.contains(part.number())) {
        None => Ok(()),
        Some(part) => Err(BackendError::other(format!(
            "`{part}` was already condensed"
        ))),
    }
}

fn is_saved(id: &&MemoryId) -> bool {
    matches!(id, MemoryId::Saved(_))
}
