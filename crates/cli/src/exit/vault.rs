//! Errors of the vault with their exit codes and next steps.

use super::{Exit, Failure};
use crate::config::VAULT_PASSPHRASE;
use lango_secrets::InvalidName;
use lango_vault::{MethodId, MethodKind, SecretKind, VaultError};

impl From<InvalidName> for Failure {
    fn from(error: InvalidName) -> Self {
        VaultError::from(error).into()
    }
}

/// Says how to give the secrets of unlock methods to `rotate --master`, or how to remove the methods.
fn give_methods(missing: &[MethodId], without: &[u16]) -> String {
    let count = |kind| missing.iter().filter(|method| method.kind == kind).count();
    let steps = [
        (count(MethodKind::Passphrase) > 0)
            .then(|| format!("type the passphrase at a terminal, or set {VAULT_PASSPHRASE} to it")),
        match count(MethodKind::KeyFile) {
            0 => None,
            1 => Some("set `vault.keyFile` to the key file".to_owned()),
            _ => Some("set `vault.keyFile` to one of the key files (it names only one)".to_owned()),
        },
        (count(MethodKind::Keyring) > 0)
            .then(|| "run it in the desktop session whose keyring has the key".to_owned()),
    ];
    let steps: Vec<String> = steps.into_iter().flatten().collect();
    let mut text = steps.join(", and ");
    if !without.is_empty() {
        let flags = without.iter().map(|id| format!(" --without {id}"));
        let flags: String = flags.collect();
        text.push_str(&format!(
            "; or remove what is missing: `lango secrets rotate --master{flags}`"
        ));
    }
    text
}

/// Says how to go on after the record of a secret was damaged.
fn replace_record(name: &str, kind: SecretKind) -> String {
    let start = "find out who can write the database; then put a backup in its place, or";
    match kind {
        SecretKind::PaymentKey => format!(
            "{start}, if you have the wallet's key elsewhere, `lango secrets rm {name} --yes` and `lango payments wallet import {name}`"
        ),
        kind if kind.is_key() => format!(
            "{start} give the key up with `lango secrets rm {name}`; what it encrypted cannot be read any more then"
        ),
        _ => format!("{start} store the secret anew with `lango secrets set {name}`"),
    }
}

/// Returns the text of an error about a whole vault with the vault's name; `None` for errors about something else.
pub(super) fn name_vault(error: &VaultError, vault: &str) -> Option<String> {
    Some(match error {
        VaultError::Absent => format!("there is no {vault} yet"),
        VaultError::HeadMissing => format!(
            "the head of the {vault} is missing: it was deleted outside lango, and no secret opens without it"
        ),
        VaultError::Exists => format!("there is a {vault} already"),
        VaultError::WrongSecret { method } => format!("the {method} does not unlock the {vault}"),
        VaultError::NoMethod { method } => format!("the {vault} has no {method} to unlock it"),
        VaultError::NoSuchMethod { id } => format!("the {vault} has no unlock method {id}"),
        VaultError::KeyOutdated => {
            format!("the master key of the {vault} was replaced; unlock the vault again")
        }
        VaultError::Changed { detail } => {
            format!("the {vault} was changed outside lango: {detail}")
        }
        VaultError::LastMethod => {
            format!("this would leave no way to unlock the {vault}: one unlock method must remain")
        }
        _ => return None,
    })
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
            VaultError::MethodsNotGiven { missing, without } => {
                let next = give_methods(missing, without);
                return Self::of(Exit::Usage, error, Some(&next));
            }
            VaultError::RolledBack { name, kind, .. }
            | VaultError::RecordChanged { name, kind }
            | VaultError::RecordMissing { name, kind } => {
                let next = replace_record(name, *kind);
                return Self::of(Exit::Failed, error, Some(&next));
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
            VaultError::RecordForeign { name } => {
                let next = replace_record(name, SecretKind::Text);
                return Self::of(Exit::Failed, error, Some(&next));
            }
            VaultError::NotFound { .. } => (Exit::Usage, Some("`lango secrets list` shows them")),
            VaultError::Expired { name, .. } => {
                let next = format!("`lango secrets rotate {name}` gives it a new value");
                return Self::of(Exit::Config, error, Some(&next));
            }
            VaultError::InvalidName(_) => (
                Exit::Usage,
                Some(
                    "give a name such as OPENAI_API_KEY; `lango secrets list` shows those that exist",
                ),
            ),
            VaultError::InvalidValue { .. } | VaultError::ShortPassphrase { .. } => {
                (Exit::Usage, Some("nothing was changed; give another one"))
            }
            VaultError::UnfitForHeader { name } => {
                let next = format!(
                    "store the value without line breaks, or let a program have it: `lango secrets bind {name} --program PROGRAM --env VARIABLE`"
                );
                return Self::of(Exit::Usage, error, Some(&next));
            }
            VaultError::UnfitForBinding { .. } => (
                Exit::Usage,
                Some(
                    "store the value as text, for instance in base64, if what uses it can decode it",
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
