//! Stores facts, and ends one.

use super::query::{fact, name_id};
use super::statements as sql;
use super::{EndOutcome, Entity, Name, NameKind, NewFact, RelateOutcome, Triple};
use crate::Answer;
use crate::engine::{Failure, Result, Row, ToValue as _, Tx, Value, bulk_row, values};
use crate::store::Store;
use lango_core::{StoreError, Timestamp, Trust, UserId};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Attempts to create the row of a user whose graph another replica deletes at the same time.
const MAX_ATTEMPTS: usize = 8;

/// Facts stored in one transaction.
const BATCH: usize = 256;

/// The ids of a fact's subject, predicate and object.
type TripleIds = [i64; 3];

impl Store {
    /// Stores a fact. See [`RelateOutcome`] for one that holds already.
    pub fn relate(&self, user: &UserId, new: NewFact) -> Answer<'_, RelateOutcome> {
        let given = (user.clone(), new);
        self.engine.write(given, |tx, (user, new)| {
            Box::pin(async move {
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
            })
        })
    }

    /// Stores many facts in batches and returns how many of them were new. If it fails or is dropped, the batches before
    /// are stored; storing all of them again does no harm.
    pub async fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Result<u64, StoreError> {
        let mut new = 0;
        let mut facts = facts.into_iter();
        while facts.len() > 0 {
            let batch: Vec<NewFact> = facts.by_ref().take(BATCH).collect();
            let given = (user.clone(), batch);
            let batch = self.engine.write(given, |tx, (user, facts)| {
                Box::pin(async move {
                    let changes = store(tx, user, facts).await?;
                    let new = changes.iter().filter(|(_, change)| *change == Change::New);
                    Ok(new.count() as u64)
                })
            });
            new += batch.await?;
        }
        Ok(new)
    }

    /// Ends a fact: it stays, and is known to have held until `at`. Only a trusted caller ends what a trusted source
    /// asserts.
    pub fn end_fact(
        &self,
        user: &UserId,
        triple: Triple,
        by: Trust,
        at: Timestamp,
    ) -> Answer<'_, EndOutcome> {
        let given = (user.clone(), triple, by, at);
        self.engine
            .write(given, |tx, &(ref user, ref triple, by, at)| {
                Box::pin(async move {
                    let Some(user) = lock_user(tx, user).await? else {
                        return Ok(EndOutcome::NotFound);
                    };
                    let subject = name_id(tx, user, NameKind::Entity, &triple.subject).await?;
                    let predicate =
                        name_id(tx, user, NameKind::Predicate, &triple.predicate).await?;
                    let object = name_id(tx, user, NameKind::Entity, &triple.object).await?;
                    let (Some(subject), Some(predicate), Some(object)) =
                        (subject, predicate, object)
                    else {
                        return Ok(EndOutcome::NotFound);
                    };
                    let current = current(tx, &[[subject, predicate, object]]).await?;
                    let Some(&Current { id, assertion, .. }) = current.values().next() else {
                        return Ok(EndOutcome::NotFound);
                    };
                    if assertion.is_trusted && by == Trust::Untrusted {
                        return Ok(EndOutcome::Protected(fact(tx, id).await?));
                    }
                    tx.execute(sql::END, values![id, at]).await?;
                    Ok(EndOutcome::Ended(fact(tx, id).await?))
                })
            })
    }
}

/// Locks a user's row until the end of the transaction and returns its id; `None` if they have no facts.
pub(super) async fn lock_user(tx: &mut Tx<'_>, user: &UserId) -> Result<Option<i64>> {
    tx.value(sql::LOCK_USER, values![user]).await
}

async fn lock_or_insert_user(tx: &mut Tx<'_>, user: &UserId) -> Result<i64> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(id) = lock_user(tx, user).await? {
            return Ok(id);
        }
        tx.execute(sql::INSERT_USER, values![user]).await?;
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

impl Current {
    fn new(id: i64, assertion: Assertion) -> Self {
        let is_changed = false;
        Self {
            id,
            assertion,
            is_changed,
        }
    }
}

/// Stores facts one after the other; returns the id of each and what changed.
async fn store(tx: &mut Tx<'_>, user: &UserId, facts: &[NewFact]) -> Result<Vec<(i64, Change)>> {
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
        changes.push(match current.get_mut(triple) {
            None => {
                current.insert(*triple, Current::new(0, assertion));
                new.push((triple, fact));
                Change::New
            }
            Some(current) if assertion.replaces(current.assertion) => {
                current.assertion = assertion;
                current.is_changed = true;
                Change::Confirmed
            }
            Some(_) => Change::None,
        });
    }
    let changed = current
        .values()
        .filter(|fact| fact.is_changed && fact.id != 0);
    let changed: Vec<_> = changed
        .map(|fact| bulk_row![fact.id, fact.assertion.source, fact.assertion.confidence])
        .collect();
    tx.batch(sql::SET_ASSERTIONS, &[], &changed, |_| Ok(()))
        .await?;
    let new = new.into_iter().map(|(triple, fact)| {
        let [subject, predicate, object] = triple;
        let Assertion {
            source, confidence, ..
        } = &current[triple].assertion;
        bulk_row![
            subject,
            predicate,
            object,
            source,
            confidence,
            fact.created,
            fact.valid_from
        ]
    });
    let new: Vec<_> = new.collect();
    let id = |row: Row<'_>| Ok((triple_in(row)?, row.get(0)?));
    for (triple, id) in tx.batch(sql::INSERT_FACTS, &[], &new, id).await? {
        current.entry(triple).and_modify(|fact| fact.id = id);
    }
    let changes = triples.iter().zip(changes);
    let changes = changes.map(|(triple, change)| (current[triple].id, change));
    Ok(changes.collect())
}

async fn current(tx: &mut Tx<'_>, triples: &[TripleIds]) -> Result<HashMap<TripleIds, Current>> {
    let triples = triples.iter().map(|triple| triple.map(Value::Int));
    let triples: Vec<_> = triples.collect();
    let fact = |row: Row<'_>| {
        let assertion = Assertion {
            confidence: row.get(4)?,
            is_trusted: row.get(5)?,
            source: row.get(6)?,
        };
        Ok((triple_in(row)?, Current::new(row.get(0)?, assertion)))
    };
    let found = tx.batch(sql::CURRENT_FACTS, &[], &triples, fact).await?;
    Ok(found.into_iter().collect())
}

fn triple_in(row: Row<'_>) -> Result<TripleIds> {
    Ok([row.get(1)?, row.get(2)?, row.get(3)?])
}

/// The ids of each fact's names; inserts names that are not known yet.
async fn triples<'f>(tx: &mut Tx<'_>, user: i64, facts: &'f [NewFact]) -> Result<Vec<TripleIds>> {
    let (mut entities, mut predicates) = (NewNames::new(), NewNames::new());
    let keys = facts.iter().map(|fact| {
        let mut entity = |entity: &'f Entity| {
            let key = entity.name.key();
            let name = (entity.name.as_str(), None);
            let known = entities.entry(key.clone()).or_insert(name);
            known.1 = entity.kind.as_ref().map(Name::as_str).or(known.1);
            key
        };
        let (subject, object) = (entity(&fact.subject), entity(&fact.object));
        let predicate = fact.predicate.predicate_key();
        let name = (fact.predicate.as_str(), None);
        predicates.entry(predicate.clone()).or_insert(name);
        (subject, predicate, object)
    });
    let keys: Vec<_> = keys.collect();
    let entities = ids(tx, user, NameKind::Entity, &entities).await?;
    let predicates = ids(tx, user, NameKind::Predicate, &predicates).await?;
    let triples = keys.iter().map(|(subject, predicate, object)| {
        [entities[subject], predicates[predicate], entities[object]]
    });
    Ok(triples.collect())
}

/// Names in some facts by key: as each was first written, and the last type that was given.
type NewNames<'a> = BTreeMap<String, (&'a str, Option<&'a str>)>;

/// The id of each name by its key; inserts new names, and stores types that differ from the known ones.
async fn ids(
    tx: &mut Tx<'_>,
    user: i64,
    kind: NameKind,
    names: &NewNames<'_>,
) -> Result<HashMap<String, i64>> {
    let (by_key, insert, columns) = match kind {
        NameKind::Entity => (sql::ENTITIES_BY_KEY, sql::INSERT_ENTITIES, 3),
        // They have no types.
        NameKind::Predicate => (sql::PREDICATES_BY_KEY, sql::INSERT_PREDICATES, 2),
    };
    let keys: Vec<_> = names.keys().map(|key| [key.to_value()]).collect();
    let mut changed = Vec::new();
    let known = |row: Row<'_>| {
        let (id, key): (i64, String) = (row.get(0)?, row.get(1)?);
        let known: Option<Cow<'_, str>> = row.get(2)?;
        if let Some((_, Some(kind))) = names.get(&key)
            && known.as_deref() != Some(kind)
        {
            changed.push([Value::Int(id), kind.to_value()]);
        }
        Ok((key, id))
    };
    let known = tx.batch(by_key, values![user], &keys, known).await?;
    tx.batch(sql::SET_KINDS, &[], &changed, |_| Ok(())).await?;
    let mut ids: HashMap<String, i64> = known.into_iter().collect();
    let new = names.iter().filter(|(key, _)| !ids.contains_key(*key));
    let new = new.map(|(key, (name, kind))| {
        let mut row = bulk_row![key, name, kind];
        row.truncate(columns);
        row
    });
    let new: Vec<_> = new.collect();
    let inserted = |row: Row<'_>| Ok((row.get(1)?, row.get(0)?));
    ids.extend(tx.batch(insert, values![user], &new, inserted).await?);
    Ok(ids)
}

/// The id of each fact's source; inserts those that are not known yet.
async fn sources(tx: &mut Tx<'_>, user: i64, facts: &[NewFact]) -> Result<Vec<i64>> {
    let source = |fact: &NewFact| (fact.source.name.to_string(), is_trusted(fact));
    let wanted: BTreeSet<(String, bool)> = facts.iter().map(source).collect();
    let names: BTreeSet<&str> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    let names: Vec<_> = names.iter().map(|name| [name.to_value()]).collect();
    let stored = |row: Row<'_>| Ok(((row.get(1)?, row.get(2)?), row.get(0)?));
    let known = tx
        .batch(sql::SOURCES_BY_NAME, values![user], &names, stored)
        .await?;
    let mut ids: HashMap<(String, bool), i64> = known.into_iter().collect();
    let new = wanted.iter().filter(|source| !ids.contains_key(*source));
    let new: Vec<_> = new
        .map(|(name, trusted)| bulk_row![name, trusted])
        .collect();
    ids.extend(
        tx.batch(sql::INSERT_SOURCES, values![user], &new, stored)
            .await?,
    );
    let missing = || Failure::other("a source was not stored");
    let ids = facts
        .iter()
        .map(|fact| ids.get(&source(fact)).copied().ok_or_else(missing));
    ids.collect()
}

fn is_trusted(fact: &NewFact) -> bool {
    fact.source.trust == Trust::Trusted
}
