//! The bytes of a file that agents can write: read once, known by their digest, and run from a copy.

use crate::form::hex;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is copied.
const LARGEST: u64 = 256 << 20;
/// The longest text of which the user is shown what changed.
const LONGEST_SHOWN: usize = 256 << 10;

/// What was read from a file.
#[derive(Debug, Clone)]
pub(super) struct Content {
    bytes: Arc<Vec<u8>>,
    /// The SHA-256 of the bytes.
    pub(super) digest: String,
    is_executable: bool,
}

/// A file of a server's command that waits for being trusted.
#[derive(Debug, Clone)]
pub struct PendingFile {
    /// Where it lies.
    pub path: PathBuf,
    /// The SHA-256 of what was trusted before; nothing if the file never was.
    pub before: Option<String>,
    /// The SHA-256 of what it holds now.
    pub digest: String,
    /// How long it is, in bytes.
    pub size: usize,
    /// What was trusted before and what it holds now, if both are short texts. Nothing trusted before is an empty text.
    pub texts: Option<(String, String)>,
    pub(super) content: Content,
}

impl Content {
    /// Reads a file through one handle, so that the digest is that of the bytes.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        // Agents may have put a pipe in its place; opening one must not wait for a writer.
        let nonblock = OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(nonblock).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            let most = LARGEST >> 20;
            return Err(io::Error::other(format!("it is larger than {most} MiB")));
        }
        Ok(Self {
            digest: hex(&Sha256::digest(&bytes)),
            bytes: Arc::new(bytes),
            is_executable: metadata.permissions().mode() & 0o111 != 0,
        })
    }

    /// Stores a copy under the digest, and gives its path. The name stays, as some programs go by it.
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
        // Another lango may start the same server now; each writes a file of its own and renames it.
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

    /// The same as a file that waits for being trusted.
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
        let is_short = self.bytes.len() <= LONGEST_SHOWN && !self.bytes.contains(&0);
        let text = is_short.then(|| String::from_utf8(self.bytes.to_vec()));
        text.and_then(Result::ok)
    }
}

/// Where the copy of a file with this digest is stored.
fn copy_of(copies: &Path, digest: &str, original: &Path) -> io::Result<PathBuf> {
    let name = original.file_name();
    let name = name.ok_or_else(|| io::Error::other("it has no name"))?;
    Ok(copies.join(digest).join(name))
}
