//! Passphrases and keys of this machine that failed to unlock a vault. Several parts of a process open the same
//! vault; a failed secret is neither tried nor logged again until the vault's methods change.

use lango_vault::{SealedVault, UnlockMethod, UnlockSecret};
use std::sync::{Mutex, PoisonError};

/// Maximum number of failures to remember.
const MAX_FAILURES: usize = 16;

struct FailedUnlock {
    methods: Vec<UnlockMethod>,
    secret: UnlockSecret,
}

/// The failed unlocks of this process.
#[derive(Default)]
pub(super) struct FailedUnlocks(Mutex<Vec<FailedUnlock>>);

impl FailedUnlocks {
    /// Returns whether this secret has already failed while the vault had the same methods.
    pub(super) fn contains(&self, vault: &SealedVault, secret: &UnlockSecret) -> bool {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failed = failed.iter();
        failed.any(|own| own.methods == vault.methods() && own.secret.is_same(secret))
    }

    /// Records a failed secret.
    pub(super) fn add(&self, vault: &SealedVault, secret: UnlockSecret) {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= MAX_FAILURES {
            failed.remove(0);
        }
        failed.push(FailedUnlock {
            methods: vault.methods().to_vec(),
            secret,
        });
    }
}
