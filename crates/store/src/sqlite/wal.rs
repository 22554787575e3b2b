//! The write-ahead log as a file: the writer waits for the disk here.

use super::failure::{Failure, place_of};
use super::place::beside;
use crate::stored::failed;
use lango_core::StoreError;
use rusqlite::Connection;
use std::fs::File;
use std::io;
use std::path::Path;

/// The log of an open database. SQLite neither replaces nor deletes the file while a connection is open.
pub(super) struct WriteAheadLog {
    file: File,
    /// Why the disk did not take it. The kernel may have dropped what it could not write, and reports that only once, so that a later
    /// sync proves nothing.
    failure: Option<io::Error>,
}

impl WriteAheadLog {
    /// Leaves only the syncs of checkpoints to SQLite, and opens the log for the others.
    pub(super) fn take_over(connection: &Connection, path: &Path) -> Result<Self, StoreError> {
        connection
            .execute_batch("PRAGMA synchronous = NORMAL")
            .map_err(|error| Failure::from(error).about(path))?;
        let file = File::open(beside(path, "-wal")).map_err(|error| {
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

    /// Returns the error of a sync that failed before.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.failure.as_ref().map_or(Ok(()), |error| {
            Err(failed(format!(
                "the disk failed to store what was written: {error}; check it, then start lango again"
            )))
        })
    }

    /// Waits until the disk has all commits. If this fails, the last ones are visible but may be lost: what was decided on them must
    /// not be carried out, so nothing is written any more until lango reads the database again.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        self.failure = self.file.sync_data().err();
        self.check()
    }
}
