//! Cards that did not come in time, remembered for all processes that share a folder, so that the next start does not wait for
//! them.
//!
//! Each is an empty file whose name is a digest of the card's URL and whose modification time is that of the last timeout.
//! Marking and clearing one are single operations of the file system, so processes need no lock.

use super::connect::Connected;
use super::fault::CardFault;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The cards that did not come in time. Without a folder nothing is remembered.
#[derive(Debug, Clone, Default)]
pub struct SlowCards {
    folder: Option<PathBuf>,
}

impl SlowCards {
    /// How long a card is not waited for after it did not come in time.
    pub const MEMORY: Duration = Duration::from_secs(600);

    /// Remembers them in a folder, which is created when it is needed.
    pub fn at(folder: PathBuf) -> Self {
        Self {
            folder: Some(folder),
        }
    }

    /// Returns how long ago a card timed out, if that was within [`Self::MEMORY`].
    pub(crate) fn age(&self, card_url: &str) -> Option<Duration> {
        age(&self.file(card_url)?).filter(|age| *age <= Self::MEMORY)
    }

    /// Remembers a card that did not come in time, and forgets one that came or failed otherwise. What cannot be written is
    /// not remembered.
    pub(crate) fn note(&self, card_url: &str, result: &Connected) {
        let Some(file) = self.file(card_url) else {
            return;
        };
        let skipped = result.as_ref().err();
        if skipped.is_some_and(|skipped| matches!(skipped.reason, CardFault::Slow { .. })) {
            self.remove_old();
            let _ = mark(&file);
        } else {
            let _ = fs::remove_file(file);
        }
    }

    fn file(&self, card_url: &str) -> Option<PathBuf> {
        let digest = Sha256::digest(card_url);
        let name: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some(self.folder.as_ref()?.join(name))
    }

    /// Removes what is no longer used, such as cards that left the configuration.
    fn remove_old(&self) {
        let entries = self.folder.iter().flat_map(fs::read_dir).flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            if age(&path).is_none_or(|age| age > Self::MEMORY) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Returns the age of a file; none if it does not exist or its time lies ahead.
fn age(file: &Path) -> Option<Duration> {
    let modified = fs::metadata(file).ok()?.modified().ok()?;
    modified.elapsed().ok()
}

fn mark(file: &Path) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file)?.set_modified(SystemTime::now())
}
