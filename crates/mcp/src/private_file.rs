//! A JSON file that only lango's user can read. Writes replace it atomically under a lock, so two lango processes do
//! not lose each other's changes. With a seal it is encrypted.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a file to read. Everything that lango writes is far smaller.
const MAX_BYTES: u64 = 64 << 20;

/// The first bytes of a sealed file.
const SEALED: &[u8] = b"lango-sealed-1\n";

/// Encrypts the content of a file; the implementation manages the key.
pub trait FileSeal: fmt::Debug + Send + Sync {
    fn seal(&self, plain: &[u8]) -> io::Result<Vec<u8>>;

    /// Decrypts the output of [`seal`](Self::seal).
    fn open(&self, sealed: &[u8]) -> io::Result<Vec<u8>>;
}

/// The path of the file, and its seal.
#[derive(Debug, Clone)]
pub(crate) struct PrivateFile {
    path: PathBuf,
    seal: Option<Arc<dyn FileSeal>>,
}

/// Returns whether a file was written with a seal.
pub fn is_sealed(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| {
        let most = SEALED.len() as u64;
        file.take(most).read_to_end(&mut start)
    });
    read.is_ok() && start == SEALED
}

impl PrivateFile {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, seal: None }
    }

    /// Sets the seal, if there is one. A plain file can still be read, and is sealed on the next write.
    pub(crate) fn with_seal(self, seal: Option<Arc<dyn FileSeal>>) -> Self {
        Self { seal, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the content; `None` if the file does not exist.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            let most = MAX_BYTES >> 20;
            return Err(io::Error::other(format!("it is larger than {most} MiB")));
        }
        let Some(sealed) = text.strip_prefix(SEALED) else {
            return Ok(Some(serde_json::from_slice(&text)?));
        };
        let seal = self.seal.as_ref().ok_or_else(|| {
            io::Error::other("it is sealed and the vault is locked; run `lango secrets unlock`")
        })?;
        Ok(Some(serde_json::from_slice(&seal.open(sealed)?)?))
    }

    /// Creates the folder of the file. It must exist before a server starts, because the sandbox hides the folder from
    /// the server and can hide only what exists. Hiding only the file is not enough: a replaced file would be visible.
    pub(crate) fn make_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    /// Locks the file against other processes; dropping the result releases the lock.
    pub(crate) fn lock(&self) -> io::Result<File> {
        self.make_folder()?;
        let lock = private(&self.path.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Tries to lock the lock file with this name next to the file. Returns `None` if another process holds the lock;
    /// dropping the result releases it.
    pub(crate) fn try_lock_beside(&self, name: &str) -> io::Result<Option<File>> {
        self.make_folder()?;
        let lock = private(&self.path.with_file_name(name))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Replaces the content. The caller must have locked the file.
    pub(crate) fn replace(&self, content: &impl Serialize) -> io::Result<()> {
        let plain = serde_json::to_vec_pretty(content)?;
        let written = match &self.seal {
            Some(seal) => [SEALED, &seal.seal(&plain)?].concat(),
            None => plain,
        };
        let new = self.path.with_extension("new");
        let mut file = private(&new)?;
        file.set_len(0)?;
        file.write_all(&written)?;
        file.sync_all()?;
        std::fs::rename(&new, &self.path)
    }
}

/// Creates a directory that only this user can access, or restricts an existing one.
pub(crate) fn make_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if !std::fs::symlink_metadata(folder)?.is_dir() {
        let what = format!("`{}` is not a directory", folder.display());
        return Err(io::Error::other(what));
    }
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path)
}
