//! From the names in facts to numbers, for many facts at once: what is not known yet is made.

use super::super::asking::{claim, execute, rows};
use super::super::database::Values;
use super::super::failure::Failure;
use super::super::text::{Words, optional_words, words};
use super::statements::{
    ENTITIES_BY_KEYS, INSERT_ENTITIES, INSERT_PREDICATES, INSERT_SOURCES, PREDICATES_BY_KEYS,
    SET_KINDS, SOURCES_BY_NAMES,
};
use crate::graph::{Entity, NewFact};
use deadpool_postgres::Transaction;
use lango_core::Trust;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio_postgres::Row;

/// The numbers of a fact's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Numbers {
    pub subject: i64,
    pub predicate: i64,
    pub object: i64,
}

/// The numbers of each fact, and of its source.
pub(super) async fn numbers(
    transaction: &Transaction<'_>,
    user: i64,
    facts: &[NewFact],
) -> Result<Vec<(Numbers, i64)>, Failure> {
    let entities = entities(transaction, user, facts).await?;
    let predicates = predicates(transaction, user, facts).await?;
    let sources = sources(transaction, user, facts).await?;
    let missing = || Failure::other("a name of a fact has no number");
    let number = |fact: &NewFact| {
        let predicate = fact.predicate.predicate_key();
        let source = (fact.source.name.to_string(), is_trusted(fact));
        let numbers = Numbers {
            subject: *entities.get(&fact.subject.name.key())?,
            predicate: *predicates.get(&predicate)?,
            object: *entities.get(&fact.object.name.key())?,
        };
        Some((numbers, *sources.get(&source)?))
    };
    let numbers = facts.iter().map(|fact| number(fact).ok_or_else(missing));
    numbers.collect()
}

/// An entity of some facts.
struct Named<'a> {
    /// As it was first written.
    name: &'a str,
    /// The last type that was given.
    kind: Option<&'a str>,
}

async fn entities(
    transaction: &Transaction<'_>,
    user: i64,
    facts: &[NewFact],
) -> Result<HashMap<String, i64>, Failure> {
    let mut named: BTreeMap<String, Named<'_>> = BTreeMap::new();
    for entity in facts.iter().flat_map(|fact| [&fact.subject, &fact.object]) {
        let Entity { name, kind } = entity;
        let known = named.entry(name.key()).or_insert(Named {
            name: name.as_str(),
            kind: None,
        });
        known.kind = kind.as_ref().map(|kind| kind.as_str()).or(known.kind);
    }
    let keys: Vec<Words<'_>> = named.keys().map(|key| Words(key)).collect();
    let mut numbers = HashMap::with_capacity(named.len());
    let (mut changed, mut kinds) = (Vec::new(), Vec::new());
    for row in &rows(transaction, ENTITIES_BY_KEYS, &[&user, &keys]).await? {
        let (id, key): (i64, _) = (row.try_get(0)?, words(row, 1)?.into_owned());
        if let Some(kind) = named.get(&key).and_then(|named| named.kind)
            && optional_words(row, 2)?.as_deref() != Some(kind)
        {
            changed.push(id);
            kinds.push(Words(kind));
        }
        numbers.insert(key, id);
    }
    if !changed.is_empty() {
        execute(transaction, SET_KINDS, &[&changed, &kinds]).await?;
    }
    let new = named.iter().filter(|(key, _)| !numbers.contains_key(*key));
    let new: Vec<_> = new.collect();
    if !new.is_empty() {
        let keys: Vec<_> = new.iter().map(|(key, _)| Words(key)).collect();
        let names: Vec<_> = new.iter().map(|(_, named)| Words(named.name)).collect();
        let kinds: Vec<_> = new.iter().map(|(_, named)| named.kind.map(Words)).collect();
        let values: Values<'_> = &[&user, &keys, &names, &kinds];
        for row in &rows(transaction, INSERT_ENTITIES, values).await? {
            numbers.insert(words(row, 1)?.into_owned(), row.try_get(0)?);
        }
    }
    Ok(numbers)
}

async fn predicates(
    transaction: &Transaction<'_>,
    user: i64,
    facts: &[NewFact],
) -> Result<HashMap<String, i64>, Failure> {
    let mut named: BTreeMap<String, &str> = BTreeMap::new();
    for fact in facts {
        let key = fact.predicate.predicate_key();
        named.entry(key).or_insert(fact.predicate.as_str());
    }
    let keys: Vec<Words<'_>> = named.keys().map(|key| Words(key)).collect();
    let mut numbers = HashMap::with_capacity(named.len());
    for row in &rows(transaction, PREDICATES_BY_KEYS, &[&user, &keys]).await? {
        numbers.insert(words(row, 1)?.into_owned(), row.try_get(0)?);
    }
    let new = named.iter().filter(|(key, _)| !numbers.contains_key(*key));
    let (keys, names): (Vec<_>, Vec<_>) = new.map(|(key, name)| (Words(key), Words(name))).unzip();
    if !keys.is_empty() {
        for row in &rows(transaction, INSERT_PREDICATES, &[&user, &keys, &names]).await? {
            numbers.insert(words(row, 1)?.into_owned(), row.try_get(0)?);
        }
    }
    Ok(numbers)
}

async fn sources(
    transaction: &Transaction<'_>,
    user: i64,
    facts: &[NewFact],
) -> Result<HashMap<(String, bool), i64>, Failure> {
    let named: BTreeSet<(String, bool)> = facts
        .iter()
        .map(|fact| (fact.source.name.to_string(), is_trusted(fact)))
        .collect();
    let names: BTreeSet<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let names: Vec<Words<'_>> = names.into_iter().map(Words).collect();
    let mut numbers = HashMap::with_capacity(named.len());
    for row in &rows(transaction, SOURCES_BY_NAMES, &[&user, &names]).await? {
        numbers.insert(source_in(row)?, row.try_get(0)?);
    }
    let new = named.iter().filter(|source| !numbers.contains_key(*source));
    let (names, trusted): (Vec<_>, Vec<_>) = new
        .map(|(name, is_trusted)| (Words(name), i64::from(*is_trusted)))
        .unzip();
    if !names.is_empty() {
        let made = rows(transaction, INSERT_SOURCES, &[&user, &names, &trusted]).await?;
        for row in &made {
            numbers.insert(source_in(row)?, row.try_get(0)?);
        }
    }
    Ok(numbers)
}

fn source_in(row: &Row) -> Result<(String, bool), Failure> {
    Ok((words(row, 1)?.into_owned(), claim(row, 2)?))
}

fn is_trusted(fact: &NewFact) -> bool {
    fact.source.trust == Trust::Trusted
}
