//! What is changed in memory. Each function is one short transaction.

use super::super::asking::{execute, number, numbers, row, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::bound;
use super::super::text::Words;
use super::read::must_own;
use super::statements::{
    BEGIN_MEMORY, COUNT_FAILURE, COUNT_SAVED, DELETE_RECOLLECTIONS, DELETE_SAVED, FORGET_TURNS,
    HOLD_WATERMARK, INSERT_RECOLLECTION, INSERT_SAVED, LOCK_SAVED, MAKE_PARTS, MOVE_OBSERVED,
    MOVE_REVISION, PARTS_OF, RETAG_SAVED, SAME_NOTE, WHOLES_OF,
};
use crate::recollection::{
    Commit, Forget, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection, NewSavedMemory,
    Saved,
};
use deadpool_postgres::Transaction;
use lango_core::{Trust, UserId};
use std::collections::BTreeSet;

/// Ends a step: the watermark moves from the revision the step was begun at, and its result is stored.
pub(super) async fn commit(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    revision: u64,
    step: &MemoryStep,
) -> Result<Commit<Option<MemoryId>>, Failure> {
    begin(transaction, owner).await?;
    match step {
        MemoryStep::Observe {
            observed,
            trust,
            observation,
        } => {
            let values: Values<'_> = &[
                &Words(owner.session.as_str()),
                &Words(owner.user.as_str()),
                &bound(revision),
                &bound(*observed),
                &i64::from(*trust == Trust::Trusted),
            ];
            if execute(transaction, MOVE_OBSERVED, values).await? == 0 {
                return Ok(Commit::Stale);
            }
            let id = match observation {
                Some(new) => Some(insert(transaction, owner, Generation::Observation, new).await?),
                None => None,
            };
            Ok(Commit::Done(id))
        }
        MemoryStep::Condense {
            parts,
            generation,
            reflection,
        } => {
            if !move_revision(transaction, owner, revision).await? {
                return Ok(Commit::Stale);
            }
            let whole = insert(transaction, owner, *generation, reflection).await?;
            make_parts(transaction, owner, parts, whole).await?;
            Ok(Commit::Done(Some(whole)))
        }
    }
}

/// Counts one more failure of the model; gives how many there were in a row.
pub(super) async fn count_failure(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
) -> Result<u32, Failure> {
    begin(transaction, owner).await?;
    let values: Values<'_> = &[&Words(owner.session.as_str()), &Words(owner.user.as_str())];
    let failures = number(transaction, COUNT_FAILURE, values).await?;
    Ok(u32::try_from(failures.unwrap_or_default()).unwrap_or(u32::MAX))
}

/// Adds an observation, once.
pub(super) async fn add_note(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    note: &NewRecollection,
) -> Result<MemoryId, Failure> {
    begin(transaction, owner).await?;
    let (session, user) = (Words(owner.session.as_str()), Words(owner.user.as_str()));
    row(transaction, HOLD_WATERMARK, &[&session, &user]).await?;
    let values: Values<'_> = &[
        &session,
        &user,
        &Words(&note.text),
        &Words(&note.source.name),
    ];
    match number(transaction, SAME_NOTE, values).await? {
        Some(number) => Ok(MemoryId::Observation(number.unsigned_abs())),
        None => insert(transaction, owner, Generation::Observation, note).await,
    }
}

/// Saves something for a user, who may have `most`.
pub(super) async fn save(
    transaction: &Transaction<'_>,
    user: &UserId,
    memory: &NewSavedMemory,
    most: u64,
) -> Result<Saved, Failure> {
    let tags =
        serde_json::to_string(&memory.tags).map_err(|error| Failure::other(error.to_string()))?;
    let (user, text, tags) = (Words(user.as_str()), Words(&memory.text), Words(&tags));
    rows(transaction, LOCK_SAVED, &[&user]).await?;
    let trusted = i64::from(memory.source.trust == Trust::Trusted);
    let same = number(transaction, RETAG_SAVED, &[&user, &text, &tags, &trusted]).await?;
    if let Some(same) = same {
        return Ok(Saved::Again(MemoryId::Saved(same.unsigned_abs())));
    }
    let count = number(transaction, COUNT_SAVED, &[&user]).await?;
    if count.unwrap_or_default() >= bound(most) {
        return Ok(Saved::Full);
    }
    let values: Values<'_> = &[
        &user,
        &text,
        &tags,
        &Words(&memory.source.name),
        &trusted,
        &bound(memory.created.0),
    ];
    let id = number(transaction, INSERT_SAVED, values).await?;
    let id = id.ok_or_else(|| Failure::other("a new memory has no number"))?;
    Ok(Saved::New(MemoryId::Saved(id.unsigned_abs())))
}

/// Deletes what is to be forgotten and every reflection that was made of it, and keeps turns from being observed.
pub(super) async fn forget(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    revision: u64,
    forget: &Forget,
) -> Result<Commit<Vec<MemoryId>>, Failure> {
    begin(transaction, owner).await?;
    if !move_revision(transaction, owner, revision).await? {
        return Ok(Commit::Stale);
    }
    let mut doomed: BTreeSet<MemoryId> = forget.ids.iter().copied().collect();
    if forget.with_parts {
        follow(transaction, owner, &mut doomed, PARTS_OF).await?;
    }
    follow(transaction, owner, &mut doomed, WHOLES_OF).await?;
    let gone = delete(transaction, owner, &doomed).await?;
    let turns: Vec<i64> = forget.turns.iter().map(|turn| bound(*turn)).collect();
    let values: Values<'_> = &[
        &Words(owner.session.as_str()),
        &Words(owner.user.as_str()),
        &turns,
    ];
    execute(transaction, FORGET_TURNS, values).await?;
    Ok(Commit::Done(gone))
}

/// Adds whatever can be reached, a generation at a time. None leads back to itself, so this ends.
async fn follow(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    found: &mut BTreeSet<MemoryId>,
    next: &str,
) -> Result<(), Failure> {
    let (session, user) = (Words(owner.session.as_str()), Words(owner.user.as_str()));
    let mut open: Vec<MemoryId> = found.iter().copied().collect();
    while !open.is_empty() {
        let from: Vec<i64> = open
            .iter()
            .filter_map(|id| match id {
                // Nothing goes into an observation.
                MemoryId::Observation(_) if next == PARTS_OF => None,
                MemoryId::Observation(number) | MemoryId::Reflection(number) => {
                    Some(bound(*number))
                }
                MemoryId::Saved(_) => None,
            })
            .collect();
        open.clear();
        for row in &rows(transaction, next, &[&session, &user, &from]).await? {
            let number = row.try_get::<_, i64>(0)?.unsigned_abs();
            let id = match row.try_get::<_, i64>(1)? {
                0 => MemoryId::Observation(number),
                _ => MemoryId::Reflection(number),
            };
            if found.insert(id) {
                open.push(id);
            }
        }
    }
    Ok(())
}

/// Deletes rows; gives those that were there, in the order of their names.
async fn delete(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    doomed: &BTreeSet<MemoryId>,
) -> Result<Vec<MemoryId>, Failure> {
    let (mut observations, mut reflections, mut saved) = (Vec::new(), Vec::new(), Vec::new());
    for id in doomed {
        match id {
            MemoryId::Observation(number) => observations.push(bound(*number)),
            MemoryId::Reflection(number) => reflections.push(bound(*number)),
            MemoryId::Saved(number) => saved.push(bound(*number)),
        }
    }
    let (session, user) = (Words(owner.session.as_str()), Words(owner.user.as_str()));
    let mut gone = BTreeSet::new();
    for (kind, ids) in [(0_i64, &observations), (1, &reflections)] {
        let values: Values<'_> = &[&session, &user, ids, &kind];
        for id in numbers(transaction, DELETE_RECOLLECTIONS, values).await? {
            gone.insert(match kind {
                0 => MemoryId::Observation(id.unsigned_abs()),
                _ => MemoryId::Reflection(id.unsigned_abs()),
            });
        }
    }
    let saved = numbers(transaction, DELETE_SAVED, &[&user, &saved]).await?;
    gone.extend(
        saved
            .into_iter()
            .map(|id| MemoryId::Saved(id.unsigned_abs())),
    );
    Ok(gone.into_iter().collect())
}

async fn begin(transaction: &Transaction<'_>, owner: &MemoryOwner) -> Result<(), Failure> {
    must_own(transaction, owner).await?;
    let values: Values<'_> = &[&Words(owner.session.as_str()), &Words(owner.user.as_str())];
    execute(transaction, BEGIN_MEMORY, values).await?;
    Ok(())
}

async fn move_revision(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    revision: u64,
) -> Result<bool, Failure> {
    let values: Values<'_> = &[
        &Words(owner.session.as_str()),
        &Words(owner.user.as_str()),
        &bound(revision),
    ];
    Ok(execute(transaction, MOVE_REVISION, values).await? > 0)
}

async fn insert(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    generation: Generation,
    new: &NewRecollection,
) -> Result<MemoryId, Failure> {
    let values: Values<'_> = &[
        &Words(owner.session.as_str()),
        &Words(owner.user.as_str()),
        &generation.number(),
        &bound(new.turns.0),
        &bound(new.turns.1),
        &Words(&new.text),
        &Words(&new.source.name),
        &i64::from(new.source.trust == Trust::Trusted),
        &bound(new.created.0),
    ];
    let id = number(transaction, INSERT_RECOLLECTION, values).await?;
    let id = id.ok_or_else(|| Failure::other("a new recollection has no number"))?;
    Ok(generation.name(id.unsigned_abs()))
}

/// Rows go into the whole. That all are there and loose was true at this revision; if not, nothing is stored.
async fn make_parts(
    transaction: &Transaction<'_>,
    owner: &MemoryOwner,
    parts: &[MemoryId],
    whole: MemoryId,
) -> Result<(), Failure> {
    let MemoryId::Reflection(whole) = whole else {
        return Err(Failure::other(format!("`{whole}` is no reflection")));
    };
    let mut ids = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            MemoryId::Observation(id) | MemoryId::Reflection(id) => ids.push(bound(*id)),
            MemoryId::Saved(_) => {
                return Err(Failure::other(format!("`{part}` cannot be condensed")));
            }
        }
    }
    let values: Values<'_> = &[
        &Words(owner.session.as_str()),
        &Words(owner.user.as_str()),
        &ids,
        &bound(whole),
    ];
    let made = numbers(transaction, MAKE_PARTS, values).await?;
    let missing = parts.iter().zip(&ids).find(|(_, id)| !made.contains(id));
    match missing {
        None => Ok(()),
        Some((part, _)) => Err(Failure::other(format!("`{part}` was condensed already"))),
    }
}
