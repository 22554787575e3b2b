//! Masks all values of a vault before a model or a sandboxed program sees text that could contain one. This includes
//! values that this process has not used, because a server or a file may contain what another process sent.

use super::{UseError, UserVaults};
use lango_core::{RecordSelection, UserId};
use lango_secrets::SecretError;
use lango_vault::VaultVersion;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The last check of a user's vault.
#[derive(Clone, Copy)]
pub(super) struct MaskCheck {
    /// The version of the vault; `None` if there was no vault with secrets.
    version: Option<VaultVersion>,
    /// Whether the values of the vault are masked; false if the vault was locked.
    is_masked: bool,
    time: Instant,
}

impl UserVaults {
    /// Masks the values of a user's vault. Does nothing if the last check of this vault is newer than `max_age`. If
    /// the vault was locked at that check, tries again only after the vault has changed, or another part of this
    /// process has opened it.
    pub(super) async fn refresh_masks(&self, user: &UserId, max_age: Duration) {
        let last = self.mask_checks().get(user).copied();
        if last.is_some_and(|last| last.time.elapsed() < max_age) {
            return;
        }
        let Ok(sealed) = self.sealed(user, RecordSelection::None).await else {
            return;
        };
        let sealed = sealed.filter(|sealed| sealed.entries().next().is_some());
        let version = sealed.map(|sealed| sealed.version());
        let mut is_masked = false;
        if let Some(version) = version {
            let was_locked =
                last.is_some_and(|last| last.version == Some(version) && !last.is_masked);
            if !was_locked || self.open.lock().await.contains_key(user) {
                is_masked = self.mask_all(user, version).await.is_ok();
            }
        }
        self.set_mask_check(user, version, is_masked);
    }

    /// Masks the values of a vault, unless that was already done for this version.
    pub(super) async fn mask_all(
        &self,
        user: &UserId,
        version: VaultVersion,
    ) -> Result<(), SecretError> {
        let last = self.mask_checks().get(user).copied();
        if last.is_some_and(|last| last.version == Some(version) && last.is_masked) {
            return Ok(());
        }
        let values = self.with_open(user, async |vault| vault.values_to_mask().await);
        for (name, value) in values.await.map_err(UseError::into_secret_error)? {
            self.masks.add(name.as_str(), &value);
        }
        self.set_mask_check(user, Some(version), true);
        Ok(())
    }

    fn set_mask_check(&self, user: &UserId, version: Option<VaultVersion>, is_masked: bool) {
        let check = MaskCheck {
            version,
            is_masked,
            time: Instant::now(),
        };
        self.mask_checks().insert(user.clone(), check);
    }

    fn mask_checks(&self) -> MutexGuard<'_, HashMap<UserId, MaskCheck>> {
        let checks = self.mask_checks.lock();
        checks.unwrap_or_else(PoisonError::into_inner)
    }
}
