//! Stores facts and ends them.

use super::query::{facts, matching};
use super::statements as sql;
use super::{EndOutcome, Entity, Name, NewFact, RelateOutcome, Triple, Validity};
use crate::StoreFuture;
use crate::backend::{
    BackendError, Result, Row, Sql, ToValue as _, Tx, Value, bulk_row, values, work,
};
use crate::store::Store;
use foldhash::HashMap;
use lango_core::{StoreError, Timestamp, Trust, UserId};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Maximum number of facts stored in one transaction.
const BATCH: usize = 256;

/// The placeholder id of a row that is not inserted yet.
const NEW: i64 = 0;

/// The ids of a fact's subject, predicate and object.
type TripleIds = [i64; 3];

impl Store {
    /// Stores a fact. See [`RelateOutcome`] for a fact that already exists.
    pub fn relate(&self, user: &UserId, new: NewFact) -> StoreFuture<'_, RelateOutcome> {
        let args = (user.clone(), new);
        work!(self.backend.write(args), |tx, user, new| {
            let changes = store(tx, user, std::slice::from_ref(new)).await?;
            let [(id, change)] = changes[..] else {
                return Err(BackendError::other("a fact was not stored"));
            };
            let fact = facts(tx, &[id]).await?.remove(0);
            Ok(match change {
                Change::New => RelateOutcome::New(fact),
                Change::Confirmed => RelateOutcome::Confirmed(fact),
                Change::None => RelateOutcome::Known(fact),
            })
        })
    }

    /// Stores many facts in batches and returns the number of new ones. If it fails or is dropped, the earlier batches are stored;
    /// it is safe to store all facts again.
    pub async fn relate_all(&self, user: &UserId, facts: Vec<NewFact>) -> Result<u64, StoreError> {
        let mut new = 0;
        let mut facts = facts.into_iter();
        while facts.len() > 0 {
            let batch: Vec<NewFact> = facts.by_ref().take(BATCH).collect();
            let args = (user.clone(), batch);
            let batch = work!(self.backend.write(args), |tx, user, facts| {
                let changes = store(tx, user, facts).await?;
                let new = changes.iter().filter(|(_, change)| *change == Change::New);
                Ok(new.count() as u64)
            });
            new += batch.await?;
        }
        Ok(new)
    }

    /// Ends a fact: the fact stays in the graph, valid until `at`. Only a trusted caller can end a fact of a trusted source.
    pub fn end_fact(
        &self,
        user: &UserId,
        triple: Triple,
        by: Trust,
        at: Timestamp,
    ) -> StoreFuture<'_, EndOutcome> {
        let args = (user.clone(), triple, by, at);
        work!(self.backend.write(args), |tx, user, triple, by, at| {
            let Some(user) = lock_user(tx, user).await? else {
                return Ok(EndOutcome::NotFound);
            };
            let names = [&triple.subject, &triple.predicate, &triple.object].map(Some);
            let ids = matching(tx, user, names, Validity::Current, 1).await?;
            let Some(mut fact) = facts(tx, &ids).await?.pop() else {
                return Ok(EndOutcome::NotFound);
            };
            if fact.source.trust == Trust::Trusted && *by == Trust::Untrusted {
                return Ok(EndOutcome::Protected(fact));
            }
            let end = fact.valid_from.max(*at);
            tx.execute(sql::END, values![ids[0], end]).await?;
            fact.valid_to = Some(end);
            Ok(EndOutcome::Ended(fact))
        })
    }
}

/// Locks a user's row until the end of the transaction. Returns its id, or `None` if the user has no facts.
async fn lock_user(tx: &mut Tx<'_>, user: &UserId) -> Result<Option<i64>> {
    tx.value(sql::LOCK_USER, values![user]).await
}

async fn lock_or_insert_user(tx: &mut Tx<'_>, user: &UserId) -> Result<i64> {
    if let Some(id) = lock_user(tx, user).await? {
        return Ok(id);
    }
    tx.execute(sql::INSERT_USER, values![user]).await?;
    let inserted = lock_user(tx, user).await?;
    inserted.ok_or_else(|| BackendError::other("the row of a new user is missing"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Confirmed,
    None,
}

/// The source that asserts a fact, and its confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Assertion {
    source: i64,
    is_trusted: bool,
    confidence: f64,
}

impl Assertion {
    /// Returns whether this assertion is better than the stored one: a trusted source wins over others, then the higher confidence,
    /// then the newer assertion.
    fn replaces(self, stored: Self) -> bool {
        let is_better =
            (self.is_trusted, self.confidence) >= (stored.is_trusted, stored.confidence);
        is_better && (self.source, self.confidence) != (stored.source, stored.confidence)
    }
}

/// Stores facts in order. Returns the id of each and what changed.
async fn store(tx: &mut Tx<'_>, user: &UserId, facts: &[NewFact]) -> Result<Vec<(i64, Change)>> {
    let user = lock_or_insert_user(tx, user).await?;
    let (triples, sources) = ids(tx, user, facts).await?;
    let mut current = current(tx, &triples).await?;
    let (mut new, mut changed) = (Vec::new(), BTreeSet::new());
    let mut changes = Vec::with_capacity(facts.len());
    for ((fact, triple), source) in facts.iter().zip(&triples).zip(sources) {
        let assertion = Assertion {
            source,
            is_trusted: is_trusted(fact),
            confidence: fact.confidence.get(),
        };
        changes.push(match current.get_mut(triple) {
            None => {
                current.insert(*triple, (NEW, assertion));
                new.push((triple, fact));
                Change::New
            }
            Some((id, stored)) if assertion.replaces(*stored) => {
                *stored = assertion;
                if *id != NEW {
                    changed.insert(triple);
                }
                Change::Confirmed
            }
            Some(_) => Change::None,
        });
    }
    let changed = changed.into_iter().map(|triple| {
        let (id, assertion) = &current[triple];
        bulk_row![id, assertion.source, assertion.confidence]
    });
    let changed: Vec<_> = changed.collect();
    tx.batch(sql::SET_ASSERTIONS, &[], &changed, |_| Ok(()))
        .await?;
    let new = new.into_iter().map(|(triple, fact)| {
        let [subject, predicate, object] = triple.map(Value::Int);
        let (_, assertion) = current[triple];
        let source = Value::Int(assertion.source);
        let confidence = Value::Real(assertion.confidence);
        let (created, valid_from) = (fact.created.to_value(), fact.valid_from.to_value());
        [
            subject, predicate, object, source, confidence, created, valid_from,
        ]
    });
    let new: Vec<_> = new.collect();
    let set_id = |row: Row<'_>| {
        let id = row.get(0)?;
        current
            .entry(triple_in(row)?)
            .and_modify(|fact| fact.0 = id);
        Ok(())
    };
    tx.batch(sql::INSERT_FACTS, &[], &new, set_id).await?;
    let changes = triples.iter().zip(changes);
    let changes = changes.map(|(triple, change)| (current[triple].0, change));
    Ok(changes.collect())
}

/// Reads the current facts among `triples`, with their ids and assertions.
async fn current(
    tx: &mut Tx<'_>,
    triples: &[TripleIds],
) -> Result<HashMap<TripleIds, (i64, Assertion)>> {
    let wanted = triples.iter().map(|triple| triple.map(Value::Int));
    let wanted: Vec<_> = wanted.collect();
    let fact = |row: Row<'_>| {
        let assertion = Assertion {
            confidence: row.get(4)?,
            is_trusted: row.get(5)?,
            source: row.get(6)?,
        };
        Ok((triple_in(row)?, (row.get(0)?, assertion)))
    };
    let found = tx.batch(sql::CURRENT_FACTS, &[], &wanted, fact).await?;
    Ok(found.into_iter().collect())
}

fn triple_in(row: Row<'_>) -> Result<TripleIds> {
    Ok([row.get(1)?, row.get(2)?, row.get(3)?])
}

/// Returns the ids of each fact's names and source. Inserts those that do not exist yet.
async fn ids(tx: &mut Tx<'_>, user: i64, facts: &[NewFact]) -> Result<(Vec<TripleIds>, Vec<i64>)> {
    let keys = facts.iter().map(|fact| {
        let (subject, object) = (fact.subject.name.key(), fact.object.name.key());
        [subject, fact.predicate.predicate_key(), object]
    });
    let keys: Vec<[String; 3]> = keys.collect();
    let (mut entities, mut predicates) = (Names::default(), Names::default());
    // The untrusted sources, then the trusted ones.
    let mut sources = [Names::default(), Names::default()];
    for (fact, [subject, predicate, object]) in facts.iter().zip(&keys) {
        entities.add_entity(subject, &fact.subject);
        entities.add_entity(object, &fact.object);
        predicates.add(predicate, fact.predicate.as_str(), None);
        let source = &fact.source.name;
        sources[usize::from(is_trusted(fact))].add(source, source, None);
    }
    let statements = (sql::ENTITIES_BY_KEY, sql::INSERT_ENTITIES, 3);
    entities.find_ids(tx, statements, values![user]).await?;
    let statements = (sql::PREDICATES_BY_KEY, sql::INSERT_PREDICATES, 2);
    predicates.find_ids(tx, statements, values![user]).await?;
    let statements = (sql::SOURCES_BY_NAME, sql::INSERT_SOURCES, 1);
    for (names, trusted) in sources.iter_mut().zip([false, true]) {
        let shared = values![user, trusted];
        names.find_ids(tx, statements, shared).await?;
    }
    let of_facts = facts.iter().zip(&keys);
    let ids = of_facts.map(|(fact, [subject, predicate, object])| {
        let triple = [
            entities.id(subject),
            predicates.id(predicate),
            entities.id(object),
        ];
        let source = sources[usize::from(is_trusted(fact))].id(&fact.source.name);
        (triple, source)
    });
    Ok(ids.unzip())
}

/// A list of names, which [`Names::find_ids`] sorts by key.
#[derive(Default)]
struct Names<'a>(Vec<NewName<'a>>);

struct NewName<'a> {
    key: &'a str,
    /// The first spelling of the name.
    name: &'a str,
    /// The last type given for the name.
    kind: Option<&'a str>,
    /// The row's id, or [`NEW`] until it is found or inserted.
    id: i64,
}

impl<'a> Names<'a> {
    fn add_entity(&mut self, key: &'a str, entity: &'a Entity) {
        let kind = entity.kind.as_ref().map(Name::as_str);
        self.add(key, entity.name.as_str(), kind);
    }

    fn add(&mut self, key: &'a str, name: &'a str, kind: Option<&'a str>) {
        let id = NEW;
        self.0.push(NewName {
            key,
            name,
            kind,
            id,
        });
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.0.binary_search_by(|name| name.key.cmp(key)).ok()
    }

    fn id(&self, key: &str) -> i64 {
        self.place(key).map_or(NEW, |place| self.0[place].id)
    }

    /// Finds the ids by key. Inserts new names with the first `columns` columns of key, name and type, and updates
    /// types that differ from the stored ones.
    async fn find_ids(
        &mut self,
        tx: &mut Tx<'_>,
        (by_key, insert, columns): (Sql, Sql, usize),
        shared: &[Value<'_>],
    ) -> Result<()> {
        self.0.sort_by_key(|name| name.key);
        self.0.dedup_by(|next, first| {
            let is_same = next.key == first.key;
            if is_same {
                first.kind = next.kind.or(first.kind);
            }
            is_same
        });
        let keys: Vec<_> = self.0.iter().map(|name| [name.key.to_value()]).collect();
        let mut changed = Vec::new();
        let known = |row: Row<'_>| {
            let Some(place) = self.place(&row.get::<Cow<'_, str>>(1)?) else {
                return Ok(());
            };
            let name = &mut self.0[place];
            name.id = row.get(0)?;
            if let Some(kind) = name.kind
                && row.get::<Option<Cow<'_, str>>>(2)?.as_deref() != Some(kind)
            {
                changed.push([Value::Int(name.id), kind.to_value()]);
            }
            Ok(())
        };
        tx.batch(by_key, shared, &keys, known).await?;
        tx.batch(sql::SET_KINDS, &[], &changed, |_| Ok(())).await?;
        let new = self.0.iter().filter(|name| name.id == NEW).map(|name| {
            let kind = name.kind.map_or(Value::Null, str::to_value);
            let mut row = vec![name.key.to_value(), name.name.to_value(), kind];
            row.truncate(columns);
            row
        });
        let new: Vec<_> = new.collect();
        let inserted = |row: Row<'_>| {
            if let Some(place) = self.place(&row.get::<Cow<'_, str>>(1)?) {
                self.0[place].id = row.get(0)?;
            }
            Ok(())
        };
        tx.batch(insert, shared, &new, inserted).await?;
        if self.0.iter().any(|name| name.id == NEW) {
            return Err(BackendError::other("a name was not stored"));
        }
        Ok(())
    }
}

fn is_trusted(fact: &NewFact) -> bool {
    fact.source.trust == Trust::Trusted
}
