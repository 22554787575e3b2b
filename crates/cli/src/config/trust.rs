//! Which projects' files a person trusts. Trust is given to a file as it is: when it changes, it has to be given again.

use super::surroundings::Paths;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files that are trusted, kept in lango's own data folder, where no command reaches.
#[derive(Debug, Default)]
pub struct Trust {
    file: PathBuf,
    digests: BTreeMap<String, String>,
}

impl Trust {
    /// Reads what was trusted before. A file that is not there, or that makes no sense, trusts nothing.
    pub fn read(paths: &Paths) -> Self {
        let file = paths.trust_file();
        let digests = std::fs::read(&file).ok();
        let digests = digests.and_then(|text| serde_json::from_slice(&text).ok());
        Self {
            file,
            digests: digests.unwrap_or_default(),
        }
    }

    /// Whether this file with this content is trusted.
    pub fn holds(&self, path: &Path, content: &str) -> bool {
        self.digests.get(&name(path)) == Some(&digest(content))
    }

    /// Trusts the file as it is now.
    pub fn give(&mut self, path: &Path, content: &str) -> io::Result<()> {
        self.digests.insert(name(path), digest(content));
        self.write()
    }

    /// Takes the trust back; says whether there was any.
    pub fn take_back(&mut self, path: &Path) -> io::Result<bool> {
        let was_there = self.digests.remove(&name(path)).is_some();
        self.write().map(|()| was_there)
    }

    fn write(&self) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let new = self.file.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        serde_json::to_writer_pretty(&mut file, &self.digests)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.file)
    }
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn digest(content: &str) -> String {
    let bytes = Sha256::digest(content);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
