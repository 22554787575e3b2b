//! Sessions that are to be gone: hidden first, then removed from every table a bounded part at a time, their bytes wiped
//! from the pages they were in.

use super::ids;
use super::statements::{
    BEGIN_WIPING, COLLECTION_OF_SESSION, CONTEXTS, DELETE_COLLECTION, DELETE_MANY,
    DELETE_OLD_TASKS, DELETE_SESSION, DELETE_SMALL, DELETE_TASKS, DELETE_TURNS, END_WIPING,
    EXPIRED, HIDDEN_USER, HIDE,
};
use crate::archive::{Expired, Removing, Wiped, hidden_user};
use crate::engine::Tx;
use crate::library::remove_document;
use crate::sqlite::SqliteEngine;
use crate::sqlite::attachments;
use crate::sqlite::failure::Failure;
use crate::sqlite::rows::{bound, limit};
use futures_util::FutureExt as _;
use lango_core::{BoxFuture, SessionId, StoreError, Text, Timestamp, UserId};
use rusqlite::{Connection, OptionalExtension as _, params};

/// How many rows one step removes.
const REMOVED_AT_ONCE: usize = 100;

impl Removing for SqliteEngine {
    fn hide(
        &self,
        session: &SessionId,
        unused_since: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        let session = session.clone();
        let since = unused_since.map(|time| bound(time.0));
        Box::pin(self.writer.change(move |connection| {
            let mut hide = connection.prepare_cached(HIDE)?;
            Ok(hide.execute(params![session.as_str(), since])? > 0)
        }))
    }

    fn remove_some(&self, session: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>> {
        let session = session.clone();
        Box::pin(self.writer.change_on(move |connection| {
            connection.execute_batch(BEGIN_WIPING)?;
            let removed = remove_some(connection, session.as_str());
            connection.execute_batch(END_WIPING)?;
            let is_removed = removed?;
            if is_removed {
                attachments::delete_expired(connection)?;
            }
            Ok(is_removed)
        }))
    }

    fn hidden(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let user = hidden_user(user);
        let after = after.map_or_else(String::new, ToString::to_string);
        Box::pin(
            self.readers
                .read(move |reader| ids(reader, &user, &after, limit)),
        )
    }

    fn expired(
        &self,
        user: &UserId,
        unused_since: Timestamp,
        page: Expired,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let user = user.clone();
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(EXPIRED)?;
            let values = params![
                user.as_str(),
                bound(unused_since.0),
                limit(page.limit),
                limit(page.skip)
            ];
            let found =
                statement.query_map(values, |row| Ok(SessionId::new(row.get::<_, Text>(0)?)))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        }))
    }

    fn remove_tasks(
        &self,
        user: &UserId,
        before: Timestamp,
        most: usize,
    ) -> BoxFuture<'_, Result<u64, StoreError>> {
        let user = user.clone();
        Box::pin(self.writer.change(move |connection| {
            connection.execute_batch(BEGIN_WIPING)?;
            let values = params![user.as_str(), bound(before.0), limit(most)];
            let removed = connection
                .prepare_cached(DELETE_OLD_TASKS)?
                .execute(values)?;
            connection.execute_batch(END_WIPING)?;
            Ok(removed as u64)
        }))
    }

    fn wipe(&self) -> BoxFuture<'_, Result<Wiped, StoreError>> {
        Box::pin(async {
            while self.writer.change(attachments::delete_expired).await? > 0 {}
            self.compact().await
        })
    }
}

fn remove_some(connection: &mut Connection, session: &str) -> Result<bool, Failure> {
    let user: Option<Text> = connection
        .prepare_cached(HIDDEN_USER)?
        .query_row([session], |row| row.get(0))
        .optional()?;
    let Some(user) = user else {
        return Ok(true);
    };
    if remove_library(connection, session)?
        || attachments::remove_some(connection, &user, session)?
        || remove_turns(connection, &user, session)?
    {
        return Ok(false);
    }
    for statement in DELETE_MANY {
        let most = limit(REMOVED_AT_ONCE);
        let removed = connection
            .prepare_cached(statement)?
            .execute(params![session, most])?;
        if removed > 0 {
            return Ok(false);
        }
    }
    for statement in DELETE_SMALL {
        connection.prepare_cached(statement)?.execute([session])?;
    }
    connection
        .prepare_cached(DELETE_SESSION)?
        .execute([session])?;
    Ok(true)
}

/// Removes a part of what only this session could search; says whether there was any.
fn remove_library(connection: &mut Connection, session: &str) -> Result<bool, Failure> {
    let found: Option<(i64, Text, Option<i64>)> = connection
        .prepare_cached(COLLECTION_OF_SESSION)?
        .query_row([session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    match found {
        None => return Ok(false),
        Some((_, user, Some(document))) => {
            let (mut tx, user) = (Tx::sqlite(connection), UserId::new(user));
            let removed = remove_document(&mut tx, &user, document).now_or_never();
            removed.unwrap_or(Ok(()))?;
        }
        Some((collection, _, None)) => {
            connection
                .prepare_cached(DELETE_COLLECTION)?
                .execute([collection])?;
        }
    }
    Ok(true)
}

/// Removes some turns, or before them the tasks that they and their neighbours were; says whether there were any.
fn remove_turns(connection: &Connection, user: &str, session: &str) -> Result<bool, Failure> {
    let most = limit(REMOVED_AT_ONCE);
    let contexts: Vec<String> = connection
        .prepare_cached(CONTEXTS)?
        .query_map(params![session, user, most], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if let Some(context) = contexts.first() {
        let removed = connection
            .prepare_cached(DELETE_TASKS)?
            .execute(params![user, context, most])?;
        return Ok(removed > 0);
    }
    let removed = connection
        .prepare_cached(DELETE_TURNS)?
        .execute(params![session, most])?;
    Ok(removed > 0)
}
