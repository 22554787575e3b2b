//! The passphrases of the environment: one variable for the user's vault, one for that of the server.

use super::VaultAccess;
use crate::config::{SERVER_VAULT_PASSPHRASE, VAULT_PASSPHRASE};
use lango_vault::{SecretValue, UnlockSecret};
use std::sync::Arc;

/// A passphrase of the environment.
pub(super) struct EnvironmentPassphrase {
    value: Arc<SecretValue>,
    /// The variable that has it.
    pub variable: &'static str,
    /// Whether it is the one of another vault, used for want of one for this vault.
    pub is_borrowed: bool,
}

impl EnvironmentPassphrase {
    fn new(value: &Arc<SecretValue>, variable: &'static str) -> Self {
        Self {
            value: Arc::clone(value),
            variable,
            is_borrowed: false,
        }
    }

    pub fn secret(&self) -> UnlockSecret {
        UnlockSecret::Passphrase(SecretValue::new(self.value.expose()))
    }
}

impl VaultAccess {
    /// Returns the passphrase of the environment for this vault.
    pub(super) fn passphrase(&self) -> Option<EnvironmentPassphrase> {
        let own = self.own_passphrase.as_ref();
        let own = own.map(|value| EnvironmentPassphrase::new(value, VAULT_PASSPHRASE));
        if self.is_own() {
            return own;
        }
        let server = self.server_passphrase.as_ref();
        let server = server.map(|value| EnvironmentPassphrase::new(value, SERVER_VAULT_PASSPHRASE));
        server.or(own.map(|own| EnvironmentPassphrase {
            is_borrowed: true,
            ..own
        }))
    }

    /// Returns the passphrase of the environment as an unlock secret, if it is set.
    pub fn environment_passphrase(&self) -> Option<UnlockSecret> {
        self.passphrase().map(|passphrase| passphrase.secret())
    }

    /// Returns the variable that unlocks this vault now.
    pub fn passphrase_variable(&self) -> Option<&'static str> {
        self.passphrase().map(|passphrase| passphrase.variable)
    }

    /// Returns the variable for the passphrase of this vault.
    pub fn own_passphrase_variable(&self) -> &'static str {
        if self.is_own() {
            VAULT_PASSPHRASE
        } else {
            SERVER_VAULT_PASSPHRASE
        }
    }
}
