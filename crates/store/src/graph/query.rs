//! Looks up facts by their names, and finds the facts around entities.

use super::statements as sql;
use super::{Entity, Fact, FactPage, FactQuery, MAX_FACTS, Name, NameKind, Validity};
use crate::StoreFuture;
use crate::backend::{
    BackendError, FromRow, Result, Row, Sql, ToValue as _, Tx, Value, values, work,
};
use crate::store::Store;
use lango_core::UserId;
use std::collections::{HashMap, HashSet};

/// Maximum number of names in one lookup. Further ones are ignored.
const MAX_NAMES: usize = 256;

impl Store {
    /// Returns the facts that match a query.
    pub fn query_facts(&self, user: &UserId, query: FactQuery) -> StoreFuture<'_, FactPage> {
        let args = (user.clone(), query);
        work!(self.backend.snapshot(args), |tx, user, query| {
            let Some(user) = user_id(tx, user).await? else {
                return Ok(FactPage::default());
            };
            let names = [&query.subject, &query.predicate, &query.object].map(Option::as_ref);
            let limit = query.limit.min(MAX_FACTS);
            let mut ids = matching(tx, user, names, query.validity, limit + 1).await?;
            let more = ids.len() > limit;
            ids.truncate(limit);
            let facts = facts(tx, &ids).await?;
            Ok(FactPage { facts, more })
        })
    }

    /// Returns facts of the entities with these names, a fair share for each entity. Ignores unknown names, and those after the
    /// first 256.
    pub fn neighbours(
        &self,
        user: &UserId,
        names: Vec<Name>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Fact>> {
        let args = (user.clone(), names, limit);
        work!(self.backend.snapshot(args), |tx, user, names, limit| {
            let Some(user) = user_id(tx, user).await? else {
                return Ok(Vec::new());
            };
            let limit = MAX_FACTS.min(*limit);
            let keys: Vec<String> = names.iter().take(MAX_NAMES).map(Name::key).collect();
            let unique: HashSet<&str> = keys.iter().map(String::as_str).collect();
            let rows: Vec<_> = unique.iter().map(|key| [key.to_value()]).collect();
            let id = |row: Row<'_>| Ok((row.get(1)?, row.get(0)?));
            let found = tx
                .batch(sql::ENTITIES_BY_KEY, values![user], &rows, id)
                .await?;
            let mut ids: HashMap<String, i64> = found.into_iter().collect();
            let entities: Vec<i64> = keys.iter().filter_map(|key| ids.remove(key)).collect();
            let mut edges: HashMap<i64, [Vec<i64>; 2]> = HashMap::new();
            for (direction, statement) in [sql::EDGES_OUT, sql::EDGES_IN].into_iter().enumerate() {
                let add = |row: Row<'_>| {
                    edges.entry(row.get(0)?).or_default()[direction].push(row.get(1)?);
                    Ok(())
                };
                let near = rows_of(&entities);
                tx.batch(statement, values![limit, false], &near, add)
                    .await?;
            }
            let around = entities.iter().filter_map(|entity| edges.get(entity));
            let around: Vec<_> = around.map(|both| interleave(both, limit)).collect();
            facts(tx, &interleave(&around, limit)).await
        })
    }

    /// Returns the alphabetical neighbours of a name: up to `limit` names from this one on, including the name itself
    /// if it exists, then up to `limit` names before it.
    pub fn names_near(
        &self,
        user: &UserId,
        kind: NameKind,
        name: Name,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Name>> {
        let args = (user.clone(), kind, name, limit);
        work!(
            self.backend.snapshot(args),
            |tx, user, kind, name, limit| {
                let Some(user) = user_id(tx, user).await? else {
                    return Ok(Vec::new());
                };
                let statements = match kind {
                    NameKind::Entity => [sql::ENTITIES_FROM, sql::ENTITIES_BEFORE],
                    NameKind::Predicate => [sql::PREDICATES_FROM, sql::PREDICATES_BEFORE],
                };
                let key = kind.key_of(name);
                let limit = MAX_FACTS.min(*limit);
                let values = values![user, key, limit];
                let mut near = Vec::new();
                for statement in statements {
                    near.extend(tx.column::<Name>(statement, values).await?);
                }
                Ok(near)
            }
        )
    }
}

/// Returns the ids of up to `limit` facts by subject, predicate and object. `None` matches any.
pub(super) async fn matching(
    tx: &mut Tx<'_>,
    user: i64,
    names: [Option<&Name>; 3],
    validity: Validity,
    limit: usize,
) -> Result<Vec<i64>> {
    let (mut lookup, mut values) = (0, vec![limit.to_value()]);
    let kinds = [NameKind::Entity, NameKind::Predicate, NameKind::Entity];
    for ((name, kind), weight) in names.into_iter().zip(kinds).zip([4, 2, 1]) {
        let Some(name) = name else { continue };
        let Some(id) = name_id(tx, user, kind, name).await? else {
            return Ok(Vec::new());
        };
        lookup += weight;
        values.push(Value::Int(id));
    }
    if lookup == 0 {
        values.push(Value::Int(user));
    }
    let [current, ended] = sql::LOOKUPS[lookup];
    let mut ids: Vec<i64> = tx.column(current, &values).await?;
    if validity == Validity::Any && ids.len() < limit {
        values[0] = Value::Int((limit - ids.len()) as i64);
        ids.extend(tx.column::<i64>(ended, &values).await?);
    }
    Ok(ids)
}

/// Returns the first item of each list, then the second of each and so on, without duplicates.
fn interleave(lists: &[Vec<i64>], limit: usize) -> Vec<i64> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let ranks = (0..longest).flat_map(|rank| lists.iter().filter_map(move |list| list.get(rank)));
    let mut taken = HashSet::new();
    let unique = ranks.filter(|id| taken.insert(**id));
    unique.take(limit).copied().collect()
}

/// Reads the facts with these ids, in this order.
pub(super) async fn facts(tx: &mut Tx<'_>, ids: &[i64]) -> Result<Vec<Fact>> {
    by_ids(tx, sql::FACTS, ids).await
}

/// Reads the entities with these ids, in this order.
pub(super) async fn entities(tx: &mut Tx<'_>, ids: &[i64]) -> Result<Vec<Entity>> {
    by_ids(tx, sql::ENTITIES, ids).await
}

/// Reads one row for each id, in this order. The id is the first column.
async fn by_ids<T: for<'r> FromRow<'r> + Send>(
    tx: &mut Tx<'_>,
    statement: Sql,
    ids: &[i64],
) -> Result<Vec<T>> {
    let row = |row: Row<'_>| Ok((row.get(0)?, T::read(row, &mut 1)?));
    let found: Vec<(i64, T)> = tx.batch(statement, &[], &rows_of(ids), row).await?;
    // SQLite always returns them in this order.
    if found.iter().map(|(id, _)| id).eq(ids) {
        return Ok(found.into_iter().map(|(_, item)| item).collect());
    }
    let mut found: HashMap<i64, T> = found.into_iter().collect();
    let missing = |id: &i64| BackendError::other(format!("row {id} of the graph does not exist"));
    let ordered = ids
        .iter()
        .map(|id| found.remove(id).ok_or_else(|| missing(id)));
    ordered.collect()
}

/// Builds rows of one value each for [`Tx::batch`].
pub(super) fn rows_of<'a>(ids: impl IntoIterator<Item = &'a i64>) -> Vec<[Value<'a>; 1]> {
    ids.into_iter().map(|id| [id.to_value()]).collect()
}

/// Returns a user's id, or `None` if the user has no facts.
pub(super) async fn user_id(tx: &mut Tx<'_>, user: &UserId) -> Result<Option<i64>> {
    tx.value(sql::USER, values![user]).await
}

pub(super) async fn name_id(
    tx: &mut Tx<'_>,
    user: i64,
    kind: NameKind,
    name: &Name,
) -> Result<Option<i64>> {
    let statement = match kind {
        NameKind::Entity => sql::ENTITY,
        NameKind::Predicate => sql::PREDICATE,
    };
    tx.value(statement, values![user, kind.key_of(name)]).await
}
