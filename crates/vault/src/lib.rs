//! The vault: secrets that no model ever sees.
//!
//! A user has one [`Vault`] in the database. A random key encrypts each secret; a key derived from the master key wraps
//! that key; each [`UnlockMethod`] wraps the master key. The head of the vault contains an authenticated manifest of
//! all records, so records that were swapped, rolled back, added or deleted outside lango are refused. Restoring a
//! whole older database is not detected, because no state outside the database records the newest revision.
//!
//! The [`VaultStore`](lango_core::VaultStore) stores the rows as opaque bytes and compares revisions, so that replicas
//! change a vault one after the other.
//!
//! ```
//! use lango_vault::{NewSecret, SecretName, SecretValue, UnlockSecret, Vault, VaultParts};
//! # use lango_vault::VaultError;
//! # use std::sync::Arc;
//! # fn parts() -> VaultParts {
//! #     VaultParts {
//! #         store: Arc::new(lango_store::Store::in_memory()),
//! #         clock: Arc::new(lango_testkit::clock_and_ids::ManualClock::default()),
//! #         owner: lango_core::UserId::from("local"),
//! #         actor: "an example".into(),
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), VaultError> {
//! let vault = Vault::new(parts());
//! let passphrase = UnlockSecret::Passphrase(SecretValue::new("correct horse battery"));
//! let open = vault.create(vec![passphrase]).await?;
//! let name = SecretName::new("OPENAI_API_KEY")?;
//! open.set(&name, NewSecret::new(SecretValue::new("sk-1"))).await?;
//! assert_eq!(open.value(&name).await?.expose(), b"sk-1");
//! # Ok(())
//! # }
//! ```

mod audit;
mod binding_draft;
mod bindings;
mod cipher;
mod crypto;
mod encoding;
mod envelope;
mod error;
mod head;
mod key;
pub mod key_file;
mod manifest;
mod method;
mod open_vault;
mod sealer;
mod tools;
mod vault;

pub use audit::AuditAction;
pub use binding_draft::{BindingDraft, DraftError, bind_command};
pub use error::{VaultError, date, date_and_time, list_methods};
pub use head::{SealedVault, VaultVersion};
pub use key::Key;
pub use lango_secrets::{MAX_SECRET_BYTES, SecretName, SecretValue};
pub use manifest::{MAX_SECRETS, SecretEntry, SecretKind};
pub use method::{
    MAX_METHODS, MIN_PASSPHRASE_CHARACTERS, MethodId, MethodKind, UnlockMethod, UnlockSecret,
};
pub use open_vault::{NewSecret, OpenVault};
pub use sealer::Sealer;
pub use tools::{FieldPlace, SecretField, VaultProvider, describe_choice, vault_tools};
pub use vault::{Vault, VaultParts};
