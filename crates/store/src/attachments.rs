//! The rules of attachments that are the same in every store: what may be stored, how it is named, and how long bytes are
//! kept that no event refers to.
//!
//! Bytes are kept while a session refers to them or a recent put may still be waiting for its event. Each put counts by
//! itself: the first event of a session that refers to the bytes uses up the oldest put, so that deleting one session
//! never removes bytes that were put for another.

use lango_core::{StoreError, Text, UserId};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The most bytes that one attachment may have.
pub const LARGEST_ATTACHMENT: usize = 10 << 20;

/// How long bytes are kept that no event refers to.
pub(crate) const LIFETIME_OF_PUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How many expired puts one put deletes.
pub(crate) const EXPIRED_AT_ONCE: usize = 4;

/// How many references one step of deleting a session deletes. Each may free the largest attachment.
pub(crate) const REFERENCES_AT_ONCE: usize = 4;

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
pub(crate) async fn admit(user: &UserId, bytes: &Arc<[u8]>) -> Result<Text, StoreError> {
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
