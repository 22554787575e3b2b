//! Rules of vaults that all stores share.

use lango_core::{StoreError, UserId, VaultChange};

/// Maximum number of entries in a user's audit log; older ones are deleted.
pub const MOST_VAULT_EVENTS: u64 = 10_000;

/// Maximum size of the head and the records of one change, in bytes.
const MOST_CHANGE_BYTES: usize = 32 << 20;

/// Fails for a change that cannot be stored.
pub(crate) fn check_change(user: &UserId, change: &VaultChange) -> Result<(), StoreError> {
    check_owner(user)?;
    let head = change.head.as_ref().map_or(0, Vec::len);
    let records = change.put.iter().map(|record| record.envelope.len());
    let refused = if head + records.sum::<usize>() > MOST_CHANGE_BYTES {
        "a change of a vault has more than 32 MiB"
    } else if i64::try_from(change.revision).is_err() {
        "the revision of a vault is too large"
    } else if change.expected.is_some_and(|old| old >= change.revision) {
        "the revision of a vault must grow"
    } else {
        return Ok(());
    };
    let detail = refused.to_owned();
    Err(StoreError::Failed { detail })
}

/// Fails for a user whose name cannot be stored.
pub(crate) fn check_owner(user: &UserId) -> Result<(), StoreError> {
    if user.can_be_kept() {
        return Ok(());
    }
    let detail = "a vault belongs to a user whose name cannot be stored: it is empty, too long, or has control characters";
    Err(StoreError::Failed {
        detail: detail.to_owned(),
    })
}
