//! Where the key of a provider is stored: in the vault, or in the file of keys.

use crate::app::Failure;
use crate::app::credentials_file::store_key;
use crate::app::model_selector::known_provider;
use crate::app::vault::import::{ImportResult, Replace, import_variable};
use crate::app::vault::secret_of;
use lango_net::Url;
use lango_secrets::{SecretName, SecretValue};
use lango_vault::OpenVault;
use std::path::PathBuf;

/// Where to store a key.
pub(super) enum KeyStorage<'a> {
    Vault {
        open: &'a OpenVault,
        name: SecretName,
        replace: Replace,
    },
    File {
        path: PathBuf,
        /// The address that the key is for.
        address: Url,
    },
}

impl<'a> KeyStorage<'a> {
    /// Stores the key in the vault. A secret that happens to have the same name is not replaced: only one with the
    /// usual name of a known provider's key, or the one that `setting` names.
    pub(super) fn in_vault(
        open: &'a OpenVault,
        provider: &str,
        setting: Option<&str>,
    ) -> Result<Self, Failure> {
        let name = secret_name(provider)?;
        let is_own = known_provider(provider).is_some_and(|known| !known.keys.is_empty())
            || setting
                .is_some_and(|setting| secret_of(setting).unwrap_or(setting) == name.as_str());
        let replace = if is_own {
            Replace::Allowed
        } else {
            Replace::Never
        };
        Ok(Self::Vault {
            open,
            name,
            replace,
        })
    }

    /// Stores the key. Returns what was stored, as a line to print.
    pub(super) async fn store(&self, provider: &str, key: SecretValue) -> Result<String, Failure> {
        match self {
            Self::Vault {
                open,
                name,
                replace,
            } => match import_variable(open, name, key, *replace).await? {
                ImportResult::Different => Err(taken(provider, name)),
                _ => Ok(format!("stored the key in the vault as {name}")),
            },
            Self::File { path, address } => {
                store_key(path, provider, address, &key)?;
                Ok(format!("stored the key in {}", path.display()))
            }
        }
    }
}

/// Returns the name of the secret under which a vault stores the key of a provider.
pub(super) fn secret_name(provider: &str) -> Result<SecretName, Failure> {
    let usual = known_provider(provider).and_then(|known| known.keys.first());
    let name = usual.cloned().unwrap_or_else(|| {
        let letter = |letter: char| match letter.to_ascii_uppercase() {
            upper if upper.is_ascii_alphanumeric() => upper,
            _ => '_',
        };
        let id: String = provider.chars().map(letter).collect();
        format!("{id}_API_KEY")
    });
    Ok(SecretName::new(&name)?)
}

/// Returns the value of `apiKeyEnv` for a secret.
pub(super) fn setting_of(name: &SecretName) -> String {
    format!("secret:{name}")
}

fn taken(provider: &str, name: &SecretName) -> Failure {
    let message = format!(
        "the vault has another secret `{name}`, and provider `{provider}` does not use it; nothing was written"
    );
    Failure::usage(message).next(format!(
        "choose another name for the provider, rename the secret, or run `lango config set providers.{provider}.apiKeyEnv {}` if it is the provider's old key",
        setting_of(name)
    ))
}
