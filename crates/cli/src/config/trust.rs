//! Which projects' files a person trusts: configuration, topology, agents. Trust is given to each file as it is: when it
//! changes, it has to be given again.

use super::surroundings::Paths;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files that are trusted, kept in lango's own data folder, where no command reaches.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    file: PathBuf,
    /// Where it was before; it is read as long as nothing is at the new place.
    former: PathBuf,
    digests: BTreeMap<String, String>,
}

impl Trust {
    /// Reads what was trusted before. A file that is not there, or that makes no sense, trusts nothing.
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

    /// Whether this file with this content is trusted.
    pub fn holds(&self, path: &Path, content: impl AsRef<[u8]>) -> bool {
        self.digests.get(&name(path)) == Some(&digest(content.as_ref()))
    }

    /// Trusts the file as it is now, from the next [`write`](Self::write) on.
    pub fn give(&mut self, path: &Path, content: impl AsRef<[u8]>) {
        self.digests.insert(name(path), digest(content.as_ref()));
    }

    /// Takes the trust in this file, or in all files of this folder, back, from the next [`write`](Self::write) on; says
    /// whether there was any.
    pub fn take_back(&mut self, folder: &Path) -> bool {
        let before = self.digests.len();
        self.digests
            .retain(|path, _| !Path::new(path).starts_with(folder));
        self.digests.len() < before
    }

    /// Keeps what is trusted now.
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
    let bytes = Sha256::digest(content);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
