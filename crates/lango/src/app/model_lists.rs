//! The models that providers offer, fetched from them and cached for a day.
//!
//! The list decides which model is selected if only a key is set, so reading it must neither fail nor delay a start:
//! a stored list is valid for `FRESH`, a provider has `START_TIMEOUT` to answer, and after a failure it is not
//! asked again for `RETRY_PAUSE`. A file contains ids and times, never a key.

use lango_core::{Clock, Timestamp};
use lango_engine::SystemClock;
use lango_models::{Provider, models_of};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a stored list counts as fresh.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// How long a start waits for a list.
const START_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a command that shows lists waits for one.
const SHOW_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a provider failed to return its list. Until it ends, a start does not ask the provider again.
const RETRY_PAUSE: Duration = Duration::from_secs(600);

/// Limits on stored lists: file size, number of ids, and length of an id. The longest known list has about a thousand
/// ids.
const MAX_FILE_BYTES: u64 = 2 << 20;
const MAX_MODELS: usize = 4000;
const MAX_ID_BYTES: usize = 200;

/// The models that a provider offers, as far as they are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelList {
    /// The ids of the models; empty if nothing is known.
    pub models: Vec<String>,
    pub source: ListSource,
    /// Why the provider's list could not be fetched.
    pub error: Option<String>,
}

/// The source of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSource {
    /// Fetched just now.
    Live,
    /// Fetched at this time.
    Cache(Timestamp),
    /// lango's built-in table of models.
    Table,
}

/// The identity of a list: the same name at another address is another provider.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListKey {
    pub provider: String,
    pub base_url: String,
}

/// Whether starts may store lists. A command that shows lists always stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListStorage {
    Stored,
    ReadOnly,
}

/// The lists of all providers.
pub struct ModelLists {
    directory: PathBuf,
    storage: ListStorage,
    /// Lists known to this process, so that each provider is asked once.
    known: Mutex<BTreeMap<ListKey, ModelList>>,
}

/// The content of a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredList {
    /// Only informative, for a reader of the file.
    provider: String,
    /// When the provider last returned its list; `None` if it never did.
    listed_at: Option<Timestamp>,
    /// When the provider last failed to return its list. The error is not stored, because it may repeat the rejected
    /// key.
    failed_at: Option<Timestamp>,
    models: Vec<String>,
}

impl ModelLists {
    /// Creates the cache without reading or writing anything yet.
    pub fn at(directory: PathBuf, storage: ListStorage) -> Self {
        Self {
            directory,
            storage,
            known: Mutex::default(),
        }
    }

    /// Returns the list for choosing a model at the start: a fresh one if one is stored or the provider answers in
    /// time, else whatever is stored. Never fails; the list may be empty.
    pub async fn list_for_start(&self, key: &ListKey, provider: &Provider) -> ModelList {
        if let Some(list) = self.known().get(key) {
            return list.clone();
        }
        let stored = self.read(key);
        let is_within = |then: Option<Timestamp>, time| then.is_some_and(|then| age(then) < time);
        let list = if is_within(stored.listed_at, FRESH) {
            stored.list(None)
        } else if is_within(stored.failed_at, RETRY_PAUSE) {
            stored.list(Some(
                "it did not return a list a few minutes ago".to_owned(),
            ))
        } else {
            let (list, stored) = ask(key, provider, stored, START_TIMEOUT).await;
            if self.storage == ListStorage::Stored {
                self.write(key, &stored);
            }
            list
        };
        self.known().insert(key.clone(), list.clone());
        list
    }

    /// Returns the list for display: the provider's own, else the stored one, else the built-in table.
    pub async fn list_for_display(&self, key: &ListKey, provider: &Provider) -> ModelList {
        let (mut list, stored) = ask(key, provider, self.read(key), SHOW_TIMEOUT).await;
        self.write(key, &stored);
        self.known().insert(key.clone(), list.clone());
        if list.models.is_empty() && list.source != ListSource::Live {
            list.source = ListSource::Table;
            list.models = models_of(&key.provider).map(str::to_owned).collect();
        }
        list
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<ListKey, ModelList>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, key: &ListKey) -> PathBuf {
        let digest = Sha256::digest(format!("{}\n{}", key.provider, key.base_url));
        let name = base16ct::lower::encode_string(&digest[..8]);
        self.directory.join(format!("{name}.json"))
    }

    /// Reads the stored list; an unreadable file counts as none.
    fn read(&self, key: &ListKey) -> StoredList {
        let mut text = Vec::new();
        let read = File::open(self.file(key))
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut text));
        let stored = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
        stored.unwrap_or_default()
    }

    /// Stores the list. A failure is ignored: it only costs time at the next start.
    fn write(&self, key: &ListKey, stored: &StoredList) {
        let _: io::Result<()> = replace(&self.directory, &self.file(key), stored);
    }
}

impl StoredList {
    fn list(&self, error: Option<String>) -> ModelList {
        ModelList {
            models: self.models.clone(),
            source: self.listed_at.map_or(ListSource::Table, ListSource::Cache),
            error,
        }
    }
}

/// Fetches the list from the provider. Returns the list and what to store.
async fn ask(
    key: &ListKey,
    provider: &Provider,
    stored: StoredList,
    timeout: Duration,
) -> (ModelList, StoredList) {
    let error = match tokio::time::timeout(timeout, provider.list()).await {
        Ok(Ok(mut models)) => {
            models.retain(|id| id.len() <= MAX_ID_BYTES);
            models.truncate(MAX_MODELS);
            let stored = StoredList {
                provider: key.provider.clone(),
                listed_at: Some(SystemClock.now()),
                models: models.clone(),
                ..StoredList::default()
            };
            let list = ModelList {
                models,
                source: ListSource::Live,
                error: None,
            };
            return (list, stored);
        }
        Ok(Err(error)) => error.fault.to_string(),
        Err(_elapsed) => format!("no answer within {} s", timeout.as_secs()),
    };
    let stored = StoredList {
        provider: key.provider.clone(),
        failed_at: Some(SystemClock.now()),
        ..stored
    };
    (stored.list(Some(error)), stored)
}

fn age(then: Timestamp) -> Duration {
    // A time in the future must not make a list valid for longer.
    let now = SystemClock.now();
    now.0
        .checked_sub(then.0)
        .map_or(Duration::MAX, Duration::from_millis)
}

/// Writes a temporary file with a name unique to this process, then renames it.
fn replace(directory: &Path, file: &Path, stored: &StoredList) -> io::Result<()> {
    let mut directories = DirBuilder::new();
    directories.recursive(true).mode(0o700).create(directory)?;
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let written = options
        .open(&new)
        .and_then(|mut file| file.write_all(&serde_json::to_vec(stored)?))
        .and_then(|()| std::fs::rename(&new, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}
