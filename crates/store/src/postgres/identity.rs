//! A replica name that survives a crash. The next server in the same folder gets the same name, and takes over the leases of the
//! crashed server immediately instead of waiting until they expire.
//!
//! Two running processes must never share a name. The name is derived from a file that is locked while the process runs. It also
//! depends on the machine's boot id and the file's inode, so a copy of the folder gets another name. After a reboot the name is
//! new, and leases under the old name expire.

use crate::backend::text::hex;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The name of the file in the server's folder.
const FILE: &str = "replica-id";

/// The file with the random id that the kernel generates at each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A replica name that no other process can take while this value exists.
#[derive(Debug)]
pub(super) struct Identity {
    pub name: String,
    _locked: File,
}

impl Identity {
    /// Takes the name that belongs to this folder. Returns `None` if another process uses it, or if the system has no boot id.
    /// Stores `random` as the folder's id if it has none.
    pub(super) fn take(folder: &Path, random: &str) -> io::Result<Option<Self>> {
        let Ok(boot) = fs::read_to_string(BOOT_ID) else {
            return Ok(None);
        };
        fs::create_dir_all(folder)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(folder.join(FILE))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            locked => locked?,
        }
        let mut id = String::new();
        file.read_to_string(&mut id)?;
        if id.trim().is_empty() {
            random.clone_into(&mut id);
            file.rewind()?;
            file.write_all(id.as_bytes())?;
        }
        let place = file.metadata()?;
        let mut origin = format!("{}\0{}\0", id.trim(), boot.trim()).into_bytes();
        origin.extend(place.dev().to_le_bytes());
        origin.extend(place.ino().to_le_bytes());
        Ok(Some(Self {
            name: hex(&Sha256::digest(origin)[..16]),
            _locked: file,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_process_takes_the_name_of_a_folder_and_a_copy_gets_another_name() {
        let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let take = |folder: &Path| Identity::take(folder, "a1b2").unwrap();
        let first = take(folder.path()).unwrap();
        assert!(take(folder.path()).is_none(), "it is in use");
        fs::copy(folder.path().join(FILE), copy.path().join(FILE)).unwrap();
        assert_ne!(take(copy.path()).unwrap().name, first.name);
        let name = first.name.clone();
        drop(first);
        assert_eq!(take(folder.path()).unwrap().name, name, "after a restart");
    }
}
