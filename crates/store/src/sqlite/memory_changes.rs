//! What is changed in memory. Each function is one short transaction of the writer.

use super::failure::Failure;
use super::memory_rows::{must_own, number};
use super::memory_statements::{
    BEGIN_MEMORY, COUNT_FAILURE, COUNT_SAVED, DELETE_RECOLLECTION, DELETE_SAVED, FORGET_TURN,
    INSERT_RECOLLECTION, INSERT_SAVED, MAKE_PART, MOVE_OBSERVED, MOVE_REVISION, PARTS_OF,
    RETAG_SAVED, SAME_NOTE, WHOLE_OF,
};
use super::rows::unsigned;
use crate::recollection::{
    Commit, Forget, Generation, MemoryId, MemoryOwner, MemoryStep, NewRecollection, NewSavedMemory,
    Saved,
};
use lango_core::{Trust, UserId};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::BTreeSet;

/// Ends a step: the watermark moves from the revision the step was begun at, and its result is stored.
pub(super) fn commit(
    connection: &Connection,
    owner: &MemoryOwner,
    revision: u64,
    step: &MemoryStep,
) -> Result<Commit<Option<MemoryId>>, Failure> {
    begin(connection, owner)?;
    match step {
        MemoryStep::Observe {
            observed,
            trust,
            observation,
        } => {
            let moved = connection.prepare_cached(MOVE_OBSERVED)?.execute(params![
                owner.session.as_str(),
                owner.user.as_str(),
                number(revision),
                number(*observed),
                *trust == Trust::Trusted,
            ])?;
            if moved == 0 {
                return Ok(Commit::Stale);
            }
            let id = match observation {
                Some(new) => Some(insert(connection, owner, Generation::Observation, new)?),
                None => None,
            };
            Ok(Commit::Done(id))
        }
        MemoryStep::Condense {
            parts,
            generation,
            reflection,
        } => {
            if !move_revision(connection, owner, revision)? {
                return Ok(Commit::Stale);
            }
            let whole = insert(connection, owner, *generation, reflection)?;
            for part in parts {
                make_part(connection, owner, *part, whole)?;
            }
            Ok(Commit::Done(Some(whole)))
        }
    }
}

/// Counts one more failure of the model; gives how many there were in a row.
pub(super) fn count_failure(connection: &Connection, owner: &MemoryOwner) -> Result<u32, Failure> {
    begin(connection, owner)?;
    Ok(connection.prepare_cached(COUNT_FAILURE)?.query_row(
        params![owner.session.as_str(), owner.user.as_str()],
        |row| row.get(0),
    )?)
}

/// Adds an observation, once.
pub(super) fn add_note(
    connection: &Connection,
    owner: &MemoryOwner,
    note: &NewRecollection,
) -> Result<MemoryId, Failure> {
    must_own(connection, owner)?;
    let same = connection
        .prepare_cached(SAME_NOTE)?
        .query_row(
            params![
                owner.user.as_str(),
                owner.session.as_str(),
                note.text,
                note.source.name
            ],
            |row| unsigned(row, 0),
        )
        .optional()?;
    match same {
        Some(number) => Ok(MemoryId::Observation(number)),
        None => insert(connection, owner, Generation::Observation, note),
    }
}

/// Saves something for a user, who may have `most`.
pub(super) fn save(
    connection: &Connection,
    user: &UserId,
    memory: &NewSavedMemory,
    most: u64,
) -> Result<Saved, Failure> {
    let tags =
        serde_json::to_string(&memory.tags).map_err(|error| Failure::other(error.to_string()))?;
    let same = connection
        .prepare_cached(RETAG_SAVED)?
        .query_row(
            params![
                user.as_str(),
                memory.text,
                tags,
                memory.source.trust == Trust::Trusted
            ],
            |row| unsigned(row, 0),
        )
        .optional()?;
    if let Some(number) = same {
        return Ok(Saved::Again(MemoryId::Saved(number)));
    }
    let count = connection
        .prepare_cached(COUNT_SAVED)?
        .query_row([user.as_str()], |row| unsigned(row, 0))?;
    if count >= most {
        return Ok(Saved::Full);
    }
    let id = connection.prepare_cached(INSERT_SAVED)?.query_row(
        params![
            user.as_str(),
            memory.text,
            tags,
            memory.source.name,
            memory.source.trust == Trust::Trusted,
            number(memory.created.0)
        ],
        |row| unsigned(row, 0),
    )?;
    Ok(Saved::New(MemoryId::Saved(id)))
}

/// Deletes what is to be forgotten and every reflection that was made of it, and keeps turns from being observed.
pub(super) fn forget(
    connection: &Connection,
    owner: &MemoryOwner,
    revision: u64,
    forget: &Forget,
) -> Result<Commit<Vec<MemoryId>>, Failure> {
    begin(connection, owner)?;
    if !move_revision(connection, owner, revision)? {
        return Ok(Commit::Stale);
    }
    let mut doomed: BTreeSet<MemoryId> = forget.ids.iter().copied().collect();
    if forget.with_parts {
        follow(&mut doomed, |id| parts_of(connection, owner, id))?;
    }
    follow(&mut doomed, |id| whole_of(connection, owner, id))?;
    let mut gone = Vec::new();
    for id in doomed {
        if delete(connection, owner, id)? {
            gone.push(id);
        }
    }
    for turn in &forget.turns {
        connection.prepare_cached(FORGET_TURN)?.execute(params![
            owner.session.as_str(),
            owner.user.as_str(),
            number(*turn)
        ])?;
    }
    Ok(Commit::Done(gone))
}

/// Adds whatever can be reached. A generation never leads back to itself, so this ends.
fn follow(
    found: &mut BTreeSet<MemoryId>,
    next: impl Fn(MemoryId) -> Result<Vec<MemoryId>, Failure>,
) -> Result<(), Failure> {
    let mut open: Vec<MemoryId> = found.iter().copied().collect();
    while let Some(id) = open.pop() {
        for id in next(id)? {
            if found.insert(id) {
                open.push(id);
            }
        }
    }
    Ok(())
}

fn parts_of(
    connection: &Connection,
    owner: &MemoryOwner,
    id: MemoryId,
) -> Result<Vec<MemoryId>, Failure> {
    let MemoryId::Reflection(whole) = id else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(PARTS_OF)?;
    let rows = statement.query_map(
        params![number(whole), owner.user.as_str(), owner.session.as_str()],
        |row| {
            let part = unsigned(row, 0)?;
            Ok(match row.get::<_, i64>(1)? {
                0 => MemoryId::Observation(part),
                _ => MemoryId::Reflection(part),
            })
        },
    )?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn whole_of(
    connection: &Connection,
    owner: &MemoryOwner,
    id: MemoryId,
) -> Result<Vec<MemoryId>, Failure> {
    let (MemoryId::Observation(part) | MemoryId::Reflection(part)) = id else {
        return Ok(Vec::new());
    };
    let whole = connection
        .prepare_cached(WHOLE_OF)?
        .query_row(
            params![number(part), owner.user.as_str(), owner.session.as_str()],
            |row| unsigned(row, 0),
        )
        .optional()?;
    Ok(whole.map(MemoryId::Reflection).into_iter().collect())
}

fn delete(connection: &Connection, owner: &MemoryOwner, id: MemoryId) -> Result<bool, Failure> {
    let recollection = |row: u64, generation: i64| {
        connection
            .prepare_cached(DELETE_RECOLLECTION)?
            .execute(params![
                number(row),
                owner.user.as_str(),
                owner.session.as_str(),
                generation
            ])
    };
    let gone = match id {
        MemoryId::Observation(row) => recollection(row, 0)?,
        MemoryId::Reflection(row) => recollection(row, 1)?,
        MemoryId::Saved(row) => connection
            .prepare_cached(DELETE_SAVED)?
            .execute(params![number(row), owner.user.as_str()])?,
    };
    Ok(gone > 0)
}

fn begin(connection: &Connection, owner: &MemoryOwner) -> Result<(), Failure> {
    must_own(connection, owner)?;
    connection
        .prepare_cached(BEGIN_MEMORY)?
        .execute(params![owner.session.as_str(), owner.user.as_str()])?;
    Ok(())
}

fn move_revision(
    connection: &Connection,
    owner: &MemoryOwner,
    revision: u64,
) -> Result<bool, Failure> {
    let moved = connection.prepare_cached(MOVE_REVISION)?.execute(params![
        owner.session.as_str(),
        owner.user.as_str(),
        number(revision)
    ])?;
    Ok(moved > 0)
}

fn insert(
    connection: &Connection,
    owner: &MemoryOwner,
    generation: Generation,
    new: &NewRecollection,
) -> Result<MemoryId, Failure> {
    let id = connection.prepare_cached(INSERT_RECOLLECTION)?.query_row(
        params![
            owner.session.as_str(),
            owner.user.as_str(),
            generation.number(),
            number(new.turns.0),
            number(new.turns.1),
            new.text,
            new.source.name,
            new.source.trust == Trust::Trusted,
            number(new.created.0),
        ],
        |row| unsigned(row, 0),
    )?;
    Ok(generation.name(id))
}

/// The row goes into the whole. That it is there and loose was true at this revision; if not, nothing is stored.
fn make_part(
    connection: &Connection,
    owner: &MemoryOwner,
    part: MemoryId,
    whole: MemoryId,
) -> Result<(), Failure> {
    let (MemoryId::Observation(row) | MemoryId::Reflection(row)) = part else {
        return Err(Failure::other(format!("`{part}` cannot be condensed")));
    };
    let MemoryId::Reflection(whole) = whole else {
        return Err(Failure::other(format!("`{whole}` is no reflection")));
    };
    let changed = connection.prepare_cached(MAKE_PART)?.execute(params![
        number(row),
        owner.user.as_str(),
        owner.session.as_str(),
        number(whole)
    ])?;
    match changed {
        1 => Ok(()),
        _ => Err(Failure::other(format!("`{part}` was condensed already"))),
    }
}
