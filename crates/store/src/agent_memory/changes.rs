//! Changes memory. Each function is one short transaction.
//!
//! It moves or locks the session's watermark first, so that of several replicas that end a step of the same revision one
//! does and the others change nothing.

use super::rows::must_own;
use super::statements::*;
use super::{
    Commit, ForgetRequest, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection,
    NewSavedMemory, SaveOutcome,
};
use crate::engine::{Failure, Sql, ToValue as _, Tx, Value, values};
use lango_core::{Trust, UserId};
use std::collections::BTreeSet;

/// Ends a step: moves the watermark from the revision the step was started at, and stores the result.
pub(super) async fn commit(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    revision: u64,
    step: &MemoryStep,
) -> Result<Commit<Option<MemoryId>>, Failure> {
    insert_watermark(tx, owner).await?;
    match step {
        MemoryStep::Observe {
            observed,
            trust,
            observation,
        } => {
            let is_trusted = *trust == Trust::Trusted;
            let values = values![owner.session, owner.user, revision, observed, is_trusted];
            if tx.execute(MOVE_OBSERVED, values).await? == 0 {
                return Ok(Commit::Stale);
            }
            let id = match observation {
                Some(new) => Some(insert(tx, owner, Generation::Observation, new).await?),
                None => None,
            };
            Ok(Commit::Done(id))
        }
        MemoryStep::Condense {
            parts,
            generation,
            reflection,
        } => {
            if !move_revision(tx, owner, revision).await? {
                return Ok(Commit::Stale);
            }
            let whole = insert(tx, owner, *generation, reflection).await?;
            set_parts(tx, owner, parts, whole).await?;
            Ok(Commit::Done(Some(whole)))
        }
    }
}

pub(super) async fn add_note(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    note: &NewRecollection,
) -> Result<MemoryId, Failure> {
    insert_watermark(tx, owner).await?;
    let values = values![owner.session, owner.user];
    tx.exists(LOCK_WATERMARK, values).await?;
    let values = values![owner.session, owner.user, note.text, note.source.name];
    match tx.value(SAME_NOTE, values).await? {
        Some(number) => Ok(MemoryId::Observation(number)),
        None => insert(tx, owner, Generation::Observation, note).await,
    }
}

pub(super) async fn save(
    tx: &mut Tx<'_>,
    user: &UserId,
    memory: &NewSavedMemory,
    most: u64,
) -> Result<SaveOutcome, Failure> {
    let NewSavedMemory { text, source, .. } = memory;
    let tags = serde_json::to_string(&memory.tags);
    let tags = tags.map_err(|error| Failure::other(error.to_string()))?;
    let is_trusted = source.trust == Trust::Trusted;
    tx.exists(LOCK_SAVED, values![user]).await?;
    let values = values![user, text, tags, is_trusted];
    if let Some(number) = tx.value(RETAG_SAVED, values).await? {
        return Ok(SaveOutcome::Updated(MemoryId::Saved(number)));
    }
    let count: Option<u64> = tx.value(COUNT_SAVED, values![user]).await?;
    if count.unwrap_or_default() >= most {
        return Ok(SaveOutcome::Full);
    }
    let values = values![user, text, tags, source.name, is_trusted, memory.created];
    let number = tx.value(INSERT_SAVED, values).await?;
    let number = number.ok_or_else(|| Failure::other("a memory was not stored"))?;
    Ok(SaveOutcome::New(MemoryId::Saved(number)))
}

/// Deletes memories and every reflection that was made of them, and keeps turns from being observed.
pub(super) async fn forget(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    revision: u64,
    request: &ForgetRequest,
) -> Result<Commit<Vec<MemoryId>>, Failure> {
    insert_watermark(tx, owner).await?;
    if !move_revision(tx, owner, revision).await? {
        return Ok(Commit::Stale);
    }
    let mut ids: BTreeSet<MemoryId> = request.ids.iter().copied().collect();
    if request.with_parts {
        follow(tx, owner, &mut ids, Relation::Parts).await?;
    }
    follow(tx, owner, &mut ids, Relation::Wholes).await?;
    let deleted = delete(tx, owner, &ids).await?;
    let turns: Vec<_> = request.turns.iter().map(|turn| [turn.to_value()]).collect();
    let shared = values![owner.session, owner.user];
    tx.batch(FORGET_TURNS, shared, &turns, |_| Ok(())).await?;
    Ok(Commit::Done(deleted))
}

/// How one recollection leads to others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Parts,
    Wholes,
}

/// Adds all recollections that can be reached, a generation at a time. None leads back to itself, so this ends.
async fn follow(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    found: &mut BTreeSet<MemoryId>,
    relation: Relation,
) -> Result<(), Failure> {
    let statement = match relation {
        Relation::Parts => PARTS_OF,
        Relation::Wholes => WHOLES_OF,
    };
    let mut open: Vec<MemoryId> = found.iter().copied().collect();
    while !open.is_empty() {
        let from = open.iter().filter_map(|id| match id {
            // An observation has no parts.
            MemoryId::Observation(_) if relation == Relation::Parts => None,
            MemoryId::Saved(_) => None,
            id => Some([id.number().to_value()]),
        });
        let from: Vec<_> = from.collect();
        let shared = values![owner.session, owner.user];
        let reached = tx.batch(statement, shared, &from, |row| {
            let number = row.get(0)?;
            Ok(match row.get::<i64>(1)? {
                0 => MemoryId::Observation(number),
                _ => MemoryId::Reflection(number),
            })
        });
        let reached = reached.await?.into_iter();
        open = reached.filter(|id| found.insert(*id)).collect();
    }
    Ok(())
}

/// Deletes rows; returns those that existed, sorted by id.
async fn delete(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    ids: &BTreeSet<MemoryId>,
) -> Result<Vec<MemoryId>, Failure> {
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

pub(super) async fn insert_watermark(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<(), Failure> {
    must_own(tx, owner).await?;
    tx.execute(INSERT_WATERMARK, values![owner.session, owner.user])
        .await?;
    Ok(())
}

async fn move_revision(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    revision: u64,
) -> Result<bool, Failure> {
    let values = values![owner.session, owner.user, revision];
    Ok(tx.execute(MOVE_REVISION, values).await? > 0)
}

async fn insert(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    generation: Generation,
    new: &NewRecollection,
) -> Result<MemoryId, Failure> {
    let (number, is_trusted) = (generation.number(), new.source.trust == Trust::Trusted);
    let values = values![
        owner.session,
        owner.user,
        number,
        new.turns.0,
        new.turns.1,
        new.text,
        new.source.name,
        is_trusted,
        new.created,
    ];
    let number = tx.value(INSERT_RECOLLECTION, values).await?;
    let number = number.ok_or_else(|| Failure::other("a recollection was not stored"))?;
    Ok(generation.id(number))
}

/// Marks recollections as parts of a reflection. All existed uncondensed at this revision; if one does not, nothing is
/// stored.
async fn set_parts(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    parts: &[MemoryId],
    whole: MemoryId,
) -> Result<(), Failure> {
    let MemoryId::Reflection(whole) = whole else {
        return Err(Failure::other(format!("`{whole}` is not a reflection")));
    };
    let is_saved = |part: &&MemoryId| matches!(part, MemoryId::Saved(_));
    if let Some(part) = parts.iter().find(is_saved) {
        return Err(Failure::other(format!("`{part}` cannot be condensed")));
    }
    let ids: Vec<_> = parts.iter().map(|id| [id.number().to_value()]).collect();
    let shared = values![owner.session, owner.user, whole];
    let changed = tx.batch(SET_PARTS, shared, &ids, |row| row.get(0)).await?;
    let changed: BTreeSet<u64> = changed.into_iter().collect();
    match parts.iter().find(|part| !changed.contains(part.number())) {
        None => Ok(()),
        Some(part) => Err(Failure::other(format!("`{part}` was condensed already"))),
    }
}
