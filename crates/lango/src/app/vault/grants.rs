//! The file with the logins of MCP servers, encrypted with a key from the vault. lango renews these logins itself, so
//! they stay in their own file; `lango secrets import-env` encrypts it.

use super::{PromptMode, VaultAccess};
use crate::app::failure::Failure;
use crate::app::notice::notice;
use lango_config::Paths;
use lango_mcp::{FileSeal, is_sealed, seal_grants};
use lango_vault::{NewSecret, OpenVault, Sealer, SecretKind, SecretName, VaultError};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The name of the secret that holds the key.
const KEY: &str = "lango-mcp-logins-key";

/// The purpose of the key.
const PURPOSE: &str = "logins of MCP servers";

/// Encryption with a key from the vault.
#[derive(Debug)]
struct VaultSeal(Sealer);

impl FileSeal for VaultSeal {
    fn seal(&self, plain: &[u8]) -> io::Result<Vec<u8>> {
        self.0.seal(plain).map_err(io::Error::other)
    }

    fn open(&self, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let opened = self.0.open(sealed);
        let opened = opened.ok_or_else(|| io::Error::other("it was changed outside lango"))?;
        Ok(opened.expose().to_vec())
    }
}

impl VaultAccess {
    /// Returns the key of an encrypted file with logins. If the vault cannot be opened, all logins count as missing.
    pub async fn grants_seal(
        &self,
        paths: &Paths,
        prompt_mode: PromptMode,
    ) -> Result<Option<Arc<dyn FileSeal>>, Failure> {
        if !is_sealed(&paths.mcp_grants()) {
            return Ok(None);
        }
        let open = match self.open(prompt_mode).await {
            Ok(open) => open,
            // Only the logins of servers are missing then.
            Err(failure) => {
                notice(&format!("logins of MCP servers are not used: {failure}"));
                return Ok(None);
            }
        };
        match open.use_value(&SecretName::new(KEY)?).await {
            Ok(key) => Ok(Some(Arc::new(VaultSeal(sealer(&key)?)))),
            Err(VaultError::NotFound { .. }) => {
                let file = paths.mcp_grants();
                notice(&format!(
                    "warning: {} was encrypted with the secret {KEY}, which no longer exists; delete the file, and log in to the servers again",
                    file.display()
                ));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Encrypts the file with logins. Stores the key and reads it back before touching the file.
pub async fn encrypt(open: &OpenVault, file: &Path) -> Result<(), Failure> {
    let name = SecretName::new(KEY)?;
    let key = match open.value(&name).await {
        Err(VaultError::NotFound { .. }) => {
            let secret = NewSecret {
                kind: Some(SecretKind::Token),
                ..NewSecret::new(Sealer::new_key()?)
            };
            open.set(&name, secret).await?;
            open.value(&name).await?
        }
        key => key?,
    };
    let seal = Arc::new(VaultSeal(sealer(&key)?));
    seal_grants(file.to_owned(), seal).map_err(|error| {
        let message = format!("`{}` cannot be encrypted: {error}", file.display());
        Failure::failed(message).next("run the command again")
    })
}

fn sealer(key: &lango_vault::SecretValue) -> Result<Sealer, Failure> {
    Sealer::new(key, PURPOSE).ok_or_else(|| {
        let message = format!("the secret `{KEY}` is not the key that lango stored");
        Failure::config(message)
            .next("remove the file with logins, and log in to every server again")
    })
}
