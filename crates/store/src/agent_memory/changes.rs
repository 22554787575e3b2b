//! Changes memory. Each function is one short transaction.
//!
//! It moves or locks the session's watermark first, so that of several replicas that end a step of the same revision one
//! does and the others change nothing.

use super::read::must_own;
use super::statements::{
    COUNT_FAILURE, COUNT_SAVED, DELETE_RECOLLECTIONS, DELETE_SAVED, FORGET_TURNS,
    INSERT_RECOLLECTION, INSERT_SAVED, INSERT_WATERMARK, LOCK_SAVED, LOCK_WATERMARK, MOVE_OBSERVED,
    MOVE_REVISION, PARTS_OF, RETAG_SAVED, SAME_NOTE, SET_PARTS, WHOLES_OF,
};
use super::{
    Commit, ForgetRequest, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection,
    NewSavedMemory, SaveOutcome,
};
use crate::engine::{Failure, Row, ToValue as _, Tx, Value, values};
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

/// Counts a failure of the model; returns how many there were in a row.
pub(super) async fn count_failure(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<u32, Failure> {
    insert_watermark(tx, owner).await?;
    let values = values![owner.session, owner.user];
    let failures = tx
        .query_opt(COUNT_FAILURE, values, |row| row.get(0))
        .await?;
    Ok(failures.unwrap_or_default())
}

/// Adds an observation, once.
pub(super) async fn add_note(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    note: &NewRecollection,
) -> Result<MemoryId, Failure> {
    insert_watermark(tx, owner).await?;
    tx.query_opt(LOCK_WATERMARK, values![owner.session, owner.user], |_| {
        Ok(())
    })
    .await?;
    let values = values![owner.session, owner.user, note.text, note.source.name];
    match tx.query_opt(SAME_NOTE, values, |row| row.get(0)).await? {
        Some(number) => Ok(MemoryId::Observation(number)),
        None => insert(tx, owner, Generation::Observation, note).await,
    }
}

/// Saves a memory for a user, who may have `most`.
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
    tx.query(LOCK_SAVED, values![user], |_| Ok(())).await?;
    let values = values![user, text, tags, is_trusted];
    if let Some(number) = tx.query_opt(RETAG_SAVED, values, |row| row.get(0)).await? {
        return Ok(SaveOutcome::Updated(MemoryId::Saved(number)));
    }
    let count = tx
        .query_opt(COUNT_SAVED, values![user], |row| row.get::<u64>(0))
        .await?;
    if count.unwrap_or_default() >= most {
        return Ok(SaveOutcome::Full);
    }
    let values = values![user, text, tags, source.name, is_trusted, memory.created];
    let number = tx.query_opt(INSERT_SAVED, values, |row| row.get(0)).await?;
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
            MemoryId::Reflection(number) => Some([number.to_value()]),
            MemoryId::Observation(number) if relation == Relation::Wholes => {
                Some([number.to_value()])
            }
            // An observation has no parts.
            MemoryId::Observation(_) | MemoryId::Saved(_) => None,
        });
        let from: Vec<_> = from.collect();
        let shared = values![owner.session, owner.user];
        let reached = tx
            .batch(statement, shared, &from, |row| {
                let number = row.get(0)?;
                Ok(match row.get::<i64>(1)? {
                    0 => MemoryId::Observation(number),
                    _ => MemoryId::Reflection(number),
                })
            })
            .await?;
        open = reached.into_iter().filter(|id| found.insert(*id)).collect();
    }
    Ok(())
}

/// Deletes rows; returns those that existed, sorted by id.
async fn delete(
    tx: &mut Tx<'_>,
    owner: &MemoryOwner,
    ids: &BTreeSet<MemoryId>,
) -> Result<Vec<MemoryId>, Failure> {
    let (mut observations, mut reflections, mut saved) = (Vec::new(), Vec::new(), Vec::new());
    for id in ids {
        match id {
            MemoryId::Observation(number) => observations.push([number.to_value()]),
            MemoryId::Reflection(number) => reflections.push([number.to_value()]),
            MemoryId::Saved(number) => saved.push([number.to_value()]),
        }
    }
    let MemoryOwner { session, user } = owner;
    let mut deleted = BTreeSet::new();
    let observation = |row: Row<'_>| Ok(MemoryId::Observation(row.get(0)?));
    let shared = values![session, user, 0_i64];
    deleted.extend(
        tx.batch(DELETE_RECOLLECTIONS, shared, &observations, observation)
            .await?,
    );
    let reflection = |row: Row<'_>| Ok(MemoryId::Reflection(row.get(0)?));
    let shared = values![session, user, 1_i64];
    deleted.extend(
        tx.batch(DELETE_RECOLLECTIONS, shared, &reflections, reflection)
            .await?,
    );
    let memory = |row: Row<'_>| Ok(MemoryId::Saved(row.get(0)?));
    deleted.extend(
        tx.batch(DELETE_SAVED, values![user], &saved, memory)
            .await?,
    );
    Ok(deleted.into_iter().collect())
}

async fn insert_watermark(tx: &mut Tx<'_>, owner: &MemoryOwner) -> Result<(), Failure> {
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
    let number = tx
        .query_opt(INSERT_RECOLLECTION, values, |row| row.get(0))
        .await?;
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
    let mut ids = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            MemoryId::Observation(id) | MemoryId::Reflection(id) => ids.push([id.to_value()]),
            MemoryId::Saved(_) => {
                return Err(Failure::other(format!("`{part}` cannot be condensed")));
            }
        }
    }
    let shared = values![owner.session, owner.user, whole];
    let changed = tx
        .batch(SET_PARTS, shared, &ids, |row| row.get::<i64>(0))
        .await?;
    let changed: BTreeSet<i64> = changed.into_iter().collect();
    let is_changed = |id: &[Value<'_>; 1]| matches!(id, [Value::Int(id)] if changed.contains(id));
    match parts.iter().zip(&ids).find(|(_, id)| !is_changed(id)) {
        None => Ok(()),
        Some((part, _)) => Err(Failure::other(format!("`{part}` was condensed already"))),
    }
}
