//! Keeping facts, and ending one.

use super::super::asking::{claim, execute, number, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::rows::bound;
use super::super::text::Words;
use super::facts::{entity_id, one_fact, predicate_id};
use super::names::{Numbers, numbers};
use super::statements::{END, HOLD_USER, HOLDING, INSERT_FACTS, INSERT_USER, SET_WORDS};
use crate::graph::{Ended, NewFact, Related, Triple, Word};
use deadpool_postgres::Transaction;
use lango_core::{Timestamp, Trust, UserId};
use std::collections::HashMap;

/// How often a user who is forgotten at the same moment is made anew.
const MOST_TRIES: usize = 8;

/// Keeps a fact, or the better word for one that holds.
pub(super) async fn relate(
    transaction: &Transaction<'_>,
    user: &UserId,
    new: &NewFact,
) -> Result<Related, Failure> {
    let facts = std::slice::from_ref(new);
    let changes = keep(transaction, user, facts).await?;
    let [(id, change)] = changes.as_slice() else {
        return Err(Failure::other("a fact was not kept"));
    };
    let fact = one_fact(transaction, *id).await?;
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
    let changes = keep(transaction, user, facts).await?;
    let new = changes.iter().filter(|(_, change)| *change == Change::New);
    Ok(new.count() as u64)
}

/// Ends a fact that holds, on the word of somebody who is trusted or not.
pub(super) async fn end(
    transaction: &Transaction<'_>,
    user: &UserId,
    triple: &Triple,
    (by, at): (Trust, Timestamp),
) -> Result<Ended, Failure> {
    let Some(user) = hold_user(transaction, user).await? else {
        return Ok(Ended::Unknown);
    };
    let subject = entity_id(transaction, user, &triple.subject).await?;
    let predicate = predicate_id(transaction, user, &triple.predicate).await?;
    let object = entity_id(transaction, user, &triple.object).await?;
    let (Some(subject), Some(predicate), Some(object)) = (subject, predicate, object) else {
        return Ok(Ended::Unknown);
    };
    let numbers = Numbers {
        subject,
        predicate,
        object,
    };
    let held = holding(transaction, &[numbers]).await?;
    let Some(Held { id, word, .. }) = held.get(&numbers) else {
        return Ok(Ended::Unknown);
    };
    let fact = |id| one_fact(transaction, id);
    if word.is_trusted && by == Trust::Untrusted {
        return Ok(Ended::Protected(fact(*id).await?));
    }
    execute(transaction, END, &[id, &bound(at.0)]).await?;
    Ok(Ended::Over(fact(*id).await?))
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

/// A fact that holds, and the word for it.
struct Held {
    id: i64,
    word: Word,
    /// Whether the word is not the stored one any more.
    is_changed: bool,
}

/// Keeps facts one after the other, and gives the number of each and what became of it.
async fn keep(
    transaction: &Transaction<'_>,
    user: &UserId,
    facts: &[NewFact],
) -> Result<Vec<(i64, Change)>, Failure> {
    let user = hold_or_make_user(transaction, user).await?;
    let named = numbers(transaction, user, facts).await?;
    let triples: Vec<Numbers> = named.iter().map(|(numbers, _)| *numbers).collect();
    let mut held = holding(transaction, &triples).await?;
    let mut new: Vec<(Numbers, Word, &NewFact)> = Vec::new();
    let mut places = HashMap::new();
    let mut changes = Vec::with_capacity(facts.len());
    for (fact, (numbers, source)) in facts.iter().zip(named) {
        let word = Word {
            source,
            is_trusted: fact.source.trust == Trust::Trusted,
            confidence: fact.confidence.get(),
        };
        let kept = match (held.get_mut(&numbers), places.get(&numbers)) {
            (Some(held), _) => {
                held.is_changed |= word.replaces(held.word);
                &mut held.word
            }
            (None, Some(place)) => {
                let (_, word, _): &mut (_, _, _) = &mut new[*place];
                word
            }
            (None, None) => {
                places.insert(numbers, new.len());
                new.push((numbers, word, fact));
                changes.push((numbers, Change::New));
                continue;
            }
        };
        if word.replaces(*kept) {
            *kept = word;
            changes.push((numbers, Change::Confirmed));
        } else {
            changes.push((numbers, Change::None));
        }
    }
    set_words(transaction, &held).await?;
    let made = insert(transaction, &new).await?;
    let missing = || Failure::other("a fact has no number");
    let changes = changes.into_iter().map(|(numbers, change)| {
        let id = held.get(&numbers).map(|held| held.id);
        let id = id.or_else(|| made.get(&numbers).copied());
        Ok((id.ok_or_else(missing)?, change))
    });
    changes.collect()
}

async fn holding(
    transaction: &Transaction<'_>,
    triples: &[Numbers],
) -> Result<HashMap<Numbers, Held>, Failure> {
    let subjects: Vec<i64> = triples.iter().map(|triple| triple.subject).collect();
    let predicates: Vec<i64> = triples.iter().map(|triple| triple.predicate).collect();
    let objects: Vec<i64> = triples.iter().map(|triple| triple.object).collect();
    let values: Values<'_> = &[&subjects, &predicates, &objects];
    let mut held = HashMap::new();
    for row in &rows(transaction, HOLDING, values).await? {
        let numbers = Numbers {
            subject: row.try_get(1)?,
            predicate: row.try_get(2)?,
            object: row.try_get(3)?,
        };
        let word = Word {
            confidence: row.try_get(4)?,
            is_trusted: claim(row, 5)?,
            source: row.try_get(6)?,
        };
        let fact = Held {
            id: row.try_get(0)?,
            word,
            is_changed: false,
        };
        held.insert(numbers, fact);
    }
    Ok(held)
}

async fn set_words(
    transaction: &Transaction<'_>,
    held: &HashMap<Numbers, Held>,
) -> Result<(), Failure> {
    let changed: Vec<&Held> = held.values().filter(|held| held.is_changed).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = changed.iter().map(|held| held.id).collect();
    let sources: Vec<i64> = changed.iter().map(|held| held.word.source).collect();
    let confidences: Vec<f64> = changed.iter().map(|held| held.word.confidence).collect();
    execute(transaction, SET_WORDS, &[&ids, &sources, &confidences]).await?;
    Ok(())
}

async fn insert(
    transaction: &Transaction<'_>,
    new: &[(Numbers, Word, &NewFact)],
) -> Result<HashMap<Numbers, i64>, Failure> {
    if new.is_empty() {
        return Ok(HashMap::new());
    }
    let subjects: Vec<i64> = new.iter().map(|(triple, ..)| triple.subject).collect();
    let predicates: Vec<i64> = new.iter().map(|(triple, ..)| triple.predicate).collect();
    let objects: Vec<i64> = new.iter().map(|(triple, ..)| triple.object).collect();
    let sources: Vec<i64> = new.iter().map(|(_, word, _)| word.source).collect();
    let confidences: Vec<f64> = new.iter().map(|(_, word, _)| word.confidence).collect();
    let created: Vec<i64> = new.iter().map(|(.., fact)| bound(fact.created.0)).collect();
    let since: Vec<i64> = new
        .iter()
        .map(|(.., fact)| bound(fact.valid_from.0))
        .collect();
    let values: Values<'_> = &[
        &subjects,
        &predicates,
        &objects,
        &sources,
        &confidences,
        &created,
        &since,
    ];
    let mut made = HashMap::with_capacity(new.len());
    for row in &rows(transaction, INSERT_FACTS, values).await? {
        let numbers = Numbers {
            subject: row.try_get(1)?,
            predicate: row.try_get(2)?,
            object: row.try_get(3)?,
        };
        made.insert(numbers, row.try_get(0)?);
    }
    Ok(made)
}
