//! The tables of attachments: bytes that were put, and references, which appends write with their events.

use super::PostgresEngine;
use super::asking::{execute, row, rows};
use super::database::Values;
use super::failure::Failure;
use super::rows::{limit, text};
use super::statements::attachments::{
    BYTES, DELETE_PUT, DELETE_REFERENCE, DELETE_UNUSED, EXPIRED_PUTS, LOCK_BYTES, PUT, REFERENCES,
};
use super::text::Words;
use crate::attachments::{EXPIRED_AT_ONCE, LIFETIME_OF_PUT, REFERENCES_AT_ONCE, admit};
use deadpool_postgres::Transaction;
use lango_core::{AttachmentStore, BoxFuture, StoreError, Text, UserId};
use std::sync::Arc;

impl AttachmentStore for PostgresEngine {
    fn put<'a>(
        &'a self,
        user: &'a UserId,
        bytes: Arc<[u8]>,
    ) -> BoxFuture<'a, Result<Text, StoreError>> {
        Box::pin(async move {
            let digest = admit(user, &bytes).await?;
            let values: Values<'_> = &[&Words(user.as_str()), &Words(&digest), &&*bytes];
            self.database.query(PUT, values).await?;
            // The bytes are stored. If this fails, a later put does it.
            let _ = self.delete_expired_puts().await;
            Ok(digest)
        })
    }

    fn read<'a>(
        &'a self,
        user: &'a UserId,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(async move {
            let values: Values<'_> = &[&Words(user.as_str()), &Words(digest)];
            let rows = self.database.query(BYTES, values).await?;
            let bytes = |row: &tokio_postgres::Row| Ok(Arc::from(row.try_get::<_, &[u8]>(0)?));
            Ok(self.values(&rows, bytes)?.pop())
        })
    }
}

/// A put that no event referred to in time.
struct ExpiredPut {
    user: Text,
    digest: Text,
    time: i64,
}

impl PostgresEngine {
    /// Deletes some puts that no event referred to in time, and the bytes that are not used otherwise. Returns how many.
    pub(super) async fn delete_expired_puts(&self) -> Result<usize, StoreError> {
        let values: Values<'_> = &[&lifetime(), &limit(EXPIRED_AT_ONCE)];
        let rows = self.database.query(EXPIRED_PUTS, values).await?;
        let expired = self.values(&rows, |row| {
            Ok(ExpiredPut {
                user: text(row, 0)?,
                digest: text(row, 1)?,
                time: row.try_get(2)?,
            })
        })?;
        let count = expired.len();
        for put in expired {
            self.repeatable_change(put, |transaction, put| {
                Box::pin(async move {
                    let (user, digest) = (Words(&put.user), Words(&put.digest));
                    lock_bytes(transaction, user, digest).await?;
                    execute(transaction, DELETE_PUT, &[&user, &digest, &put.time]).await?;
                    delete_unused(transaction, user, digest).await
                })
            })
            .await?;
        }
        Ok(count)
    }
}

/// Deletes some references of a session, and the bytes that are not used any more. Returns whether there were any.
pub(super) async fn remove_some(
    transaction: &Transaction<'_>,
    user: &str,
    session: Words<'_>,
) -> Result<bool, Failure> {
    let values: Values<'_> = &[&session, &limit(REFERENCES_AT_ONCE)];
    let references = rows(transaction, REFERENCES, values).await?;
    for reference in &references {
        let digest = text(reference, 0)?;
        let (user, digest) = (Words(user), Words(&digest));
        lock_bytes(transaction, user, digest).await?;
        execute(transaction, DELETE_REFERENCE, &[&session, &digest]).await?;
        delete_unused(transaction, user, digest).await?;
    }
    Ok(!references.is_empty())
}

/// Makes puts and other deletions of the same bytes wait until the transaction ends. What they did before is seen by the
/// statements that follow.
async fn lock_bytes(
    transaction: &Transaction<'_>,
    user: Words<'_>,
    digest: Words<'_>,
) -> Result<(), Failure> {
    row(transaction, LOCK_BYTES, &[&user, &digest]).await?;
    Ok(())
}

async fn delete_unused(
    transaction: &Transaction<'_>,
    user: Words<'_>,
    digest: Words<'_>,
) -> Result<(), Failure> {
    execute(transaction, DELETE_UNUSED, &[&user, &digest, &lifetime()]).await?;
    Ok(())
}

fn lifetime() -> i64 {
    i64::try_from(LIFETIME_OF_PUT.as_millis()).unwrap_or(i64::MAX)
}
