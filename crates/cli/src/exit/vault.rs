//! Errors of the vault with their exit codes and next steps.

use super::{Exit, Failure};
use crate::config::VAULT_PASSPHRASE;
use lango_secrets::InvalidName;
use lango_vault::{MethodKind, VaultError};

impl From<InvalidName> for Failure {
    fn from(error: InvalidName) -> Self {
        VaultError::from(error).into()
    }
}

/// Says how to give the secret of an unlock method to `rotate --master`.
fn give_method(id: u16, method: MethodKind) -> String {
    let give = match method {
        MethodKind::Passphrase => {
            format!("run it at a terminal, or set {VAULT_PASSPHRASE} to this passphrase")
        }
        MethodKind::KeyFile => "set `vault.keyFile` to this key file".to_owned(),
        MethodKind::Keyring => "run it in the desktop session whose keyring has the key".to_owned(),
    };
    format!("{give}; or remove the method: `lango secrets rotate --master --without {id}`")
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let (exit, next) = match &error {
            VaultError::Absent => (
                Exit::Config,
                Some("`lango secrets set NAME` or `lango secrets init` makes it"),
            ),
            VaultError::HeadMissing => (
                Exit::Failed,
                Some(
                    "find out who can write the database; then put a backup in its place, or give the secrets up with `lango secrets destroy --yes`",
                ),
            ),
            VaultError::Exists => (
                Exit::Usage,
                Some("`lango secrets methods add` adds a way to unlock it"),
            ),
            VaultError::WrongSecret { .. } => (
                Exit::Config,
                Some("try again; `lango secrets methods` shows what unlocks the vault"),
            ),
            VaultError::NoMethod { .. } | VaultError::NoSuchMethod { .. } => (
                Exit::Usage,
                Some("`lango secrets methods` shows what unlocks the vault"),
            ),
            VaultError::MethodNotGiven { id, method } => {
                let next = give_method(*id, *method);
                return Self::of(Exit::Usage, error, Some(&next));
            }
            VaultError::KeyFileExists { .. } => (
                Exit::Usage,
                Some(
                    "name a path where nothing is; if the file is the key file of this vault already, set `vault.keyFile` to it",
                ),
            ),
            VaultError::KeyOutdated => (Exit::Config, Some("lango secrets unlock")),
            VaultError::TooNew { .. } => (
                Exit::Config,
                Some("use the lango that wrote it, or a newer one"),
            ),
            VaultError::Changed { .. } => (
                Exit::Failed,
                Some(
                    "find out who can write the database; then put a backup in its place, or delete the vault with `lango secrets destroy --yes` and store the secrets anew",
                ),
            ),
            VaultError::RolledBack { .. }
            | VaultError::RecordChanged { .. }
            | VaultError::RecordMissing { .. }
            | VaultError::RecordForeign { .. } => (
                Exit::Failed,
                Some(
                    "find out who can write the database; then put a backup in its place, or store the secret anew with `lango secrets set`",
                ),
            ),
            VaultError::NotFound { .. } => (Exit::Usage, Some("`lango secrets list` shows them")),
            VaultError::Expired { .. } => (
                Exit::Config,
                Some("`lango secrets rotate NAME` gives it a new value"),
            ),
            VaultError::InvalidName(_) => (Exit::Usage, Some("lango secrets set OPENAI_API_KEY")),
            VaultError::InvalidValue { .. } | VaultError::ShortPassphrase { .. } => {
                (Exit::Usage, Some("nothing was changed; give another one"))
            }
            VaultError::UnfitForHeader { .. } => (
                Exit::Usage,
                Some(
                    "store the value without line breaks, or let a program have it: `lango secrets bind NAME --program PROGRAM --env VARIABLE`",
                ),
            ),
            VaultError::NotBound { .. }
            | VaultError::AlreadyBound { .. }
            | VaultError::VariableTaken { .. } => (
                Exit::Usage,
                Some("`lango secrets list` shows the secrets with their bindings"),
            ),
            VaultError::NameTaken { .. }
            | VaultError::IsKey { .. }
            | VaultError::WrongKind { .. } => {
                (Exit::Usage, Some("`lango secrets list` shows the secrets"))
            }
            VaultError::Limit { .. } => (Exit::Usage, Some("remove one that is not used")),
            VaultError::LastMethod => (
                Exit::Usage,
                Some("add another one first: lango secrets methods add --passphrase"),
            ),
            VaultError::Contended => (Exit::Failed, Some("run the command again")),
            VaultError::System(_) => (Exit::Config, Some("correct what is named above")),
            VaultError::Store(_) => (Exit::Failed, None),
        };
        match error {
            VaultError::Store(error) => error.into(),
            error => Self::of(exit, error, next),
        }
    }
}
