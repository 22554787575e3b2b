//! The bytes of attachments, stored once for each user and digest, and which sessions refer to them.
//!
//! Bytes are kept while a session refers to them or a recent put may still be waiting for its event. Each put counts by
//! itself: the first event of a session that refers to the bytes uses up the oldest put, so that deleting one session
//! never removes bytes that were put for another.

mod statements;

use crate::engine::{Engine, Failure, Row, Tx, values};
use crate::store::Store;
use lango_core::{AttachmentStore, BoxFuture, StoreError, Text, UserId};
use sha2::{Digest as _, Sha256};
use statements::{
    BYTES, DELETE_PUT, DELETE_REFERENCE, DELETE_UNUSED, EXPIRED_PUTS, LOCK_BYTES, PUT, RECORD_PUT,
    REFERENCES,
};
use std::fmt::Write as _;
use std::sync::Arc;

/// The most bytes that one attachment may have.
pub const LARGEST_ATTACHMENT: usize = 10 << 20;

/// How long bytes are kept that no event refers to, in milliseconds.
const LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;

/// How many expired puts one put deletes.
const EXPIRED_AT_ONCE: usize = 4;

/// How many references one step of deleting a session deletes. Each may free the largest attachment.
const REFERENCES_AT_ONCE: usize = 4;

impl AttachmentStore for Store {
    fn put<'a>(
        &'a self,
        user: &'a UserId,
        bytes: Arc<[u8]>,
    ) -> BoxFuture<'a, Result<Text, StoreError>> {
        Box::pin(async move {
            let digest = admit(user, &bytes).await?;
            let given = (user.clone(), digest.clone(), bytes);
            let put = self.engine.write_one(given, |tx, (user, digest, bytes)| {
                Box::pin(async move {
                    tx.execute(PUT, values![user, digest, bytes]).await?;
                    if tx.is_sqlite() {
                        tx.execute(RECORD_PUT, values![user, digest]).await?;
                    }
                    Ok(())
                })
            });
            put.await?;
            // The bytes are stored. If this fails, a later put does it.
            let _ = delete_expired(&self.engine).await;
            Ok(digest)
        })
    }

    fn read<'a>(
        &'a self,
        user: &'a UserId,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        let given = (user.clone(), Text::from(digest));
        self.engine.read(given, |tx, (user, digest)| {
            Box::pin(async move {
                tx.query_opt(BYTES, values![user, digest], |row| row.get(0))
                    .await
            })
        })
    }
}

/// A put that no event referred to in time.
struct ExpiredPut {
    user: Text,
    digest: Text,
    time: i64,
}

fn expired_put(row: Row<'_>) -> Result<ExpiredPut, Failure> {
    Ok(ExpiredPut {
        user: row.get(0)?,
        digest: row.get(1)?,
        time: row.get(2)?,
    })
}

/// Deletes some puts that no event referred to in time, and the bytes that are not used otherwise. Returns how many.
pub(crate) async fn delete_expired(engine: &Engine) -> Result<usize, StoreError> {
    let expired = engine.read((), |tx, ()| {
        Box::pin(async move {
            let values = values![LIFETIME_MS, EXPIRED_AT_ONCE];
            tx.query(EXPIRED_PUTS, values, expired_put).await
        })
    });
    let expired = expired.await?;
    let count = expired.len();
    for put in expired {
        let deleted = engine.write_twice(put, |tx, ExpiredPut { user, digest, time }| {
            Box::pin(async move {
                lock_bytes(tx, user, digest).await?;
                tx.overwrite_deleted(true)?;
                tx.execute(DELETE_PUT, values![user, digest, time]).await?;
                let deleted = delete_unused(tx, user, digest).await;
                tx.overwrite_deleted(false)?;
                deleted
            })
        });
        deleted.await?;
    }
    Ok(count)
}

/// Deletes some references of a session, and the bytes that are not used any more. Returns whether there were any.
pub(crate) async fn remove_some(
    tx: &mut Tx<'_>,
    user: &str,
    session: &str,
) -> Result<bool, Failure> {
    let values = values![session, REFERENCES_AT_ONCE];
    let digests: Vec<Text> = tx.query(REFERENCES, values, |row| row.get(0)).await?;
    for digest in &digests {
        lock_bytes(tx, user, digest).await?;
        tx.execute(DELETE_REFERENCE, values![session, digest])
            .await?;
        delete_unused(tx, user, digest).await?;
    }
    Ok(!digests.is_empty())
}

/// Makes puts and other deletions of the same bytes wait until the transaction ends. What they did before is seen by the
/// statements that follow.
async fn lock_bytes(tx: &mut Tx<'_>, user: &str, digest: &str) -> Result<(), Failure> {
    tx.query_opt(LOCK_BYTES, values![user, digest], |_| Ok(()))
        .await?;
    Ok(())
}

async fn delete_unused(tx: &mut Tx<'_>, user: &str, digest: &str) -> Result<(), Failure> {
    tx.execute(DELETE_UNUSED, values![user, digest, LIFETIME_MS])
        .await?;
    Ok(())
}

/// Returns the digest that bytes are stored under: their SHA-256 in hexadecimal digits.
pub fn digest_of(bytes: &[u8]) -> Text {
    let digest = Sha256::digest(bytes);
    let mut text = String::with_capacity(2 * digest.len());
    for byte in digest {
        // A string takes whatever is written.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

/// Checks that bytes may be stored for a user, and computes their digest where it blocks no other future.
async fn admit(user: &UserId, bytes: &Arc<[u8]>) -> Result<Text, StoreError> {
    let size = bytes.len();
    if size > LARGEST_ATTACHMENT {
        return Err(failed(format!(
            "an attachment of {size} bytes is too large to store; the limit is {LARGEST_ATTACHMENT} bytes"
        )));
    }
    if !user.can_be_kept() {
        return Err(failed(
            "an attachment belongs to a user whose name cannot be stored: it is empty, too long, or has control characters"
                .to_owned(),
        ));
    }
    let bytes = Arc::clone(bytes);
    let digest = tokio::task::spawn_blocking(move || digest_of(&bytes)).await;
    digest.map_err(|error| {
        failed(format!(
            "the digest of an attachment was not computed: {error}"
        ))
    })
}

fn failed(detail: String) -> StoreError {
    StoreError::Failed { detail }
}
