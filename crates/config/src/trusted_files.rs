//! The project files that the user trusts: configuration, topologies, agents, instructions. Trust covers the current
//! content of a file; after a change the user must trust it again.

use super::process_env::Paths;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The trusted files, stored in lango's data directory, which commands cannot reach.
#[derive(Debug, Clone, Default)]
pub struct TrustedFiles {
    file: PathBuf,
    /// The previous location; it is read as long as `file` does not exist.
    former: PathBuf,
    digests: BTreeMap<String, String>,
    /// Contents that the next [`write`](Self::write) stores, by their digest.
    new_contents: BTreeMap<String, Vec<u8>>,
}

/// The largest content that is stored to show later what changed.
const MAX_CONTENT_BYTES: usize = 256 * 1024;

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
            new_contents: BTreeMap::new(),
        }
    }

    /// Returns whether this file is trusted with this content.
    pub fn is_trusted(&self, path: &Path, content: impl AsRef<[u8]>) -> bool {
        self.digests.get(&name(path)) == Some(&digest(content.as_ref()))
    }

    /// Trusts the file with this content; stored by the next [`write`](Self::write).
    pub fn add(&mut self, path: &Path, content: impl AsRef<[u8]>) {
        let content = content.as_ref();
        let digest = digest(content);
        if content.len() <= MAX_CONTENT_BYTES {
            self.new_contents.insert(digest.clone(), content.to_owned());
        }
        self.digests.insert(name(path), digest);
    }

    /// Returns the content with which this file was last trusted, if it is stored.
    pub fn trusted_content(&self, path: &Path) -> Option<Vec<u8>> {
        let trusted = self.digests.get(&name(path))?;
        let content = std::fs::read(self.contents().join(trusted)).ok()?;
        (digest(&content) == *trusted).then_some(content)
    }

    /// Returns the folder with the contents of trusted files, each named by its digest.
    fn contents(&self) -> PathBuf {
        self.file.with_file_name("contents")
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
        let contents = self.contents();
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&contents)?;
        for (digest, content) in &self.new_contents {
            private_file(&contents.join(digest))?.write_all(content)?;
        }
        let new = self.file.with_extension("new");
        let mut file = private_file(&new)?;
        serde_json::to_writer_pretty(&mut file, &self.digests)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.file)?;
        self.remove_old_contents()?;
        match std::fs::remove_file(&self.former) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl TrustedFiles {
    /// Removes the stored contents of files that are no longer trusted with them.
    fn remove_old_contents(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(self.contents())? {
            let entry = entry?;
            let name = entry.file_name();
            let is_trusted = |digest: &String| name == **digest;
            if !self.digests.values().any(is_trusted) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

fn private_file(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    options.open(path)
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn digest(content: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(content))
}
