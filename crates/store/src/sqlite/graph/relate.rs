//! Keeping a fact, and ending one.

use super::facts::{entity_id, fact, number, predicate_id, user_id};
use super::statements::{
    END, ENTITY, HOLDING, INSERT_ENTITY, INSERT_FACT, INSERT_PREDICATE, INSERT_SOURCE, INSERT_USER,
    SET_KIND, SET_SOURCE, SOURCE, USER,
};
use crate::graph::{Ended, Entity, NewFact, Related, Triple, Word};
use crate::sqlite::failure::Failure;
use lango_core::{Source, Timestamp, Trust, UserId};
use rusqlite::{Connection, OptionalExtension as _, Params, params};

/// Keeps a fact, or the better word for one that holds.
pub(super) fn relate(
    connection: &Connection,
    user: &UserId,
    new: &NewFact,
) -> Result<Related, Failure> {
    let (id, change) = relate_quietly(connection, user, new)?;
    let fact = fact(connection, id)?;
    Ok(match change {
        Change::New => Related::New(fact),
        Change::Confirmed => Related::Confirmed(fact),
        Change::None => Related::Known(fact),
    })
}

/// What became of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    New,
    Confirmed,
    None,
}

/// The same, and gives the number of the fact only.
pub(super) fn relate_quietly(
    connection: &Connection,
    user: &UserId,
    new: &NewFact,
) -> Result<(i64, Change), Failure> {
    let user = found_or_made(connection, (USER, INSERT_USER), [user.as_str()])?;
    let subject = entity(connection, user, &new.subject)?;
    let object = entity(connection, user, &new.object)?;
    let predicate = match predicate_id(connection, user, &new.predicate)? {
        Some(id) => id,
        None => made(
            connection,
            INSERT_PREDICATE,
            params![user, new.predicate.predicate_key(), new.predicate.as_str()],
        )?,
    };
    let source = source(connection, user, &new.source)?;
    let confidence = new.confidence.get();
    let Some(held) = holding(connection, subject, predicate, object)? else {
        let (created, since) = (time(new.created), time(new.valid_from));
        let values = params![
            subject, predicate, object, source, confidence, created, since
        ];
        return Ok((made(connection, INSERT_FACT, values)?, Change::New));
    };
    let word = Word {
        source,
        is_trusted: new.source.trust == Trust::Trusted,
        confidence,
    };
    if !word.replaces(held.word) {
        return Ok((held.id, Change::None));
    }
    connection
        .prepare_cached(SET_SOURCE)?
        .execute(params![held.id, source, confidence])?;
    Ok((held.id, Change::Confirmed))
}

/// Ends a fact that holds, on the word of somebody who is trusted or not.
pub(super) fn end(
    connection: &Connection,
    user: &UserId,
    triple: &Triple,
    (by, at): (Trust, Timestamp),
) -> Result<Ended, Failure> {
    let Some(held) = find(connection, user, triple)? else {
        return Ok(Ended::Unknown);
    };
    if held.word.is_trusted && by == Trust::Untrusted {
        return Ok(Ended::Protected(fact(connection, held.id)?));
    }
    connection
        .prepare_cached(END)?
        .execute(params![held.id, time(at)])?;
    Ok(Ended::Over(fact(connection, held.id)?))
}

struct Held {
    id: i64,
    word: Word,
}

fn find(connection: &Connection, user: &UserId, triple: &Triple) -> rusqlite::Result<Option<Held>> {
    let Some(user) = user_id(connection, user)? else {
        return Ok(None);
    };
    let subject = entity_id(connection, user, &triple.subject)?;
    let predicate = predicate_id(connection, user, &triple.predicate)?;
    let object = entity_id(connection, user, &triple.object)?;
    let (Some(subject), Some(predicate), Some(object)) = (subject, predicate, object) else {
        return Ok(None);
    };
    holding(connection, subject, predicate, object)
}

fn holding(
    connection: &Connection,
    subject: i64,
    predicate: i64,
    object: i64,
) -> rusqlite::Result<Option<Held>> {
    connection
        .prepare_cached(HOLDING)?
        .query_row([subject, predicate, object], |row| {
            Ok(Held {
                id: row.get(0)?,
                word: Word {
                    confidence: row.get(1)?,
                    is_trusted: row.get(2)?,
                    source: row.get(3)?,
                },
            })
        })
        .optional()
}

fn entity(connection: &Connection, user: i64, entity: &Entity) -> rusqlite::Result<i64> {
    let key = entity.name.key();
    let kind = entity.kind.as_ref().map(|kind| kind.as_str());
    let known = connection
        .prepare_cached(ENTITY)?
        .query_row(params![user, key], |row| {
            let known_kind: Option<String> = row.get(1)?;
            Ok((row.get::<_, i64>(0)?, known_kind))
        })
        .optional()?;
    match known {
        None => made(
            connection,
            INSERT_ENTITY,
            params![user, key, entity.name.as_str(), kind],
        ),
        Some((id, known_kind)) => {
            if kind.is_some() && kind != known_kind.as_deref() {
                connection
                    .prepare_cached(SET_KIND)?
                    .execute(params![id, kind])?;
            }
            Ok(id)
        }
    }
}

fn source(connection: &Connection, user: i64, source: &Source) -> rusqlite::Result<i64> {
    let is_trusted = source.trust == Trust::Trusted;
    let values = params![user, source.name, is_trusted];
    found_or_made(connection, (SOURCE, INSERT_SOURCE), values)
}

fn found_or_made(
    connection: &Connection,
    (find, make): (&str, &str),
    values: impl Params + Copy,
) -> rusqlite::Result<i64> {
    match number(connection, find, values)? {
        Some(id) => Ok(id),
        None => made(connection, make, values),
    }
}

fn made(connection: &Connection, insert: &str, values: impl Params) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(insert)?
        .query_row(values, |row| row.get(0))
}

fn time(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}
