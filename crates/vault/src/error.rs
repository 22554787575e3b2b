//! Errors of a vault. No text contains a value.

use crate::manifest::SecretKind;
use crate::method::{MethodId, MethodKind};
use chrono::DateTime;
use lango_core::{StoreError, Timestamp};
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("there is no vault yet")]
    Absent,
    /// Records or the log of a vault exist, but not its head.
    #[error(
        "the vault's head is missing: it was deleted outside lango, and no secret can be opened without it"
    )]
    HeadMissing,
    #[error("there is a vault already")]
    Exists,
    /// The passphrase or key matches no method of its kind. The error reveals nothing more.
    #[error("the {method} does not unlock the vault")]
    WrongSecret { method: MethodKind },
    /// The vault has no unlock method of this kind.
    #[error("the vault has no {method} to unlock it")]
    NoMethod { method: MethodKind },
    /// The master key was replaced after the vault was unlocked.
    #[error("the master key of the vault was replaced; unlock the vault again")]
    KeyOutdated,
    /// The head was changed outside lango.
    #[error("the vault was changed outside lango: {detail}")]
    Changed { detail: &'static str },
    #[error(
        "the vault was written by a newer lango (format {found}; this version knows formats up to {known})"
    )]
    TooNew { found: u8, known: u8 },
    /// The record is older than its entry in the manifest.
    #[error(
        "the stored record of `{name}` is older than the vault expects (version {found}, not {expected}): it was changed outside lango"
    )]
    RolledBack {
        name: String,
        /// The version of the record.
        found: u64,
        /// The version in the manifest.
        expected: u64,
        kind: SecretKind,
    },
    /// The record is not the one in the manifest.
    #[error(
        "the stored record of `{name}` is not the one that the vault expects: it was changed outside lango"
    )]
    RecordChanged { name: String, kind: SecretKind },
    /// A record of the manifest is not in the store.
    #[error("the stored record of `{name}` is missing: it was deleted outside lango")]
    RecordMissing { name: String, kind: SecretKind },
    /// A record of the store is not in the manifest.
    #[error(
        "the stored record `{name}` is not in the vault's manifest: it was added outside lango"
    )]
    RecordForeign { name: String },
    #[error("there is no secret `{name}`")]
    NotFound { name: String },
    #[error("the secret `{name}` expired on {}", date_and_time(*at))]
    Expired { name: String, at: Timestamp },
    #[error("there is a secret `{name}` already")]
    NameTaken { name: String },
    #[error(
        "the secret `{name}` is not bound to this use; `lango secrets describe {name}` shows its bindings"
    )]
    NotBound { name: String },
    #[error("the secret `{name}` already has this binding")]
    AlreadyBound { name: String },
    /// Another secret uses the environment variable of a new binding.
    #[error(
        "`{variable}` of `{tool}` is already used by the secret `{name}`; choose another variable, or unbind that secret first"
    )]
    VariableTaken {
        variable: String,
        tool: String,
        /// The other secret.
        name: String,
    },
    #[error(
        "the value of `{name}` contains a line break or another control character, which is not allowed in a header"
    )]
    UnfitForHeader { name: String },
    #[error(
        "the value of `{name}` contains a zero byte, which is not allowed in a variable, a header or an argument"
    )]
    UnfitForBinding { name: String },
    /// Keys stay inside lango: they cannot be bound or replaced by another value.
    #[error(
        "`{name}` is a key ({kind}) that stays inside lango: it cannot be sent or replaced; if nothing needs it, delete it with `lango secrets rm {name}`"
    )]
    IsKey { name: String, kind: SecretKind },
    #[error("`{name}` cannot be used for this: its kind is {found}, and {needed} is needed")]
    WrongKind {
        name: String,
        found: SecretKind,
        needed: SecretKind,
    },
    #[error(transparent)]
    InvalidName(#[from] lango_secrets::InvalidName),
    #[error("{detail}")]
    InvalidValue { detail: String },
    #[error("a passphrase must have at least {min_characters} characters")]
    ShortPassphrase { min_characters: usize },
    #[error("a vault can have at most {limit} {things}")]
    Limit { limit: usize, things: &'static str },
    #[error("the vault has no unlock method {id}")]
    NoSuchMethod { id: u16 },
    /// Removing this method would leave the vault without an unlock method.
    #[error("this would leave no way to unlock the vault: one unlock method must remain")]
    LastMethod,
    /// The passphrases or keys of these methods are needed but were not provided.
    #[error("no given passphrase or key matches {}", list_methods(missing))]
    MethodsNotGiven {
        missing: Vec<MethodId>,
        /// The methods to leave out for the operation to succeed; empty if no method would remain.
        without: Vec<u16>,
    },
    #[error("`{}` exists already, and lango does not overwrite files with a new key", path.display())]
    KeyFileExists { path: PathBuf },
    /// Other processes changed the vault during every attempt.
    #[error("other processes keep changing the vault; try again")]
    Contended,
    /// An operation of the system failed.
    #[error("{0}")]
    System(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl VaultError {
    pub(crate) fn changed(detail: &'static str) -> Self {
        Self::Changed { detail }
    }
}

/// Formats the date of a time in UTC.
pub fn date(at: Timestamp) -> String {
    utc(at).format("%Y-%m-%d").to_string()
}

/// Formats a time in UTC to the minute.
pub fn date_and_time(at: Timestamp) -> String {
    utc(at).format("%Y-%m-%d %H:%M UTC").to_string()
}

fn utc(at: Timestamp) -> DateTime<chrono::Utc> {
    let milliseconds = i64::try_from(at.0).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(milliseconds).unwrap_or(DateTime::<chrono::Utc>::MAX_UTC)
}

/// Lists unlock methods in a sentence: `unlock method 2 (passphrase)`, `unlock methods 2 (passphrase) and 3 (key
/// file)`.
pub fn list_methods(methods: &[MethodId]) -> String {
    let names: Vec<String> = methods.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [one] => format!("unlock method {one}"),
        [others @ .., last] => format!("unlock methods {} and {last}", others.join(", ")),
        [] => "no unlock method".to_owned(),
    }
}
