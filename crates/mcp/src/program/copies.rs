//! The content of a file that agents can write: read once, identified by its digest, and run from a copy.

use crate::tool_definition::hex;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a file to copy.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum size of a text for which the user sees a diff.
const MAX_DIFF_BYTES: usize = 256 << 10;

/// The content of a file.
#[derive(Debug, Clone)]
pub(super) struct Content {
    bytes: Arc<Vec<u8>>,
    /// The SHA-256 of the bytes.
    pub(super) digest: String,
    is_executable: bool,
}

/// A file of a server's command that the user must trust before the server starts.
#[derive(Debug, Clone)]
pub struct PendingFile {
    pub path: PathBuf,
    /// The SHA-256 of the trusted content; `None` if the file was never trusted.
    pub before: Option<String>,
    /// The SHA-256 of the current content.
    pub digest: String,
    /// The size in bytes.
    pub size: usize,
    /// The trusted and the current content, if both are short texts. The former is empty if the file was never trusted.
    pub texts: Option<(String, String)>,
    pub(super) content: Content,
}

impl Content {
    /// Reads a file through one handle, so that the digest and the bytes belong together.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        // Agents may have replaced it by a pipe, and opening that would wait for a writer.
        let nonblock = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(nonblock).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            let most = MAX_BYTES >> 20;
            return Err(io::Error::other(format!("it is larger than {most} MiB")));
        }
        Ok(Self {
            digest: hex(&Sha256::digest(&bytes)),
            bytes: Arc::new(bytes),
            is_executable: metadata.permissions().mode() & 0o111 != 0,
        })
    }

    /// Stores a copy in a folder named after the digest, and returns the path of the copy. Keeps the file name, which
    /// some programs depend on.
    pub(super) fn store(&self, copies: &Path, original: &Path) -> io::Result<PathBuf> {
        let copy = copy_of(copies, &self.digest, original)?;
        let folder = copies.join(&self.digest);
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700).create(&folder)?;
        let mode = if self.is_executable { 0o500 } else { 0o400 };
        let is_stored = Self::read(&copy).is_ok_and(|stored| {
            stored.digest == self.digest && stored.is_executable == self.is_executable
        });
        if is_stored {
            return Ok(copy);
        }
        // Another lango process may start the same server now, so each writes its own file and renames it.
        let new = folder.join(format!(".new-{}", std::process::id()));
        let _ = std::fs::remove_file(&new);
        let mut options = OpenOptions::new();
        options.create_new(true).write(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(&self.bytes)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        drop(file);
        std::fs::rename(&new, &copy)?;
        Ok(copy)
    }

    /// Converts the content to a file that the user must trust.
    pub(super) fn pending(
        self,
        path: &Path,
        before: Option<&String>,
        copies: &Path,
    ) -> PendingFile {
        let text_before = match before {
            None => Some(String::new()),
            Some(digest) => {
                let copy = copy_of(copies, digest, path);
                let stored = copy.and_then(|copy| Self::read(&copy)).ok();
                stored.and_then(|stored| stored.text())
            }
        };
        PendingFile {
            path: path.to_owned(),
            before: before.cloned(),
            digest: self.digest.clone(),
            size: self.bytes.len(),
            texts: text_before.zip(self.text()),
            content: self,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn text(&self) -> Option<String> {
        let is_short = self.bytes.len() <= MAX_DIFF_BYTES && !self.bytes.contains(&0);
        let text = is_short.then(|| String::from_utf8(self.bytes.to_vec()));
        text.and_then(Result::ok)
    }
}

/// Returns the path of the copy of a file with this digest.
fn copy_of(copies: &Path, digest: &str, original: &Path) -> io::Result<PathBuf> {
    let name = original.file_name();
    let name = name.ok_or_else(|| io::Error::other("it has no name"))?;
    Ok(copies.join(digest).join(name))
}
