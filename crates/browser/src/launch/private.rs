//! The private directory of a browser: its profile, downloads and staged uploads. It is removed when the browser ends.
//! The process that owns it holds a lock file. If that process is killed, the next lango with the same data directory
//! removes the directory.

use rustix::fs::{Mode, OFlags};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Extension of the lock file, which stays locked as long as the directory is in use.
const LOCK: &str = "lock";
const PROFILE: &str = "profile";
const DOWNLOADS: &str = "downloads";
const UPLOADS: &str = "uploads";

/// A directory that only the user can read. Dropping this value removes the directory.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    /// The lock file. It is next to the directory, not inside, so the browser cannot reach it.
    lock: PathBuf,
    _locked: File,
    downloads: Arc<OwnedFd>,
    uploads: Arc<OwnedFd>,
}

impl PrivateDirectory {
    /// Creates a directory in `parent`, and removes directories whose owners no longer run.
    pub(crate) fn create(parent: &Path) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        builder.recursive(true).create(parent)?;
        let parent = parent.canonicalize()?;
        // Until it is locked, a new lock file looks abandoned, so only one process at a time may create or clean up.
        let starting = File::open(&parent)?;
        starting.lock()?;
        remove_abandoned(&parent);
        let name = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let lock = parent.join(&name).with_extension(LOCK);
        let locked = File::create_new(&lock)?;
        locked.lock()?;
        let path = parent.join(name);
        builder.recursive(false);
        let folder = |name: &str| {
            builder.create(path.join(name))?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = rustix::fs::open(path.join(name), flags, Mode::empty())?;
            Ok::<_, io::Error>(Arc::new(handle))
        };
        builder.create(&path)?;
        folder(PROFILE)?;
        let (downloads, uploads) = (folder(DOWNLOADS)?, folder(UPLOADS)?);
        Ok(Self {
            path,
            lock,
            _locked: locked,
            downloads,
            uploads,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn profile(&self) -> PathBuf {
        self.path.join(PROFILE)
    }

    /// Returns the folder into which the browser writes downloads.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.path.join(DOWNLOADS)
    }

    /// Returns an open handle to the downloads folder. It was opened before the browser could replace the folder.
    pub(crate) fn downloads_handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.downloads)
    }

    /// Returns the folder for staged uploads.
    pub(crate) fn uploads(&self) -> PathBuf {
        self.path.join(UPLOADS)
    }

    /// Returns an open handle to the uploads folder. It was opened before the browser could replace the folder.
    pub(crate) fn uploads_handle(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.uploads)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // If this fails, the next start of lango removes the directory.
        if std::fs::remove_dir_all(&self.path).is_ok() {
            let _ = std::fs::remove_file(&self.lock);
        }
    }
}

/// Removes the private directories in `parent` whose owners were killed. Does nothing while another process is cleaning
/// up or starting a browser.
pub fn remove_abandoned_directories(parent: &Path) {
    if let Ok(directory) = File::open(parent)
        && directory.try_lock().is_ok()
    {
        remove_abandoned(parent);
    }
}

fn remove_abandoned(parent: &Path) {
    let Ok(entries) = parent.read_dir() else {
        return;
    };
    for entry in entries.flatten() {
        let lock = entry.path();
        if lock.extension().is_none_or(|extension| extension != LOCK) {
            continue;
        }
        let Ok(file) = File::open(&lock) else {
            continue;
        };
        if file.try_lock().is_ok() {
            let removed = std::fs::remove_dir_all(lock.with_extension(""));
            if !removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
                let _ = std::fs::remove_file(&lock);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_is_private_and_directories_of_killed_owners_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let one = PrivateDirectory::create(parent.path()).unwrap();
        let mode = one.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        // Simulates a killed owner: the files remain, but nothing holds the lock.
        let (path, lock) = (one.path().to_owned(), one.lock.clone());
        std::fs::create_dir(parent.path().join("abandoned")).unwrap();
        std::fs::write(parent.path().join("abandoned.lock"), "").unwrap();
        let two = PrivateDirectory::create(parent.path()).unwrap();
        assert!(path.exists() && lock.exists());
        assert!(!parent.path().join("abandoned").exists());
        assert!(!parent.path().join("abandoned.lock").exists());
        drop((one, two));
        assert_eq!(parent.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn directories_that_are_being_created_are_not_removed_as_abandoned() {
        let parent = tempfile::tempdir().unwrap();
        let create = || {
            for _ in 0..100 {
                let own = PrivateDirectory::create(parent.path()).unwrap();
                remove_abandoned_directories(parent.path());
                assert!(own.lock.exists() && own.uploads().exists());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(create);
            }
        });
        assert_eq!(parent.path().read_dir().unwrap().count(), 0);
    }
}
