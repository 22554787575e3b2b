//! A temporary folder that lives as long as one command or one self-test.

use crate::LaunchError;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PREFIX: &str = "lango-sandbox-";
const MAX_ATTEMPTS: u32 = 1000;
/// Age at which a leftover folder is removed. Other containers may share the temporary folder but not the process ids,
/// so only its age shows that a folder is unused.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// A new folder in the system's temporary folder, accessible only to this user. Dropping this value removes the folder.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn create() -> Result<Self, LaunchError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let temporary = fs::canonicalize(std::env::temp_dir())
            .map_err(LaunchError::system("find the folder for temporary files"))?;
        // A killed process with the same id may have left a folder with the same name.
        for _ in 0..MAX_ATTEMPTS {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = temporary.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(create_failed(error)),
            }
        }
        Err(create_failed(io::ErrorKind::AlreadyExists.into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes folders that killed processes left behind.
pub(crate) fn remove_stale() {
    for entry in fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry
            .metadata()
            .ok()
            .and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn create_failed(cause: io::Error) -> LaunchError {
    LaunchError::system("create a folder for temporary files")(cause)
}
