//! Remembers cards that timed out, for all processes that share a directory, so that the next start does not wait for
//! them.
//!
//! Each card is an empty file. Its name is a digest of the card's URL, and its modification time is that of the last
//! timeout. Marking and clearing a card are single file system operations, so processes need no lock.

use super::card_error::CardError;
use super::connect::ConnectResult;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The record of cards that timed out. Without a directory it remembers nothing.
#[derive(Debug, Clone, Default)]
pub struct SlowCards {
    directory: Option<PathBuf>,
}

impl SlowCards {
    /// For how long after a timeout lango does not wait for the card.
    pub const MEMORY: Duration = Duration::from_secs(600);

    /// Creates a record in a directory, which is created when needed.
    pub fn at(directory: PathBuf) -> Self {
        Self {
            directory: Some(directory),
        }
    }

    /// Returns how long ago a card timed out, if that was within [`Self::MEMORY`].
    pub(crate) fn age(&self, card_url: &str) -> Option<Duration> {
        age(&self.file(card_url)?).filter(|age| *age <= Self::MEMORY)
    }

    /// Remembers a card if it timed out, and forgets it otherwise. Ignores failures to write.
    pub(crate) fn record(&self, card_url: &str, result: &ConnectResult) {
        let Some(file) = self.file(card_url) else {
            return;
        };
        let skipped = result.as_ref().err();
        if skipped.is_some_and(|skipped| matches!(skipped.reason, CardError::TimedOut { .. })) {
            self.remove_old();
            let _ = mark(&file);
        } else {
            let _ = fs::remove_file(file);
        }
    }

    fn file(&self, card_url: &str) -> Option<PathBuf> {
        let digest = Sha256::digest(card_url);
        let name = base16ct::lower::encode_string(&digest[..16]);
        Some(self.directory.as_ref()?.join(name))
    }

    /// Removes expired files, such as those of cards that were removed from the configuration.
    fn remove_old(&self) {
        let entries = self.directory.iter().flat_map(fs::read_dir).flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            if age(&path).is_none_or(|age| age > Self::MEMORY) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Returns the age of a file, or `None` if it does not exist or its time is in the future.
fn age(file: &Path) -> Option<Duration> {
    let modified = fs::metadata(file).ok()?.modified().ok()?;
    modified.elapsed().ok()
}

fn mark(file: &Path) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file)?.set_modified(SystemTime::now())
}
