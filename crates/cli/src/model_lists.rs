//! Which models a provider offers: asked of it, and stored for a day.
//!
//! A list decides which model a key alone selects, so reading it must neither fail nor delay a start: the stored list is
//! good for [`FRESH`], a provider has [`START_TIMEOUT`] to answer, and one that did not is left alone for [`RETRY_PAUSE`].
//! A file holds ids and times, and never a key.

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

/// How long a stored list is as good as a new one.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// How long a start waits for a list.
const START_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a command that shows lists waits for one.
const SHOW_TIMEOUT: Duration = Duration::from_secs(5);

/// How long starts do without a list after a provider failed to give it.
const RETRY_PAUSE: Duration = Duration::from_secs(600);

/// The longest file that is read, and how many ids of what length are stored. The longest known list has about a thousand.
const LONGEST_FILE: u64 = 2 << 20;
const MOST_MODELS: usize = 4000;
const LONGEST_ID: usize = 200;

/// The models that a provider offers, as far as that can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelList {
    /// Their ids; none if nothing is known.
    pub models: Vec<String>,
    pub source: ListSource,
    /// Why the provider could not be asked.
    pub error: Option<String>,
}

/// Where a list is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListSource {
    /// The provider, just now.
    Live,
    /// The provider, at that time.
    Cache(Timestamp),
    /// The table of models that is part of lango.
    Table,
}

/// What a list is of: the same name at another address is another provider.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListKey {
    pub provider: String,
    pub base_url: String,
}

/// Whether starts may leave files behind. A command that shows lists always stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListStorage {
    Stored,
    ReadOnly,
}

/// The lists of all providers.
pub struct ModelLists {
    directory: PathBuf,
    storage: ListStorage,
    /// What this process knows already, so that it asks once.
    known: Mutex<BTreeMap<ListKey, ModelList>>,
}

/// What a file holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    /// For readers of the file.
    provider: String,
    /// When the provider gave the list; not set if it never did.
    listed_at: Option<Timestamp>,
    /// When it was last asked and gave none. Why is not stored: a provider may repeat the key that it refuses.
    failed_at: Option<Timestamp>,
    models: Vec<String>,
}

impl ModelLists {
    /// Reads and creates nothing yet.
    pub fn at(directory: PathBuf, storage: ListStorage) -> Self {
        Self {
            directory,
            storage,
            known: Mutex::default(),
        }
    }

    /// Gives the list that a start goes by: a fresh one if there is one or the provider answers in time, else whatever is
    /// stored. Never fails; the list may be empty.
    pub async fn for_start(&self, key: &ListKey, provider: &Provider) -> ModelList {
        if let Some(list) = self.known().get(key) {
            return list.clone();
        }
        let stored = self.read(key);
        let is_within = |then: Option<Timestamp>, time| then.is_some_and(|then| age(then) < time);
        let list = if is_within(stored.listed_at, FRESH) {
            stored.list(None)
        } else if is_within(stored.failed_at, RETRY_PAUSE) {
            stored.list(Some("it gave no list a few minutes ago".to_owned()))
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

    /// Gives the list to show: the provider's own, else the stored one, else that of lango's table.
    pub async fn to_show(&self, key: &ListKey, provider: &Provider) -> ModelList {
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
        let name: String = digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.directory.join(format!("{name}.json"))
    }

    /// What is stored; a file that cannot be read is as good as none.
    fn read(&self, key: &ListKey) -> Stored {
        let mut text = Vec::new();
        let read = File::open(self.file(key))
            .and_then(|file| file.take(LONGEST_FILE).read_to_end(&mut text));
        let stored = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
        stored.unwrap_or_default()
    }

    /// That it cannot be stored costs time at the next start, and nothing else.
    fn write(&self, key: &ListKey, stored: &Stored) {
        let _: io::Result<()> = replace(&self.directory, &self.file(key), stored);
    }
}

impl Stored {
    fn list(&self, error: Option<String>) -> ModelList {
        ModelList {
            models: self.models.clone(),
            source: self.listed_at.map_or(ListSource::Table, ListSource::Cache),
            error,
        }
    }
}

/// Asks the provider. Gives the list, and what to store.
async fn ask(
    key: &ListKey,
    provider: &Provider,
    stored: Stored,
    timeout: Duration,
) -> (ModelList, Stored) {
    let error = match tokio::time::timeout(timeout, provider.list()).await {
        Ok(Ok(mut models)) => {
            models.retain(|id| id.len() <= LONGEST_ID);
            models.truncate(MOST_MODELS);
            let stored = Stored {
                provider: key.provider.clone(),
                listed_at: Some(SystemClock.now()),
                models: models.clone(),
                ..Stored::default()
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
    let stored = Stored {
        provider: key.provider.clone(),
        failed_at: Some(SystemClock.now()),
        ..stored
    };
    (stored.list(Some(error)), stored)
}

fn age(then: Timestamp) -> Duration {
    // A time in the future is no reason to trust a list for longer.
    let now = SystemClock.now();
    now.0
        .checked_sub(then.0)
        .map_or(Duration::MAX, Duration::from_millis)
}

/// Writes beside the file first, under a name of this process alone, then moves it there.
fn replace(directory: &Path, file: &Path, stored: &Stored) -> io::Result<()> {
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
