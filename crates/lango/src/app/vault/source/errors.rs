//! Errors of the users' vaults, converted for the code that uses secrets.

use crate::app::failure::Failure;
use crate::app::vault::VaultAccess;
use lango_secrets::{SecretError, SecretName};
use lango_vault::VaultError;

/// A failed operation on a user's vault.
#[derive(Debug)]
pub enum UseError {
    /// The vault cannot be opened.
    Secret(SecretError),
    /// The operation failed.
    Vault(VaultError),
}

impl UseError {
    pub(super) fn into_secret_error(self) -> SecretError {
        match self {
            Self::Secret(error) => error,
            Self::Vault(error) => SecretError::Unavailable {
                detail: error.to_string(),
            },
        }
    }

    pub(super) fn into_error_about(self, secret: &SecretName) -> SecretError {
        let name = secret.clone();
        match self {
            Self::Vault(VaultError::NotBound { .. }) => SecretError::NotBound { name },
            Self::Vault(
                error @ (VaultError::NotFound { .. }
                | VaultError::Expired { .. }
                | VaultError::RolledBack { .. }
                | VaultError::RecordChanged { .. }
                | VaultError::RecordMissing { .. }),
            ) => SecretError::Unusable {
                name,
                detail: describe_unusable(&error, secret),
            },
            error => error.into_secret_error(),
        }
    }
}

/// Describes why a secret cannot be used, with the next step.
pub(crate) fn describe_unusable(error: &VaultError, name: &SecretName) -> String {
    match error {
        VaultError::Expired { .. } => {
            format!("{error}; `lango secrets rotate {name}` sets a new value")
        }
        VaultError::NotFound { .. } => {
            format!("{error}; `lango secrets set {name}` stores it")
        }
        error => error.to_string(),
    }
}

pub(super) fn missing_vault(access: &VaultAccess) -> SecretError {
    SecretError::Unavailable {
        detail: format!(
            "there is no {} yet; the user can create it with `{} init`",
            access.name(),
            access.command()
        ),
    }
}

pub(super) fn unavailable(error: &Failure) -> SecretError {
    let detail = error.to_string().replace("\n  next: ", "; ");
    SecretError::Unavailable { detail }
}
