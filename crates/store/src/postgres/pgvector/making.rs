//! Makes the extension, the function and the index. That it cannot is no failure: then all is as it is without.

use super::State;
use super::statements as sql;
use crate::library::VectorSearch;
use crate::postgres::database::Database;
use crate::postgres::failure::Failure;
use crate::postgres::statements::start::LOCK_MIGRATIONS;
use deadpool_postgres::{Object, Transaction};
use lango_core::StoreError;

/// How many numbers of all vectors together are indexed at a start: 50,000 vectors of 256 take about ten seconds.
const INDEXED_AT_START: i64 = 50_000 * 256;

impl State {
    /// Whether the index is missing, where it is of use beyond so many vectors, and can be made in little time.
    fn is_soon_made(&self, signs_read: u64) -> bool {
        let Some(index) = self.possible() else {
            return false;
        };
        // One that is there and cannot be used is somebody's who is making it, or what that left.
        let is_missing = self.index.is_none() && self.is_ours;
        is_missing
            && self.is_of_use(signs_read)
            && self.vectors.saturating_mul(index.dimensions) <= INDEXED_AT_START
    }
}

/// At a start, on a schema that is up to date: installs the extension if that is possible, and makes the index if that
/// is of use and soon done. One statement where nothing is to be done.
pub(in crate::postgres) async fn prepare(
    client: &mut Object,
    signs_read: u64,
) -> Result<(), Failure> {
    match prepare_what_is_missing(client, signs_read).await {
        Err(failure) if failure.is_uncertain() => Err(failure),
        // Whatever it is, it hinders nobody who does without.
        Err(_) | Ok(()) => Ok(()),
    }
}

async fn prepare_what_is_missing(client: &mut Object, signs_read: u64) -> Result<(), Failure> {
    let state = State::of(&***client).await?;
    if !state.can_be_installed() && !state.is_soon_made(signs_read) {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK_MIGRATIONS).await?;
    transaction.batch_execute(sql::INSTALL).await?;
    // Another copy may have been faster while this one waited for its turn.
    let state = State::of(&*transaction).await?;
    if state.is_soon_made(signs_read) {
        try_to_make(&transaction, &state).await?;
    }
    transaction.commit().await?;
    Ok(())
}

async fn try_to_make(transaction: &Transaction<'_>, state: &State) -> Result<(), Failure> {
    let Some(index) = state.possible() else {
        return Ok(());
    };
    transaction.batch_execute(sql::SAVEPOINT).await?;
    let (function, made) = (sql::function(&index), sql::index(&index, ""));
    let all = [sql::ALONE, &function, &made].join(";\n");
    match transaction.batch_execute(&all).await.map_err(Failure::from) {
        Err(failure) if failure.is_uncertain() => Err(failure),
        Err(_) => Ok(transaction.batch_execute(sql::ROLL_BACK).await?),
        Ok(()) => Ok(()),
    }
}

/// Makes the index of however many vectors there are, while others go on, and removes those that are of no use. Says how
/// the nearest vectors are found then.
pub(in crate::postgres) async fn make(database: &Database) -> Result<VectorSearch, StoreError> {
    database.open().await?;
    let signs_read = database.signs_read;
    let made = async {
        let client = database.connection().await?;
        // What is set and locked here is for this alone, so that the connection is not used again.
        let client = Object::take(client);
        let state = State::of(&*client).await?;
        let Some(index) = state.possible() else {
            return Ok(state.described(signs_read));
        };
        let useless = client.query(sql::USELESS, &[&index.dimensions]).await?;
        let is_missing = state.usable().is_none() && state.is_of_use(signs_read);
        if state.is_ours && (is_missing || !useless.is_empty()) {
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
            if state.is_of_use(signs_read) {
                let (function, made) = (sql::function(&index), sql::index(&index, "CONCURRENTLY"));
                client.batch_execute(&function).await?;
                client.batch_execute(&made).await?;
            }
        }
        super::described(&*client, signs_read).await
    };
    made.await.map_err(|failure| database.said(failure))
}
