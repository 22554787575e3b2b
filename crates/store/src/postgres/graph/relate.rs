//! Keeping a fact, and ending one.

use super::super::asking::{claim, execute, number, row};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::bound;
use super::super::text::{Words, optional_words};
use super::facts::{entity_id, one_fact, predicate_id};
use super::statements::{
    END, ENTITY, HOLD_USER, HOLDING, INSERT_ENTITY, INSERT_FACT, INSERT_PREDICATE, INSERT_SOURCE,
    INSERT_USER, SET_KIND, SET_SOURCE, SOURCE,
};
use crate::graph::{Ended, Entity, NewFact, Related, Triple, Word};
use deadpool_postgres::Transaction;
use lango_core::{Source, Timestamp, Trust, UserId};

/// How often a user who is forgotten at the same moment is made anew.
const MOST_TRIES: usize = 8;

/// Keeps a fact, or the better word for one that holds.
pub(super) async fn relate(
    transaction: &Transaction<'_>,
    user: &UserId,
    new: &NewFact,
) -> Result<Related, Failure> {
    let user = hold_or_make_user(transaction, user).await?;
    let (id, change) = relate_quietly(transaction, user, new).await?;
    let fact = one_fact(transaction, id).await?;
    Ok(match change {
        Change::New => Related::New(fact),
        Change::Confirmed => Related::Confirmed(fact),
        Change::None => Related::Known(fact),
    })
}

/// Keeps facts; gives how many of them were new.
pub(super) async fn relate_all(
    transaction: &Transaction<'_>,
    user: &UserId,
    facts: &[NewFact],
) -> Result<u64, Failure> {
    let user = hold_or_make_user(transaction, user).await?;
    let mut new = 0;
    for fact in facts {
        let (_, change) = relate_quietly(transaction, user, fact).await?;
        new += u64::from(change == Change::New);
    }
    Ok(new)
}

/// Ends a fact that holds, on the word of somebody who is trusted or not.
pub(super) async fn end(
    transaction: &Transaction<'_>,
    user: &UserId,
    triple: &Triple,
    (by, at): (Trust, Timestamp),
) -> Result<Ended, Failure> {
    let Some(held) = find(transaction, user, triple).await? else {
        return Ok(Ended::Unknown);
    };
    if held.word.is_trusted && by == Trust::Untrusted {
        return Ok(Ended::Protected(one_fact(transaction, held.id).await?));
    }
    execute(transaction, END, &[&held.id, &bound(at.0)]).await?;
    Ok(Ended::Over(one_fact(transaction, held.id).await?))
}

/// A user's number, with their row held until the end of the transaction; nothing if they have no facts.
pub(super) async fn hold_user(
    transaction: &Transaction<'_>,
    user: &UserId,
) -> Result<Option<i64>, Failure> {
    number(transaction, HOLD_USER, &[&Words(user.as_str())]).await
}

async fn hold_or_make_user(transaction: &Transaction<'_>, user: &UserId) -> Result<i64, Failure> {
    for _ in 0..MOST_TRIES {
        if let Some(id) = hold_user(transaction, user).await? {
            return Ok(id);
        }
        execute(transaction, INSERT_USER, &[&Words(user.as_str())]).await?;
    }
    Err(Failure::other(
        "the user's facts are being forgotten; try again",
    ))
}

/// What became of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Confirmed,
    None,
}

async fn relate_quietly(
    transaction: &Transaction<'_>,
    user: i64,
    new: &NewFact,
) -> Result<(i64, Change), Failure> {
    let subject = entity(transaction, user, &new.subject).await?;
    let object = entity(transaction, user, &new.object).await?;
    let predicate = match predicate_id(transaction, user, &new.predicate).await? {
        Some(id) => id,
        None => {
            let key = new.predicate.predicate_key();
            let (key, name) = (Words(&key), Words(new.predicate.as_str()));
            made(transaction, INSERT_PREDICATE, &[&user, &key, &name]).await?
        }
    };
    let source = source(transaction, user, &new.source).await?;
    let confidence = new.confidence.get();
    let Some(held) = holding(transaction, [subject, predicate, object]).await? else {
        let (created, since) = (bound(new.created.0), bound(new.valid_from.0));
        let values: Values<'_> = &[
            &subject,
            &predicate,
            &object,
            &source,
            &confidence,
            &created,
            &since,
        ];
        return Ok((made(transaction, INSERT_FACT, values).await?, Change::New));
    };
    let word = Word {
        source,
        is_trusted: new.source.trust == Trust::Trusted,
        confidence,
    };
    if !word.replaces(held.word) {
        return Ok((held.id, Change::None));
    }
    execute(transaction, SET_SOURCE, &[&held.id, &source, &confidence]).await?;
    Ok((held.id, Change::Confirmed))
}

struct Held {
    id: i64,
    word: Word,
}

async fn find(
    transaction: &Transaction<'_>,
    user: &UserId,
    triple: &Triple,
) -> Result<Option<Held>, Failure> {
    let Some(user) = hold_user(transaction, user).await? else {
        return Ok(None);
    };
    let subject = entity_id(transaction, user, &triple.subject).await?;
    let predicate = predicate_id(transaction, user, &triple.predicate).await?;
    let object = entity_id(transaction, user, &triple.object).await?;
    let (Some(subject), Some(predicate), Some(object)) = (subject, predicate, object) else {
        return Ok(None);
    };
    holding(transaction, [subject, predicate, object]).await
}

async fn holding(
    transaction: &Transaction<'_>,
    [subject, predicate, object]: [i64; 3],
) -> Result<Option<Held>, Failure> {
    let row = row(transaction, HOLDING, &[&subject, &predicate, &object]).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Held {
        id: row.try_get(0)?,
        word: Word {
            confidence: row.try_get(1)?,
            is_trusted: claim(&row, 2)?,
            source: row.try_get(3)?,
        },
    }))
}

async fn entity(transaction: &Transaction<'_>, user: i64, entity: &Entity) -> Result<i64, Failure> {
    let key = entity.name.key();
    let kind = entity.kind.as_ref().map(|kind| Words(kind.as_str()));
    let Some(known) = row(transaction, ENTITY, &[&user, &Words(&key)]).await? else {
        let name = Words(entity.name.as_str());
        let values: Values<'_> = &[&user, &Words(&key), &name, &kind];
        return made(transaction, INSERT_ENTITY, values).await;
    };
    let id: i64 = known.try_get(0)?;
    let known_kind = optional_words(&known, 1)?;
    if let Some(kind) = kind
        && known_kind.as_deref() != Some(kind.0)
    {
        execute(transaction, SET_KIND, &[&id, &kind]).await?;
    }
    Ok(id)
}

async fn source(transaction: &Transaction<'_>, user: i64, source: &Source) -> Result<i64, Failure> {
    let trusted = i64::from(source.trust == Trust::Trusted);
    let values: Values<'_> = &[&user, &Words(&source.name), &trusted];
    match number(transaction, SOURCE, values).await? {
        Some(id) => Ok(id),
        None => made(transaction, INSERT_SOURCE, values).await,
    }
}

async fn made(
    transaction: &Transaction<'_>,
    statement: &str,
    values: Values<'_>,
) -> Result<i64, Failure> {
    let made = number(transaction, statement, values).await?;
    made.ok_or_else(|| Failure::other("a new row has no number"))
}
