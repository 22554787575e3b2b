//! Stores facts, and ends one.

use super::query::{entity_id, fact, predicate_id};
use super::statements::{
    CURRENT_FACTS, END, ENTITIES_BY_KEY, INSERT_ENTITIES, INSERT_FACTS, INSERT_PREDICATES,
    INSERT_SOURCES, INSERT_USER, LOCK_USER, PREDICATES_BY_KEY, SET_ASSERTIONS, SET_KINDS,
    SOURCES_BY_NAME,
};
use super::{EndOutcome, NewFact, RelateOutcome, Triple};
use crate::engine::{Failure, Row, ToValue as _, Tx, Value, values};
use lango_core::{Timestamp, Trust, UserId};
use std::borrow::Cow;
use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, BTreeSet};

/// Attempts to create the row of a user whose graph another replica deletes at the same time.
const MAX_ATTEMPTS: usize = 8;

/// The ids of a fact's subject, predicate and object.
type TripleIds = [i64; 3];

/// Stores a fact, or the better source for one that holds.
pub(super) async fn relate(
    tx: &mut Tx<'_>,
    user: &UserId,
    new: &NewFact,
) -> Result<RelateOutcome, Failure> {
    let changes = store(tx, user, std::slice::from_ref(new)).await?;
    let [(id, change)] = changes[..] else {
        return Err(Failure::other("a fact was not stored"));
    };
    let fact = fact(tx, id).await?;
    Ok(match change {
        Change::New => RelateOutcome::New(fact),
        Change::Confirmed => RelateOutcome::Confirmed(fact),
        Change::None => RelateOutcome::Known(fact),
    })
}

/// Stores facts and returns how many of them were new.
pub(super) async fn relate_all(
    tx: &mut Tx<'_>,
    user: &UserId,
    facts: &[NewFact],
) -> Result<u64, Failure> {
    let changes = store(tx, user, facts).await?;
    let new = changes.iter().filter(|(_, change)| *change == Change::New);
    Ok(new.count() as u64)
}

/// Ends a fact that holds.
pub(super) async fn end(
    tx: &mut Tx<'_>,
    user: &UserId,
    triple: &Triple,
    by: Trust,
    at: Timestamp,
) -> Result<EndOutcome, Failure> {
    let Some(user) = lock_user(tx, user).await? else {
        return Ok(EndOutcome::NotFound);
    };
    let subject = entity_id(tx, user, &triple.subject).await?;
    let predicate = predicate_id(tx, user, &triple.predicate).await?;
    let object = entity_id(tx, user, &triple.object).await?;
    let (Some(subject), Some(predicate), Some(object)) = (subject, predicate, object) else {
        return Ok(EndOutcome::NotFound);
    };
    let current = current(tx, &[[subject, predicate, object]]).await?;
    let Some(&Current { id, assertion, .. }) = current.values().next() else {
        return Ok(EndOutcome::NotFound);
    };
    if assertion.is_trusted && by == Trust::Untrusted {
        return Ok(EndOutcome::Protected(fact(tx, id).await?));
    }
    tx.execute(END, values![id, at]).await?;
    Ok(EndOutcome::Ended(fact(tx, id).await?))
}

/// Locks a user's row until the end of the transaction and returns its id; nothing if they have no facts.
pub(super) async fn lock_user(tx: &mut Tx<'_>, user: &UserId) -> Result<Option<i64>, Failure> {
    tx.query_opt(LOCK_USER, values![user], |row| row.get(0))
        .await
}

async fn lock_or_insert_user(tx: &mut Tx<'_>, user: &UserId) -> Result<i64, Failure> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(id) = lock_user(tx, user).await? {
            return Ok(id);
        }
        tx.execute(INSERT_USER, values![user]).await?;
    }
    Err(Failure::other(
        "the user's facts are being deleted; try again",
    ))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Confirmed,
    None,
}

/// Who asserts a fact.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Assertion {
    source: i64,
    is_trusted: bool,
    confidence: f64,
}

impl Assertion {
    /// Whether it is better than the stored one: a trusted source's before any other, then the surer one, then the newer
    /// one.
    fn replaces(self, stored: Self) -> bool {
        let is_better =
            (self.is_trusted, self.confidence) >= (stored.is_trusted, stored.confidence);
        is_better && (self.source, self.confidence) != (stored.source, stored.confidence)
    }
}

/// A fact that holds, or will at the end of the transaction.
struct Current {
    /// 0 until it is inserted.
    id: i64,
    assertion: Assertion,
    /// Whether the assertion differs from the stored one.
    is_changed: bool,
}

/// Stores facts one after the other; returns the id of each and what changed.
async fn store(
    tx: &mut Tx<'_>,
    user: &UserId,
    facts: &[NewFact],
) -> Result<Vec<(i64, Change)>, Failure> {
    let user = lock_or_insert_user(tx, user).await?;
    let triples = triples(tx, user, facts).await?;
    let sources = sources(tx, user, facts).await?;
    let mut current = current(tx, &triples).await?;
    let (mut new, mut changes) = (Vec::new(), Vec::with_capacity(facts.len()));
    for ((fact, triple), source) in facts.iter().zip(&triples).zip(sources) {
        let assertion = Assertion {
            source,
            is_trusted: is_trusted(fact),
            confidence: fact.confidence.get(),
        };
        changes.push(match current.entry(*triple) {
            Entry::Vacant(entry) => {
                entry.insert(Current {
                    id: 0,
                    assertion,
                    is_changed: false,
                });
                new.push((triple, fact));
                Change::New
            }
            Entry::Occupied(mut entry) => {
                let current = entry.get_mut();
                if assertion.replaces(current.assertion) {
                    current.assertion = assertion;
                    current.is_changed = true;
                    Change::Confirmed
                } else {
                    Change::None
                }
            }
        });
    }
    let changed = current
        .values()
        .filter(|fact| fact.is_changed && fact.id != 0);
    let changed: Vec<_> = changed
        .map(|Current { id, assertion, .. }| {
            let Assertion {
                source, confidence, ..
            } = assertion;
            [
                Value::Int(*id),
                Value::Int(*source),
                Value::Real(*confidence),
            ]
        })
        .collect();
    tx.batch(SET_ASSERTIONS, &[], &changed, |_| Ok(())).await?;
    let new: Vec<_> = new
        .into_iter()
        .map(|(triple, fact)| {
            let [subject, predicate, object] = triple.map(Value::Int);
            let Assertion {
                source, confidence, ..
            } = current[triple].assertion;
            let (source, confidence) = (Value::Int(source), Value::Real(confidence));
            let (created, since) = (fact.created.to_value(), fact.valid_from.to_value());
            [
                subject, predicate, object, source, confidence, created, since,
            ]
        })
        .collect();
    tx.batch(INSERT_FACTS, &[], &new, |row| {
        if let Some(fact) = current.get_mut(&triple_in(row)?) {
            fact.id = row.get(0)?;
        }
        Ok(())
    })
    .await?;
    let changes = triples.iter().zip(changes);
    let changes = changes.map(|(triple, change)| (current[triple].id, change));
    Ok(changes.collect())
}

async fn current(
    tx: &mut Tx<'_>,
    triples: &[TripleIds],
) -> Result<HashMap<TripleIds, Current>, Failure> {
    let triples: Vec<_> = triples
        .iter()
        .map(|triple| triple.map(Value::Int))
        .collect();
    let found = tx
        .batch(CURRENT_FACTS, &[], &triples, |row| {
            let fact = Current {
                id: row.get(0)?,
                assertion: Assertion {
                    confidence: row.get(4)?,
                    is_trusted: row.get(5)?,
                    source: row.get(6)?,
                },
                is_changed: false,
            };
            Ok((triple_in(row)?, fact))
        })
        .await?;
    Ok(found.into_iter().collect())
}

fn triple_in(row: Row<'_>) -> Result<TripleIds, Failure> {
    Ok([row.get(1)?, row.get(2)?, row.get(3)?])
}

/// The ids of each fact's names; inserts names that are not known yet.
async fn triples(tx: &mut Tx<'_>, user: i64, facts: &[NewFact]) -> Result<Vec<TripleIds>, Failure> {
    let keys: Vec<_> = facts
        .iter()
        .map(|fact| {
            let (subject, object) = (fact.subject.name.key(), fact.object.name.key());
            (subject, fact.predicate.predicate_key(), object)
        })
        .collect();
    let (mut entities, mut predicates) = (BTreeMap::new(), BTreeMap::new());
    for (fact, (subject, predicate, object)) in facts.iter().zip(&keys) {
        for (entity, key) in [(&fact.subject, subject), (&fact.object, object)] {
            let known = entities
                .entry(key.as_str())
                .or_insert(Named::new(entity.name.as_str()));
            known.kind = entity.kind.as_ref().map(super::Name::as_str).or(known.kind);
        }
        let name = Named::new(fact.predicate.as_str());
        predicates.entry(predicate.as_str()).or_insert(name);
    }
    insert_entities(tx, user, &mut entities).await?;
    insert_predicates(tx, user, &mut predicates).await?;
    let ids = keys.iter().map(|(subject, predicate, object)| {
        let subject = entities[subject.as_str()].id;
        [
            subject,
            predicates[predicate.as_str()].id,
            entities[object.as_str()].id,
        ]
    });
    Ok(ids.collect())
}

/// A name in some facts.
struct Named<'a> {
    /// As it was first written.
    name: &'a str,
    /// The last type that was given.
    kind: Option<&'a str>,
    /// 0 until it is known.
    id: i64,
}

impl<'a> Named<'a> {
    fn new(name: &'a str) -> Self {
        Self {
            name,
            kind: None,
            id: 0,
        }
    }
}

async fn insert_entities<'a>(
    tx: &mut Tx<'_>,
    user: i64,
    named: &mut BTreeMap<&'a str, Named<'a>>,
) -> Result<(), Failure> {
    let keys: Vec<_> = named.keys().map(|key| [Value::Text(key)]).collect();
    let mut changed = Vec::new();
    tx.batch(ENTITIES_BY_KEY, values![user], &keys, |row| {
        let entity = set_id(named, row)?;
        let known: Option<Cow<'_, str>> = row.get(2)?;
        if let Some((id, Some(kind))) = entity
            && known.as_deref() != Some(kind)
        {
            changed.push([Value::Int(id), Value::Text(kind)]);
        }
        Ok(())
    })
    .await?;
    tx.batch(SET_KINDS, &[], &changed, |_| Ok(())).await?;
    let new = named.iter().filter(|(_, entity)| entity.id == 0);
    let new: Vec<_> = new
        .map(|(key, entity)| {
            let kind = entity.kind.map_or(Value::Null, Value::Text);
            [Value::Text(key), Value::Text(entity.name), kind]
        })
        .collect();
    tx.batch(INSERT_ENTITIES, values![user], &new, |row| {
        set_id(named, row)
    })
    .await?;
    Ok(())
}

async fn insert_predicates<'a>(
    tx: &mut Tx<'_>,
    user: i64,
    named: &mut BTreeMap<&'a str, Named<'a>>,
) -> Result<(), Failure> {
    let keys: Vec<_> = named.keys().map(|key| [Value::Text(key)]).collect();
    tx.batch(PREDICATES_BY_KEY, values![user], &keys, |row| {
        set_id(named, row)
    })
    .await?;
    let new = named.iter().filter(|(_, predicate)| predicate.id == 0);
    let new: Vec<_> = new
        .map(|(key, predicate)| [Value::Text(key), Value::Text(predicate.name)])
        .collect();
    tx.batch(INSERT_PREDICATES, values![user], &new, |row| {
        set_id(named, row)
    })
    .await?;
    Ok(())
}

/// Takes the id of a name from a row with its id and key; returns it with the type that was given.
fn set_id<'a>(
    named: &mut BTreeMap<&'a str, Named<'a>>,
    row: Row<'_>,
) -> Result<Option<(i64, Option<&'a str>)>, Failure> {
    let key: Cow<'_, str> = row.get(1)?;
    let Some(name) = named.get_mut(key.as_ref()) else {
        return Ok(None);
    };
    name.id = row.get(0)?;
    Ok(Some((name.id, name.kind)))
}

/// The id of each fact's source; inserts those that are not known yet.
async fn sources<'f>(
    tx: &mut Tx<'_>,
    user: i64,
    facts: &'f [NewFact],
) -> Result<Vec<i64>, Failure> {
    let wanted = |fact: &'f NewFact| (&*fact.source.name, is_trusted(fact));
    let named: BTreeSet<_> = facts.iter().map(wanted).collect();
    let names: BTreeSet<_> = named.iter().map(|(name, _)| *name).collect();
    let names: Vec<_> = names.into_iter().map(|name| [Value::Text(name)]).collect();
    let source = |row: Row<'_>| Ok(((row.get(1)?, row.get(2)?), row.get(0)?));
    let found = tx
        .batch(SOURCES_BY_NAME, values![user], &names, source)
        .await?;
    let mut ids: HashMap<(String, bool), i64> = found.into_iter().collect();
    let is_new =
        |(name, trusted): &&(&str, bool)| !ids.contains_key(&((*name).to_owned(), *trusted));
    let new: Vec<_> = named
        .iter()
        .filter(is_new)
        .map(|(name, is_trusted)| [Value::Text(name), is_trusted.to_value()])
        .collect();
    ids.extend(
        tx.batch(INSERT_SOURCES, values![user], &new, source)
            .await?,
    );
    let missing = || Failure::other("a source was not stored");
    let ids = facts.iter().map(|fact| {
        let source = (fact.source.name.to_string(), is_trusted(fact));
        ids.get(&source).copied().ok_or_else(missing)
    });
    ids.collect()
}

fn is_trusted(fact: &NewFact) -> bool {
    fact.source.trust == Trust::Trusted
}
