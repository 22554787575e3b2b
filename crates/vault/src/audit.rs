//! The audit log: who did what to which secret, and when. It never contains a value.

use std::fmt;

/// An action in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditAction {
    /// The vault was created.
    VaultCreated,
    /// The vault was deleted with all its secrets.
    VaultDeleted,
    /// A secret was stored for the first time.
    Created,
    /// A secret got a new value.
    Replaced,
    /// The value of a secret was used.
    Used,
    /// A placeholder of a secret was on its way to a place that the secret is not bound to.
    Blocked,
    /// A secret was bound to a place where its value may go.
    Bound,
    /// A binding of a secret was removed.
    Unbound,
    /// The public identifier of a key was stored in clear, which older versions did not do.
    PublicIdAdded,
    /// A secret was deleted.
    Removed,
    /// The vault was unlocked.
    Unlocked,
    /// An attempt to unlock the vault with a wrong passphrase or key.
    UnlockFailed,
    /// The master key was replaced.
    MasterRotated,
    /// An unlock method was added.
    MethodAdded,
    /// An unlock method was removed.
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
