//! Converts errors of the vault to failures with their kinds and next steps.

use super::{Failure, FailureKind};
use lango_config::VAULT_PASSPHRASE;
use lango_secrets::InvalidName;
use lango_vault::{MethodId, MethodKind, SecretKind, VaultError};

impl From<InvalidName> for Failure {
    fn from(error: InvalidName) -> Self {
        VaultError::from(error).into()
    }
}

/// Describes how to provide the secrets of unlock methods to `rotate --master`, or how to remove the methods.
fn describe_missing_methods(missing: &[MethodId], without: &[u16]) -> String {
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
            "; or remove the missing methods: `lango secrets rotate --master{flags}`"
        ));
    }
    text
}

/// Describes what to do about a damaged record of a secret.
fn describe_record_recovery(name: &str, kind: SecretKind) -> String {
    let start = "find out who can write to the database; then restore a backup, or";
    match kind {
        SecretKind::PaymentKey => format!(
            "{start}, if you have another copy of the wallet's key, run `lango secrets rm {name} --yes` and `lango payments wallet import {name}`"
        ),
        kind if kind.is_key() => format!(
            "{start} delete the key with `lango secrets rm {name}`; data encrypted with it is then lost"
        ),
        _ => format!("{start} store the secret again with `lango secrets set {name}`"),
    }
}

/// Returns the text of an error about a whole vault, with the vault's name; `None` for other errors.
pub(super) fn text_with_vault_name(error: &VaultError, vault: &str) -> Option<String> {
    Some(match error {
        VaultError::Absent => format!("there is no {vault} yet"),
        VaultError::HeadMissing => format!(
            "the head of the {vault} is missing: it was deleted outside lango, and no secret opens without it"
        ),
        VaultError::Exists => format!("the {vault} already exists"),
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
            format!(
                "this would leave no way to unlock the {vault}: at least one unlock method must remain"
            )
        }
        _ => return None,
    })
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let (kind, next) = match &error {
            VaultError::Absent => (
                FailureKind::Config,
                Some("create it with `lango secrets set NAME` or `lango secrets init`"),
            ),
            VaultError::HeadMissing => (
                FailureKind::Failed,
                Some(
                    "find out who can write to the database; then restore a backup, or delete the secrets with `lango secrets destroy --yes`",
                ),
            ),
            VaultError::Exists => (
                FailureKind::Usage,
                Some("use `lango secrets methods add` to add a way to unlock it"),
            ),
            VaultError::WrongSecret { .. } => (
                FailureKind::Config,
                Some("try again; run `lango secrets methods` to see what unlocks the vault"),
            ),
            VaultError::NoMethod { .. } | VaultError::NoSuchMethod { .. } => (
                FailureKind::Usage,
                Some("run `lango secrets methods` to see what unlocks the vault"),
            ),
            VaultError::MethodsNotGiven { missing, without } => {
                let next = describe_missing_methods(missing, without);
                return Self::of(FailureKind::Usage, error, Some(&next));
            }
            VaultError::RolledBack { name, kind, .. }
            | VaultError::RecordChanged { name, kind }
            | VaultError::RecordMissing { name, kind } => {
                let next = describe_record_recovery(name, *kind);
                return Self::of(FailureKind::Failed, error, Some(&next));
            }
            VaultError::KeyFileExists { .. } => (
                FailureKind::Usage,
                Some(
                    "name a path that does not exist; if the file is already the key file of this vault, set `vault.keyFile` to it",
                ),
            ),
            VaultError::KeyOutdated => (FailureKind::Config, Some("lango secrets unlock")),
            VaultError::TooNew { .. } => (
                FailureKind::Config,
                Some("use the lango that wrote it, or a newer one"),
            ),
            VaultError::Changed { .. } => (
                FailureKind::Failed,
                Some(
                    "find out who can write to the database; then restore a backup, or delete the vault with `lango secrets destroy --yes` and store the secrets again",
                ),
            ),
            VaultError::RecordForeign { name } => {
                let next = describe_record_recovery(name, SecretKind::Text);
                return Self::of(FailureKind::Failed, error, Some(&next));
            }
            VaultError::NotFound { .. } => (
                FailureKind::Usage,
                Some("run `lango secrets list` to see the secrets"),
            ),
            VaultError::Expired { name, .. } => {
                let next = format!("use `lango secrets rotate {name}` to set a new value");
                return Self::of(FailureKind::Config, error, Some(&next));
            }
            VaultError::InvalidName(_) => (
                FailureKind::Usage,
                Some(
                    "give a name such as OPENAI_API_KEY; run `lango secrets list` to see the existing ones",
                ),
            ),
            VaultError::InvalidValue { .. } | VaultError::ShortPassphrase { .. } => (
                FailureKind::Usage,
                Some("nothing was changed; give a different one"),
            ),
            VaultError::UnfitForHeader { name } => {
                let next = format!(
                    "store the value without line breaks, or bind it to a program: `lango secrets bind {name} --program PROGRAM --env VARIABLE`"
                );
                return Self::of(FailureKind::Usage, error, Some(&next));
            }
            VaultError::UnfitForBinding { .. } => (
                FailureKind::Usage,
                Some("store the value as text, for example in base64, if its user can decode it"),
            ),
            VaultError::NotBound { .. }
            | VaultError::AlreadyBound { .. }
            | VaultError::VariableTaken { .. } => (
                FailureKind::Usage,
                Some("run `lango secrets list` to see the secrets with their bindings"),
            ),
            VaultError::NameTaken { .. }
            | VaultError::IsKey { .. }
            | VaultError::WrongKind { .. } => (
                FailureKind::Usage,
                Some("run `lango secrets list` to see the secrets"),
            ),
            VaultError::Limit { .. } => (FailureKind::Usage, Some("remove an unused one")),
            VaultError::LastMethod => (
                FailureKind::Usage,
                Some("add another one first: lango secrets methods add --passphrase"),
            ),
            VaultError::Contended => (FailureKind::Failed, Some("run the command again")),
            VaultError::System(_) => (FailureKind::Config, Some("fix the problem named above")),
            VaultError::Store(_) => (FailureKind::Failed, None),
        };
        match error {
            VaultError::Store(error) => error.into(),
            error => Self::of(kind, error, next),
        }
    }
}
