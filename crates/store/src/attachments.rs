//! Stores the bytes of attachments, by user and digest.
//!
//! Bytes are stored while a session refers to them, or while a recent put may still be waiting for its event. Each put counts
//! separately: the first event of a session that refers to the bytes consumes the oldest put. So deleting one session never
//! removes bytes that were put for another. Appends write the references together with their events.
//!
//! A put updates the row of its bytes, and a deletion locks that row before it looks for other uses. So if a put and a deletion
//! run concurrently in PostgreSQL, the later one sees the result of the earlier one. Times are in milliseconds since 1970, by the
//! clock of the database.

use crate::StoreFuture;
use crate::backend::text::hex;
use crate::backend::{Result, Row, Sql, Tx, Value, sql, statements, values};
use crate::decode::{check_user, failed};
use crate::store::Store;
use lango_core::{AttachmentStore, StoreError, Text, UserId};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Maximum size of an attachment, in bytes.
pub(crate) const MAX_ATTACHMENT_BYTES: usize = 10 << 20;

/// How long an attachment that no event refers to is stored, in milliseconds.
const LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;

/// Number of expired attachments that each put deletes.
const EXPIRED_BATCH: usize = 4;

/// Number of a session's attachment references that one removal step deletes. Each may free up to
/// [`MAX_ATTACHMENT_BYTES`] bytes.
const REFERENCE_BATCH: usize = 4;

/// Returns the digest under which bytes are stored: their SHA-256 in hexadecimal digits.
pub(crate) fn digest_of(bytes: &[u8]) -> Text {
    hex(&Sha256::digest(bytes)).into()
}

impl AttachmentStore for Store {
    fn put(&self, user: &UserId, bytes: Arc<[u8]>) -> StoreFuture<'_, Text> {
        let user = user.clone();
        Box::pin(async move {
            let size = bytes.len();
            if size > MAX_ATTACHMENT_BYTES {
                return Err(failed(format!(
                    "an attachment of {size} bytes is too large to store; the limit is {MAX_ATTACHMENT_BYTES} bytes"
                )));
            }
            check_user(&user, "an attachment")?;
            let hashed = Arc::clone(&bytes);
            let digest = tokio::task::spawn_blocking(move || digest_of(&hashed)).await;
            let digest = digest.map_err(|error| {
                failed(format!(
                    "computing the digest of an attachment failed: {error}"
                ))
            })?;
            let args = (user, digest.clone(), bytes);
            let put = self
                .backend
                .write_autocommit(args, |tx, (user, digest, bytes)| {
                    Box::pin(async move {
                        tx.execute(PUT, values![user, digest, bytes]).await?;
                        if tx.is_sqlite() {
                            tx.execute(RECORD_PUT, values![user, digest]).await?;
                        }
                        Ok(())
                    })
                });
            put.await?;
            // The bytes are stored. If this fails, a later put deletes the expired ones.
            let _ = self.delete_expired_puts().await;
            Ok(digest)
        })
    }

    fn read(&self, user: &UserId, digest: &str) -> StoreFuture<'_, Option<Arc<[u8]>>> {
        let values = values![user, digest];
        self.backend.query_opt(BYTES, values, |row| row.get(0))
    }
}

impl Store {
    /// Deletes a few puts that no event referred to in time, and bytes that are no longer used. Returns the number of
    /// deleted puts.
    pub(crate) async fn delete_expired_puts(&self) -> Result<usize, StoreError> {
        let values = values![LIFETIME_MS, EXPIRED_BATCH];
        let put = |row: Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let expired = self.backend.query(EXPIRED_PUTS, values, put);
        let expired: Vec<(Text, Text, i64)> = expired.await?;
        let count = expired.len();
        for put in expired {
            let deleted = self.backend.erase(put, |tx, (user, digest, time)| {
                Box::pin(async move {
                    let values = values![user, digest, time];
                    delete(tx, user, digest, DELETE_PUT, values).await
                })
            });
            deleted.await?;
        }
        Ok(count)
    }
}

/// Deletes a few references of a session, and bytes that are no longer used. Returns whether there were any references.
pub(crate) async fn remove_references(tx: &mut Tx<'_>, user: &str, session: &str) -> Result<bool> {
    let values = values![session, REFERENCE_BATCH];
    let digests: Vec<Text> = tx.column(REFERENCES, values).await?;
    for digest in &digests {
        let values = values![session, digest];
        delete(tx, user, digest, DELETE_REFERENCE, values).await?;
    }
    Ok(!digests.is_empty())
}

/// Deletes a put or a reference, and its bytes if they are no longer used. Puts and other deletions of the same bytes wait until
/// the transaction ends.
async fn delete(
    tx: &mut Tx<'_>,
    user: &str,
    digest: &str,
    statement: Sql,
    values: &[Value<'_>],
) -> Result<()> {
    tx.exists(LOCK_BYTES, values![user, digest]).await?;
    tx.execute(statement, values).await?;
    let values = values![user, digest, LIFETIME_MS];
    tx.execute(DELETE_UNUSED, values).await.map(drop)
}

macro_rules! now {
    () => {
        "/*sqlite unixepoch('subsec') * 1000*/ /*postgres (extract(epoch FROM clock_timestamp()) * 1000)::bigint*/"
    };
}

/// Stores bytes unless they are already stored, and records a put with a time that no other put of the same bytes has. SQLite
/// needs [`RECORD_PUT`] for the second part.
pub(crate) const PUT: Sql = sql!(
    sqlite: "INSERT INTO attachments (user, digest, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
    postgres: r#"WITH stored AS (
        INSERT INTO attachments ("user", digest, bytes) VALUES ($1, $2, $3)
            ON CONFLICT ("user", digest) DO UPDATE SET digest = excluded.digest
        RETURNING "user", digest)
     INSERT INTO attachment_puts ("user", digest, time)
     SELECT "user", digest, greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                                     (SELECT max(time) + 1 FROM attachment_puts WHERE "user" = $1 AND digest = $2))
       FROM stored
         ON CONFLICT ("user", digest, time) DO NOTHING"#
);

pub(crate) const RECORD_PUT: Sql = sql!(
    sqlite: "INSERT INTO attachment_puts (user, digest, time)
     SELECT ?1, ?2, max(CAST(unixepoch('subsec') * 1000 AS INTEGER), coalesce(max(time) + 1, 0))
       FROM attachment_puts WHERE user = ?1 AND digest = ?2",
    postgres: ""
);

statements! {
    BYTES: r#"SELECT bytes FROM attachments WHERE "user" = $1 AND digest = $2"#;

    /// Selects up to `$2` attachments that a session refers to.
    REFERENCES: "SELECT digest FROM attachment_references WHERE session = $1 ORDER BY digest LIMIT $2";

    DELETE_REFERENCE: "DELETE FROM attachment_references WHERE session = $1 AND digest = $2";

    LOCK_BYTES: r#"SELECT 1 FROM attachments WHERE "user" = $1 AND digest = $2 /*postgres FOR UPDATE*/"#;

    /// Deletes bytes that no session refers to and that were not put within the last `$3` milliseconds.
    DELETE_UNUSED: concat!(
        r#"DELETE FROM attachments
      WHERE "user" = $1 AND digest = $2
        AND NOT EXISTS (SELECT 1 FROM attachment_references WHERE "user" = $1 AND digest = $2)
        AND NOT EXISTS (SELECT 1 FROM attachment_puts WHERE "user" = $1 AND digest = $2
                           AND time >= "#,
        now!(),
        " - $3::bigint)"
    );

    /// Selects the oldest puts that are older than `$1` milliseconds.
    EXPIRED_PUTS: concat!(
        r#"SELECT "user", digest, time FROM attachment_puts WHERE time < (SELECT "#,
        now!(),
        " - $1::bigint) ORDER BY time LIMIT $2"
    );

    DELETE_PUT: r#"DELETE FROM attachment_puts WHERE "user" = $1 AND digest = $2 AND time = $3"#;
}
