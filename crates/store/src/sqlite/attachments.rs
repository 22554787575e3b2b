//! The tables of attachments: bytes that were put, and references that are kept in step with the log.

use super::SqliteEngine;
use super::archive::statements::{BEGIN_WIPING, END_WIPING};
use super::failure::Failure;
use super::rows::limit;
use super::statements::attachments::{
    BYTES, DELETE_PUT, DELETE_REFERENCE, DELETE_UNUSED, EXPIRED_PUTS, INSERT_BYTES, INSERT_PUT,
    INSERT_REFERENCE, REFERENCES, USE_PUT,
};
use crate::attachments::{EXPIRED_AT_ONCE, LIFETIME_OF_PUT, REFERENCES_AT_ONCE, admit};
use lango_core::{AttachmentStore, BoxFuture, Event, StoreError, Text, UserId};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::sync::Arc;

impl AttachmentStore for SqliteEngine {
    fn put<'a>(
        &'a self,
        user: &'a UserId,
        bytes: Arc<[u8]>,
    ) -> BoxFuture<'a, Result<Text, StoreError>> {
        Box::pin(async move {
            let digest = admit(user, &bytes).await?;
            let (user, name) = (user.clone(), digest.clone());
            self.writer
                .change(move |connection| put(connection, user.as_str(), &name, &bytes))
                .await?;
            Ok(digest)
        })
    }

    fn read<'a>(
        &'a self,
        user: &'a UserId,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        let (user, digest) = (user.clone(), Text::from(digest));
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(BYTES)?;
            let bytes = statement.query_row(params![user.as_str(), digest], |row| {
                Ok(Arc::from(row.get_ref(0)?.as_blob()?))
            });
            Ok(bytes.optional()?)
        }))
    }
}

fn put(connection: &Connection, user: &str, digest: &str, bytes: &[u8]) -> Result<(), Failure> {
    connection
        .prepare_cached(INSERT_BYTES)?
        .execute(params![user, digest, bytes])?;
    connection
        .prepare_cached(INSERT_PUT)?
        .execute(params![user, digest])?;
    delete_expired(connection)?;
    Ok(())
}

/// Deletes some puts that no event referred to in time, and the bytes that are not used otherwise. Returns how many.
pub(super) fn delete_expired(connection: &Connection) -> Result<usize, Failure> {
    let expired: Vec<(Text, Text, i64)> = connection
        .prepare_cached(EXPIRED_PUTS)?
        .query_map(params![lifetime(), limit(EXPIRED_AT_ONCE)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    if expired.is_empty() {
        return Ok(0);
    }
    connection.execute_batch(BEGIN_WIPING)?;
    let deleted = expired.iter().try_for_each(|(user, digest, time)| {
        connection
            .prepare_cached(DELETE_PUT)?
            .execute(params![user, digest, time])?;
        delete_unused(connection, user, digest)
    });
    connection.execute_batch(END_WIPING)?;
    deleted.map(|()| expired.len())
}

/// Refers to the attachments of an event that was just stored.
pub(super) fn note(connection: &Connection, event: &Event) -> Result<(), Failure> {
    let session = event.session.as_str();
    for attachment in event.body.attachments() {
        let user: Option<Text> = connection
            .prepare_cached(INSERT_REFERENCE)?
            .query_row(params![session, attachment.digest], |row| row.get(0))
            .optional()?;
        if let Some(user) = user {
            connection
                .prepare_cached(USE_PUT)?
                .execute(params![user, attachment.digest])?;
        }
    }
    Ok(())
}

/// Deletes some references of a session, and the bytes that are not used any more. Returns whether there were any.
pub(super) fn remove_some(
    connection: &Connection,
    user: &str,
    session: &str,
) -> Result<bool, Failure> {
    let digests: Vec<Text> = connection
        .prepare_cached(REFERENCES)?
        .query_map(params![session, limit(REFERENCES_AT_ONCE)], |row| {
            row.get(0)
        })?
        .collect::<rusqlite::Result<_>>()?;
    for digest in &digests {
        connection
            .prepare_cached(DELETE_REFERENCE)?
            .execute(params![session, digest])?;
        delete_unused(connection, user, digest)?;
    }
    Ok(!digests.is_empty())
}

fn delete_unused(connection: &Connection, user: &str, digest: &str) -> Result<(), Failure> {
    connection
        .prepare_cached(DELETE_UNUSED)?
        .execute(params![user, digest, lifetime()])?;
    Ok(())
}

fn lifetime() -> i64 {
    i64::try_from(LIFETIME_OF_PUT.as_millis()).unwrap_or(i64::MAX)
}
