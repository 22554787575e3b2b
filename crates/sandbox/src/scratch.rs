//! A folder that lives as long as one command or one self-test.

use crate::LaunchError;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new folder among the machine's temporary ones, for this user alone. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn make() -> Result<Self, LaunchError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lango-{}-{number}", std::process::id());
        let temporary = fs::canonicalize(std::env::temp_dir());
        let path = temporary
            .map_err(LaunchError::system("find the folder for temporary files"))?
            .join(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(LaunchError::system("make a folder for temporary files"))?;
        Ok(Self(path))
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
