//! Errors of a vault. No text contains a value.

use crate::manifest::SecretKind;
use crate::method::{MethodId, MethodKind};
use chrono::DateTime;
use lango_core::{StoreError, Timestamp};
use std::path::PathBuf;

/// An error of a vault.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The user has no vault.
    #[error("there is no vault yet")]
    Absent,
    /// Records or the log of a vault exist, and its head does not.
    #[error(
        "the vault's head is missing: it was deleted outside lango, and no secret opens without it"
    )]
    HeadMissing,
    /// The user already has a vault.
    #[error("there is a vault already")]
    Exists,
    /// The passphrase or key matches no method of its kind. The error reveals nothing more.
    #[error("the {method} does not unlock the vault")]
    WrongSecret {
        /// The kind of the attempted method.
        method: MethodKind,
    },
    /// The vault has no unlock method of this kind.
    #[error("the vault has no {method} to unlock it")]
    NoMethod {
        /// The kind of the attempted method.
        method: MethodKind,
    },
    /// The master key was replaced since the unlock.
    #[error("the master key of the vault was replaced; unlock the vault again")]
    KeyOutdated,
    /// The head was changed outside lango.
    #[error("the vault was changed outside lango: {detail}")]
    Changed {
        /// The problem.
        detail: &'static str,
    },
    /// A newer lango wrote it.
    #[error("the vault was written by a newer lango (format {found}, this one knows {known})")]
    TooNew {
        /// Its format.
        found: u8,
        /// The newest format that this lango reads.
        known: u8,
    },
    /// The record is older than its entry in the manifest.
    #[error(
        "the stored record of `{name}` is older than the vault expects (version {found}, not {expected}): it was changed outside lango"
    )]
    RolledBack {
        /// The secret.
        name: String,
        /// The version of the record.
        found: u64,
        /// The version in the manifest.
        expected: u64,
        /// The kind of the secret.
        kind: SecretKind,
    },
    /// The record is not the one in the manifest.
    #[error(
        "the stored record of `{name}` is not the one that the vault expects: it was changed outside lango"
    )]
    RecordChanged {
        /// The secret.
        name: String,
        /// Its kind.
        kind: SecretKind,
    },
    /// The store lacks a record of the manifest.
    #[error("the stored record of `{name}` is missing: it was deleted outside lango")]
    RecordMissing {
        /// The secret.
        name: String,
        /// Its kind.
        kind: SecretKind,
    },
    /// The manifest lacks a record of the store.
    #[error(
        "the stored record `{name}` is not in the vault's manifest: it was added outside lango"
    )]
    RecordForeign {
        /// The name of the record.
        name: String,
    },
    /// There is no secret of this name.
    #[error("there is no secret `{name}`")]
    NotFound {
        /// The name.
        name: String,
    },
    /// The secret has expired.
    #[error("the secret `{name}` expired on {}", date_and_time(*at))]
    Expired {
        /// The secret.
        name: String,
        /// When it expired.
        at: Timestamp,
    },
    /// There is a secret of this name already.
    #[error("there is a secret `{name}` already")]
    NameTaken {
        /// The secret.
        name: String,
    },
    /// The secret has no such binding.
    #[error(
        "the secret `{name}` is not bound to this use; `lango secrets describe {name}` shows its bindings"
    )]
    NotBound {
        /// The secret.
        name: String,
    },
    /// The secret has this binding already.
    #[error("the secret `{name}` has this binding already")]
    AlreadyBound {
        /// The secret.
        name: String,
    },
    /// Another secret has the environment variable of a new binding.
    #[error(
        "`{variable}` of `{tool}` has the secret `{name}` already; choose another variable, or unbind that one first"
    )]
    VariableTaken {
        /// The variable.
        variable: String,
        /// The tool of the bindings.
        tool: String,
        /// The other secret.
        name: String,
    },
    /// The value has characters that the header of a request cannot carry.
    #[error(
        "the value of `{name}` has a line break or another control character, which the header of a request cannot carry"
    )]
    UnfitForHeader {
        /// The secret.
        name: String,
    },
    /// The value has a zero byte, which neither a variable, a header nor an argument of a tool can carry.
    #[error("the value of `{name}` has a zero byte, so no program, header or tool can be given it")]
    UnfitForBinding {
        /// The secret.
        name: String,
    },
    /// Keys stay inside lango: they cannot be bound, and no value replaces them.
    #[error(
        "`{name}` is a key ({kind}) that stays inside lango: it is neither sent anywhere nor replaced; delete it with `lango secrets rm {name}` if nothing needs it"
    )]
    IsKey {
        /// The secret.
        name: String,
        /// The kind of the key.
        kind: SecretKind,
    },
    /// A key of another kind is needed.
    #[error("`{name}` is not a key for this: it is of the kind {found}, and {needed} is needed")]
    WrongKind {
        /// The secret.
        name: String,
        /// Its kind.
        found: SecretKind,
        /// The kind that is needed.
        needed: SecretKind,
    },
    /// The text cannot be a name.
    #[error(transparent)]
    InvalidName(#[from] lango_secrets::InvalidName),
    /// The value is not valid.
    #[error("{detail}")]
    InvalidValue {
        /// Why.
        detail: String,
    },
    /// The passphrase is too short to protect anything.
    #[error("a passphrase has at least {least} characters")]
    ShortPassphrase {
        /// The limit.
        least: usize,
    },
    /// A limit was reached.
    #[error("a vault has at most {most} {things}")]
    Limit {
        /// The limit.
        most: usize,
        /// The limited things.
        things: &'static str,
    },
    /// There is no unlock method with this id.
    #[error("the vault has no unlock method {id}")]
    NoSuchMethod {
        /// The id.
        id: u16,
    },
    /// Removing this method would leave the vault without an unlock method.
    #[error("this would leave no way to unlock the vault: one unlock method must remain")]
    LastMethod,
    /// The passphrases or keys of these methods are needed but were not provided.
    #[error("nothing that was given fits {}", list_methods(missing))]
    MethodsNotGiven {
        /// The methods.
        missing: Vec<MethodId>,
        /// The methods to leave out for the operation to succeed; empty if that would leave none.
        without: Vec<u16>,
    },
    /// A new key file would replace something that exists.
    #[error("`{}` exists already, and a new key file replaces nothing", path.display())]
    KeyFileExists {
        /// The path.
        path: PathBuf,
    },
    /// Other processes won the race on every retry.
    #[error("other processes keep changing the vault; try again")]
    Contended,
    /// The system failed.
    #[error("{0}")]
    System(String),
    /// The database failed.
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

/// Lists unlock methods for people: `unlock method 2 (passphrase)`, `unlock methods 2 (passphrase) and 3 (key file)`.
pub fn list_methods(methods: &[MethodId]) -> String {
    let names: Vec<String> = methods.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [one] => format!("unlock method {one}"),
        [most @ .., last] => format!("unlock methods {} and {last}", most.join(", ")),
        [] => "no unlock method".to_owned(),
    }
}
