//! One turn at a time in a session, over all processes of this machine: whoever runs a turn holds a lock on a file beside the
//! database. The system lets go of it when the process ends, however it ends, so that a crash locks nobody out.

use crate::exit::{Exit, Failure};
use lango_core::SessionId;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A session that nobody else runs a turn in while this lives.
#[derive(Debug)]
pub struct Hold {
    path: PathBuf,
    file: File,
}

impl Hold {
    /// Takes hold of a session, or says that somebody else has it.
    pub fn take(database: &Path, session: &SessionId) -> Result<Self, Failure> {
        let folder = database.with_extension("locks");
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let path = folder.join(session.as_str());
        loop {
            let mut options = OpenOptions::new();
            let file = options
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(busy(session)),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            // Whoever held it before may have removed the file between our opening and our locking it.
            let is_there = std::fs::metadata(&path)
                .and_then(|there| Ok(there.ino() == file.metadata()?.ino()));
            if is_there.unwrap_or(false) {
                return Ok(Self { path, file });
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // While it is still ours, so that nobody else's file is removed.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

fn busy(session: &SessionId) -> Failure {
    let message = format!("session `{session}` is busy with another turn");
    Failure::new(Exit::Failed, message).next("wait for it, or stop it where it runs")
}
