//! Makes the extension, the function and the index. That it cannot is no failure: then all is as it is without.

use super::State;
use super::statements as sql;
use crate::library::VectorSearch;
use crate::postgres::database::Database;
use crate::postgres::failure::Failure;
use crate::postgres::statements::start::LOCK_MIGRATIONS;
use deadpool_postgres::{Object, Transaction};
use lango_core::StoreError;

/// How many numbers of all vectors together are indexed at a start: 20,000 vectors of 256 take some seconds.
const INDEXED_AT_START: i64 = 20_000 * 256;

impl State {
    /// Whether the index is missing, and can be made in little time.
    fn is_soon_made(&self) -> bool {
        let Some(index) = self.possible() else {
            return false;
        };
        // One that is there and cannot be used is somebody's who is making it, or what that left.
        let is_missing = self.index.is_none() && self.is_ours;
        is_missing && self.vectors.saturating_mul(index.dimensions) <= INDEXED_AT_START
    }
}

/// At a start, on a schema that is up to date: installs the extension if that is possible, and indexes what little there
/// is. One statement where nothing is to be done.
pub(in crate::postgres) async fn prepare(client: &mut Object) -> Result<(), Failure> {
    match prepare_what_is_missing(client).await {
        Err(failure) if failure.may_pass() => Err(failure),
        // Whatever it is, it hinders nobody who does without.
        Err(_) | Ok(()) => Ok(()),
    }
}

async fn prepare_what_is_missing(client: &mut Object) -> Result<(), Failure> {
    let state = State::of(&***client, None).await?;
    if !state.can_be_installed() && !state.is_soon_made() {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK_MIGRATIONS).await?;
    transaction.batch_execute(sql::INSTALL).await?;
    // Another copy may have been faster while this one waited for its turn.
    let state = State::of(&*transaction, None).await?;
    if state.is_soon_made() {
        try_to_make(&transaction, &state).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// When another maker begins whose vectors have so many numbers, and no vector of that length is there.
pub(in crate::postgres) async fn for_other_maker(
    transaction: &Transaction<'_>,
    dimensions: u32,
) -> Result<(), Failure> {
    let dimensions = Some(i64::from(dimensions));
    let state = State::of(&**transaction, dimensions).await?;
    if state.possible().is_none() || state.index.is_some() || !state.is_ours {
        return Ok(());
    }
    transaction.batch_execute(sql::LOCK).await?;
    let state = State::of(&**transaction, dimensions).await?;
    try_to_make(transaction, &state).await
}

async fn try_to_make(transaction: &Transaction<'_>, state: &State) -> Result<(), Failure> {
    let Some(index) = state.possible() else {
        return Ok(());
    };
    transaction.batch_execute(sql::SAVEPOINT).await?;
    let (function, made) = (sql::function(&index), sql::index(&index, ""));
    let all = [sql::ALONE, &function, &made].join(";\n");
    match transaction.batch_execute(&all).await.map_err(Failure::from) {
        Err(failure) if failure.may_pass() => Err(failure),
        Err(_) => Ok(transaction.batch_execute(sql::ROLL_BACK).await?),
        Ok(()) => Ok(()),
    }
}

/// Makes the index of however many vectors there are, while others go on, and removes those that are of no use. Says how
/// the nearest vectors are found then.
pub(in crate::postgres) async fn make(database: &Database) -> Result<VectorSearch, StoreError> {
    database.open().await?;
    let made = async {
        let client = database.connection().await?;
        // What is set and locked here is for this alone, so that the connection is not used again.
        let client = Object::take(client);
        let state = State::of(&*client, None).await?;
        let Some(index) = state.possible() else {
            return Ok(state.described());
        };
        let useless = client.query(sql::USELESS, &[&index.dimensions]).await?;
        if state.is_ours && (state.usable().is_none() || !useless.is_empty()) {
            client.batch_execute(sql::TAKE_TIME).await?;
            let locked = client.query_one(sql::TRY_TO_LOCK_MAKING, &[]).await?;
            if !locked.try_get(0)? {
                return Err(Failure::other("another `lango store compact` is at it"));
            }
            // That one may have ended just before.
            for useless in client.query(sql::USELESS, &[&index.dimensions]).await? {
                client
                    .batch_execute(&sql::remove(useless.try_get(0)?))
                    .await?;
            }
            client.batch_execute(&sql::function(&index)).await?;
            client
                .batch_execute(&sql::index(&index, "CONCURRENTLY"))
                .await?;
        }
        super::described(&*client).await
    };
    made.await.map_err(|failure| database.said(failure))
}
