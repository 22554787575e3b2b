//! Atomic replacement of a file: writes a temporary file in the same folder and renames it over the old one.
//!
//! A concurrent reader sees either the old content or the new. The old file itself is not changed, so other hard links
//! to it keep the old content.

use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

/// Number of other random names to try if a name is taken.
const MAX_RETRIES: usize = 8;

/// Creates or replaces the file `name`. An existing file's permissions carry over to the new one.
pub(crate) fn replace(folder: &Dir, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let mode = match folder.symlink_metadata(name) {
        Ok(metadata) => Some(metadata.permissions().mode() & 0o777),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let (temporary, mut file) = create_temporary(folder)?;
    let written = (|| {
        file.write_all(content)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.sync_all()?;
        folder.rename(&temporary, folder, name)
    })();
    if written.is_err() {
        // The write error is the one to report.
        let _ = folder.remove_file(&temporary);
    }
    written
}

/// Returns a random number, different in every process. Not suitable for cryptography.
pub(crate) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn create_temporary(folder: &Dir) -> io::Result<(String, cap_std::fs::File)> {
    let options = OpenOptions::new().write(true).create_new(true).clone();
    let mut attempts = 0;
    loop {
        let name = format!(".{:016x}.lango-new", random_number());
        match folder.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && attempts < MAX_RETRIES =>
            {
                attempts += 1;
            }
            Err(error) => return Err(error),
        }
    }
}
