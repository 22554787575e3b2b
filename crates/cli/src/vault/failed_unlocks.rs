//! The passphrases and keys of this machine that did not unlock a vault. Several parts of a process open the same vault; a
//! secret that failed is neither tried nor logged again until the methods of the vault change.

use lango_vault::{SealedVault, UnlockMethod, UnlockSecret};
use std::sync::{Mutex, PoisonError};

/// Maximum number of failures to remember.
const MOST: usize = 16;

struct FailedUnlock {
    methods: Vec<UnlockMethod>,
    secret: UnlockSecret,
}

/// The unlocks that failed.
#[derive(Default)]
pub struct FailedUnlocks(Mutex<Vec<FailedUnlock>>);

impl FailedUnlocks {
    /// Returns whether this secret failed with the same methods.
    pub fn contains(&self, vault: &SealedVault, secret: &UnlockSecret) -> bool {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failed = failed.iter();
        failed.any(|own| own.methods == vault.methods() && own.secret.is_same(secret))
    }

    /// Remembers a secret that failed.
    pub fn add(&self, vault: &SealedVault, secret: UnlockSecret) {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= MOST {
            failed.remove(0);
        }
        failed.push(FailedUnlock {
            methods: vault.methods().to_vec(),
            secret,
        });
    }
}
