//! The project files that the user trusts: configuration, topologies, agents, instructions. Trust covers the current
//! content of a file; after a change the user must trust it again.

use super::process_env::Paths;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The trusted files, stored in lango's data directory, which commands cannot reach.
#[derive(Debug, Clone, Default)]
pub struct TrustedFiles {
    file: PathBuf,
    /// The previous location; it is read as long as `file` does not exist.
    former: PathBuf,
    digests: BTreeMap<String, String>,
}

impl TrustedFiles {
    /// Reads the stored list. A file that is missing or invalid counts as an empty list.
    pub fn read(paths: &Paths) -> Self {
        let (file, former) = (paths.trust_file(), paths.former_trust_file());
        let text = match std::fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::fs::read(&former),
            read => read,
        };
        let digests = text
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        Self {
            file,
            former,
            digests: digests.unwrap_or_default(),
        }
    }

    /// Returns whether this file is trusted with this content.
    pub fn is_trusted(&self, path: &Path, content: impl AsRef<[u8]>) -> bool {
        self.digests.get(&name(path)) == Some(&digest(content.as_ref()))
    }

    /// Trusts the file with this content; stored by the next [`write`](Self::write).
    pub fn add(&mut self, path: &Path, content: impl AsRef<[u8]>) {
        self.digests.insert(name(path), digest(content.as_ref()));
    }

    /// Stops trusting this file, or all files in this directory; stored by the next [`write`](Self::write). Returns
    /// whether any was trusted.
    pub fn revoke(&mut self, folder: &Path) -> bool {
        let before = self.digests.len();
        self.digests
            .retain(|path, _| !Path::new(path).starts_with(folder));
        self.digests.len() < before
    }

    /// Stores the list and removes the one at the previous location.
    pub fn write(&self) -> io::Result<()> {
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
        std::fs::rename(&new, &self.file)?;
        match std::fs::remove_file(&self.former) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn digest(content: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(content))
}
