//! The actions in the audit log, which records who did what to which secret, and when. It never contains a value.

use std::fmt;

/// An action in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditAction {
    VaultCreated,
    /// The vault was deleted with all its secrets.
    VaultDeleted,
    /// A secret was stored for the first time.
    Created,
    /// A secret got a new value.
    Replaced,
    /// The value of a secret was used.
    Used,
    /// A placeholder of a secret was sent to a place that the secret is not bound to, and was blocked.
    Blocked,
    /// A secret was bound to a place where its value may go.
    Bound,
    /// A binding of a secret was removed.
    Unbound,
    /// The public identifier of a key was added. Older versions did not store it.
    PublicIdAdded,
    Removed,
    Unlocked,
    /// An attempt to unlock the vault failed because of a wrong passphrase or key.
    UnlockFailed,
    MasterRotated,
    MethodAdded,
    MethodRemoved,
}

impl fmt::Display for AuditAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::VaultCreated => "vault created",
            Self::VaultDeleted => "vault deleted",
            Self::Created => "created",
            Self::Replaced => "replaced",
            Self::Used => "used",
            Self::Blocked => "blocked",
            Self::Bound => "bound",
            Self::Unbound => "unbound",
            Self::PublicIdAdded => "address added",
            Self::Removed => "removed",
            Self::Unlocked => "unlocked",
            Self::UnlockFailed => "unlock failed",
            Self::MasterRotated => "master key replaced",
            Self::MethodAdded => "unlock method added",
            Self::MethodRemoved => "unlock method removed",
        })
    }
}
