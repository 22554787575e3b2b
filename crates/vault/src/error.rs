//! What can go wrong with a vault. No text contains a value.

use crate::method::MethodKind;
use chrono::DateTime;
use lango_core::{StoreError, Timestamp};

/// Why a vault did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The user has none.
    #[error("there is no vault yet")]
    Absent,
    /// The user has one already.
    #[error("there is a vault already")]
    Exists,
    /// A passphrase or key does not fit any method of its kind. It does not say how far off it is.
    #[error("the {method} does not unlock the vault")]
    WrongSecret {
        /// What was tried.
        method: MethodKind,
    },
    /// The vault cannot be unlocked in this way.
    #[error("the vault has no {method} to unlock it")]
    NoMethod {
        /// What was tried.
        method: MethodKind,
    },
    /// The key was replaced since it was unlocked.
    #[error("the master key of the vault was replaced; unlock the vault again")]
    KeyOutdated,
    /// The head is not what lango wrote.
    #[error("the vault was changed outside lango: {detail}")]
    Changed {
        /// What is wrong with it.
        detail: &'static str,
    },
    /// A newer lango wrote it.
    #[error("the vault was written by a newer lango (format {found}, this one knows {known})")]
    TooNew {
        /// The format it has.
        found: u8,
        /// The newest this lango knows.
        known: u8,
    },
    /// The record is an older version than the manifest has.
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
    },
    /// The record is not the one in the manifest.
    #[error(
        "the stored record of `{name}` is not the one that the vault expects: it was changed outside lango"
    )]
    RecordChanged {
        /// The secret.
        name: String,
    },
    /// The manifest has a record that the store has not.
    #[error("the stored record of `{name}` is missing: it was deleted outside lango")]
    RecordMissing {
        /// The secret.
        name: String,
    },
    /// The store has a record that the manifest has not.
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
    /// Its time is over.
    #[error("the secret `{name}` expired on {}", date(*at))]
    Expired {
        /// The secret.
        name: String,
        /// When it expired.
        at: Timestamp,
    },
    /// The name cannot be used.
    #[error(
        "`{name}` cannot be the name of a secret: use up to 100 letters, digits, `_`, `-` and `.`, and begin with a letter or digit"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// The value cannot be stored.
    #[error("{detail}")]
    InvalidValue {
        /// Why.
        detail: String,
    },
    /// The passphrase is too short to protect anything.
    #[error("a passphrase has at least {least} characters")]
    ShortPassphrase {
        /// How many.
        least: usize,
    },
    /// A limit was reached.
    #[error("a vault has at most {most} {things}")]
    Limit {
        /// How many.
        most: usize,
        /// Of what.
        things: &'static str,
    },
    /// There is no unlock method with this number.
    #[error("the vault has no unlock method {id}")]
    NoSuchMethod {
        /// The number.
        id: u16,
    },
    /// The last method cannot be removed.
    #[error("this is the only way to unlock the vault")]
    LastMethod,
    /// The key of a method is needed and was not given.
    #[error("nothing that was given fits unlock method {id} ({method})")]
    MethodNotGiven {
        /// Its number.
        id: u16,
        /// What it is.
        method: MethodKind,
    },
    /// Other processes were faster again and again.
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

/// The day of a time, in UTC.
pub fn date(at: Timestamp) -> String {
    let milliseconds = i64::try_from(at.0).unwrap_or(i64::MAX);
    let time =
        DateTime::from_timestamp_millis(milliseconds).unwrap_or(DateTime::<chrono::Utc>::MAX_UTC);
    time.format("%Y-%m-%d").to_string()
}
