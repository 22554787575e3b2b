//! Atomic replacement of a file: writes a temporary file in the same folder and renames it over the old one.
//!
//! A concurrent reader sees either the old content or the new. The old file itself is not changed, so other hard links
//! to it keep the old content.

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use rustix::fs::{Mode, OFlags, RenameFlags, fsync, openat, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

/// Number of other random names to try if a name is taken.
const MAX_RETRIES: usize = 8;

/// The mode of a file whose content others may not be allowed to read.
const PRIVATE_MODE: u32 = 0o600;

/// The mode of a new file. The kernel removes the bits of the umask.
const USUAL_MODE: u32 = 0o666;

/// Whether the executable bits of an existing file carry over to its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutableBits {
    Carry,
    Drop,
}

/// Creates or replaces the file `name`. An existing file's permissions carry over to the new one; `bits` decides about
/// the executable ones.
pub(crate) fn replace(
    folder: &Dir,
    name: &OsStr,
    content: &[u8],
    bits: ExecutableBits,
) -> io::Result<()> {
    let carried = match bits {
        ExecutableBits::Carry => 0o777,
        ExecutableBits::Drop => 0o666,
    };
    let mode = match folder.symlink_metadata(name) {
        Ok(metadata) => Some(metadata.permissions().mode() & carried),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let (temporary, _) = write_temporary(folder, content, mode)?;
    let renamed = folder.rename(&temporary, folder, name);
    if renamed.is_err() {
        // The error of the rename is the one to report.
        let _ = folder.remove_file(&temporary);
    }
    renamed
}

/// Writes a new file with a temporary name, and returns its name. Without a mode it gets the usual one. With a mode it
/// is private until its content is complete.
pub(crate) fn write_temporary(
    folder: &Dir,
    content: &[u8],
    mode: Option<u32>,
) -> io::Result<(String, File)> {
    let (temporary, mut file) = create_temporary(folder, mode)?;
    let written = (|| {
        file.write_all(content)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.sync_all()
    })();
    match written {
        Ok(()) => Ok((temporary, file)),
        Err(error) => {
            // The write error is the one to report.
            let _ = folder.remove_file(&temporary);
            Err(error)
        }
    }
}

/// Exchanges two entries of a folder in one step. Returns `false` if the file system cannot do that.
pub(crate) fn exchange(folder: &Dir, one: &OsStr, other: &OsStr) -> io::Result<bool> {
    rename_with(folder, one, other, RenameFlags::EXCHANGE)
}

/// Renames an entry of a folder, unless the new name is taken. Returns `false` if the file system cannot do that.
pub(crate) fn rename_without_replacing(folder: &Dir, from: &OsStr, to: &OsStr) -> io::Result<bool> {
    rename_with(folder, from, to, RenameFlags::NOREPLACE)
}

fn rename_with(folder: &Dir, from: &OsStr, to: &OsStr, flags: RenameFlags) -> io::Result<bool> {
    match renameat_with(folder, from, folder, to, flags) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the names in a folder are on the disk.
pub(crate) fn sync_folder(dir: &Dir) -> io::Result<()> {
    // The handle itself is only a reference to the folder.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(dir, ".", flags, Mode::empty())?;
    Ok(fsync(opened)?)
}

/// Returns a random name for a temporary file.
pub(crate) fn temporary_name() -> String {
    format!(".{:016x}.lango-new", random_number())
}

/// Returns a random number, different in every process. Not suitable for cryptography.
pub(crate) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Creates an empty file that will get this mode, if any.
fn create_temporary(folder: &Dir, mode: Option<u32>) -> io::Result<(String, File)> {
    let created = match mode {
        Some(_) => PRIVATE_MODE,
        None => USUAL_MODE,
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(created);
    let mut attempts = 0;
    loop {
        let name = temporary_name();
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

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    #[test]
    fn the_content_of_a_replaced_file_is_private_until_its_mode_is_set() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let mode = |name: &str| folder.metadata(name).unwrap().permissions().mode() & 0o777;
        let (empty, _) = create_temporary(&folder, Some(0o644)).unwrap();
        assert_eq!(mode(&empty), 0o600);
        let (written, _) = write_temporary(&folder, b"content", Some(0o644)).unwrap();
        assert_eq!(mode(&written), 0o644);
        folder.write("usual", "").unwrap();
        let (new, _) = write_temporary(&folder, b"content", None).unwrap();
        assert_eq!(mode(&new), mode("usual"));
    }
}
