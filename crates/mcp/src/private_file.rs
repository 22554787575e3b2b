//! A JSON file of lango's own that nobody else can read. It is replaced as a whole, under a lock, so that two processes of
//! lango do not undo what the other wrote. With a seal it is encrypted.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file that is read. What is written is bounded far below.
const LARGEST: u64 = 64 << 20;

/// What a file begins with that is sealed.
const SEALED: &[u8] = b"lango-sealed-1\n";

/// Encrypts what is written to a file, for callers that have a place for its key.
pub trait FileSeal: fmt::Debug + Send + Sync {
    /// Encrypts.
    fn seal(&self, plain: &[u8]) -> io::Result<Vec<u8>>;

    /// Decrypts what [`seal`](Self::seal) made.
    fn open(&self, sealed: &[u8]) -> io::Result<Vec<u8>>;
}

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct PrivateFile {
    path: PathBuf,
    seal: Option<Arc<dyn FileSeal>>,
}

/// Whether a file was written with a seal.
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

    /// The same with a seal, if there is one. A plain file is still read, and sealed when it is next written.
    pub(crate) fn with_seal(self, seal: Option<Arc<dyn FileSeal>>) -> Self {
        Self { seal, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it; nothing where there is no file.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut text)?;
        if text.len() as u64 > LARGEST {
            let most = LARGEST >> 20;
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

    /// Makes the folder of the file. It has to be there before a server starts: what does not exist cannot be hidden, and a
    /// file that is replaced comes out from under its cover.
    pub(crate) fn make_folder(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    /// Takes hold of the file against other processes, until what this gives is dropped.
    pub(crate) fn hold(&self) -> io::Result<File> {
        self.make_folder()?;
        let lock = private(&self.path.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Takes hold of a lock of this name beside the file, until what this gives is dropped; nothing if somebody else has it.
    pub(crate) fn try_hold_beside(&self, name: &str) -> io::Result<Option<File>> {
        self.make_folder()?;
        let lock = private(&self.path.with_file_name(name))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Replaces it. Whoever does so holds it.
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

/// Makes a directory that only this user can enter, or closes one that exists to all others.
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
