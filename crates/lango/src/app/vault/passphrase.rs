//! Passphrases in the environment: one variable for the user's vault, one for the server's.

use super::VaultAccess;
use lango_config::{SERVER_VAULT_PASSPHRASE, VAULT_PASSPHRASE};
use lango_vault::{SecretValue, UnlockSecret};
use std::sync::Arc;

/// A passphrase from an environment variable.
pub(super) struct EnvironmentPassphrase {
    value: Arc<SecretValue>,
    pub variable: &'static str,
    /// Whether this is the passphrase of the user's vault, tried for the server's vault because the variable for the
    /// server's vault is not set.
    pub is_fallback: bool,
}

impl EnvironmentPassphrase {
    fn new(value: &Arc<SecretValue>, variable: &'static str) -> Self {
        Self {
            value: Arc::clone(value),
            variable,
            is_fallback: false,
        }
    }

    pub(super) fn secret(&self) -> UnlockSecret {
        UnlockSecret::Passphrase(SecretValue::new(self.value.expose()))
    }
}

impl VaultAccess {
    /// Returns the passphrase in the environment for this vault.
    pub(super) fn passphrase(&self) -> Option<EnvironmentPassphrase> {
        let own = self.own_passphrase.as_ref();
        let own = own.map(|value| EnvironmentPassphrase::new(value, VAULT_PASSPHRASE));
        if self.is_own() {
            return own;
        }
        let server = self.server_passphrase.as_ref();
        let server = server.map(|value| EnvironmentPassphrase::new(value, SERVER_VAULT_PASSPHRASE));
        server.or(own.map(|own| EnvironmentPassphrase {
            is_fallback: true,
            ..own
        }))
    }

    /// Returns the passphrase in the environment as an unlock secret, if it is set.
    pub fn environment_passphrase(&self) -> Option<UnlockSecret> {
        self.passphrase().map(|passphrase| passphrase.secret())
    }

    /// Returns the variable that currently provides the passphrase.
    pub fn passphrase_variable(&self) -> Option<&'static str> {
        self.passphrase().map(|passphrase| passphrase.variable)
    }

    /// Returns the variable that is meant for this vault's passphrase.
    pub fn own_passphrase_variable(&self) -> &'static str {
        if self.is_own() {
            VAULT_PASSPHRASE
        } else {
            SERVER_VAULT_PASSPHRASE
        }
    }
}
