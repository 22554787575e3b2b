//! Syncs SQLite's write-ahead log to disk.

use super::error::{BackendError, place_of};
use super::file::with_suffix;
use crate::decode::failed;
use lango_core::StoreError;
use rusqlite::Connection;
use std::fs::File;
use std::io;
use std::path::Path;

/// The write-ahead log of an open database. The handle stays valid: SQLite does not replace or delete the file while a connection
/// is open.
pub(super) struct WriteAheadLog {
    file: File,
    /// The error of a failed sync. It is permanent: the kernel reports a lost write only once, so a later sync that succeeds proves
    /// nothing.
    failure: Option<io::Error>,
}

impl WriteAheadLog {
    /// Stops SQLite from syncing at each commit (it still syncs at checkpoints), and opens the log so that the caller can sync it.
    pub(super) fn take_over(connection: &Connection, path: &Path) -> Result<Self, StoreError> {
        connection
            .execute_batch("PRAGMA synchronous = NORMAL")
            .map_err(|error| BackendError::from(error).about(path))?;
        let file = File::open(with_suffix(path, "-wal")).map_err(|error| {
            let place = place_of(path);
            failed(format!(
                "cannot open the write-ahead log of {place}: {error}"
            ))
        })?;
        Ok(Self::of(file))
    }

    pub(super) fn of(file: File) -> Self {
        Self {
            file,
            failure: None,
        }
    }

    /// Fails if an earlier sync failed.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.failure.as_ref().map_or(Ok(()), |error| {
            Err(failed(format!(
                "the disk reported an error while storing data: {error}; check the disk, then start lango again"
            )))
        })
    }

    /// Waits until all commits are on disk. If the sync fails, recent commits may be lost although readers see them. The store then
    /// rejects all writes until lango is restarted, so that nothing acts on data that may vanish.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        self.failure = self.file.sync_data().err();
        self.check()
    }
}
