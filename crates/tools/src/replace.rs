//! Atomic replacement of a file: writes a temporary file in the same folder and exchanges it for the old one.
//!
//! A concurrent reader sees either the old content or the new. The old file itself is not changed, so other hard links
//! to it keep the old content. What someone else puts under the name meanwhile is put back.

use crate::attributes::{Attributes, carry_over};
use crate::folder::{OpenError, open_file};
use cap_std::fs::{
    Dir, File, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
};
use rustix::fs::{Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

/// Number of other random names to try if a name is taken.
const MAX_RETRIES: usize = 8;

/// The end of the names of temporary files.
const TEMPORARY_END: &str = ".lango-new";

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

/// Why a file was not replaced. Everything else that was under its name is preserved.
#[derive(Debug)]
pub(crate) enum ReplaceError {
    /// It is not what it was expected to be.
    Changed,
    /// It changed, and the new version is now under this name because its own was taken again.
    Moved(String),
    Failed(io::Error),
}

impl From<io::Error> for ReplaceError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Creates the file `name`. Fails if it exists.
pub(crate) fn create(folder: &Dir, name: &OsStr, content: &[u8]) -> Result<(), ReplaceError> {
    let (temporary, _) = write_temporary(folder, content, None)?;
    let created = match rename_without_replacing(folder, temporary.as_ref(), name) {
        Ok(true) => return Ok(()),
        // The file system cannot do that, so this look is the last one.
        Ok(false) if folder.symlink_metadata(name).is_err() => {
            folder.rename(&temporary, folder, name)
        }
        Ok(false) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) => Err(error),
    };
    created.map_err(|error| {
        // That error is the one to report.
        let _ = folder.remove_file(&temporary);
        match error.kind() {
            io::ErrorKind::AlreadyExists => ReplaceError::Changed,
            _ => ReplaceError::Failed(error),
        }
    })
}

/// Replaces the file `name` if `is_expected` is true of it. Its attributes carry over to the new one; `bits` decides
/// about the executable bits.
pub(crate) fn replace(
    folder: &Dir,
    name: &OsStr,
    content: &[u8],
    bits: ExecutableBits,
    is_expected: impl Fn(&OsStr) -> bool,
) -> Result<(), ReplaceError> {
    let carried = match bits {
        ExecutableBits::Carry => 0o777,
        ExecutableBits::Drop => 0o666,
    };
    let (old, metadata) = open_file(folder, name).map_err(|error| match error {
        OpenError::NotAFile(_) => ReplaceError::Changed,
        OpenError::Failed(error) => changed_if_missing(error),
    })?;
    let attributes = Attributes::from(&metadata);
    let new = write_replacement(folder, content, (&old, attributes.mode & carried))?;
    let is_expected = |name: &OsStr| {
        Attributes::of(folder, name).is_ok_and(|found| found == attributes) && is_expected(name)
    };
    exchange_expected(folder, name, new, is_expected)
}

/// Puts the complete file `new` in the place of `name` if `is_expected` is true of the old file, and removes the old one.
/// Looks at it before the exchange, because others should not see one that is reverted, and afterwards, because someone
/// may have been faster. If it fails, `new` is removed.
pub(crate) fn exchange_expected(
    folder: &Dir,
    name: &OsStr,
    (new, file): (String, File),
    is_expected: impl Fn(&OsStr) -> bool,
) -> Result<(), ReplaceError> {
    let temporary = OsStr::new(&new);
    let is_new = || -> io::Result<bool> {
        let (found, own) = (folder.symlink_metadata(temporary)?, file.metadata()?);
        Ok((found.dev(), found.ino()) == (own.dev(), own.ino()))
    };
    let exchanged = if is_expected(name) {
        exchange(folder, temporary, name).map_err(changed_if_missing)
    } else {
        Err(ReplaceError::Changed)
    };
    let error = match exchanged {
        Ok(true) if is_expected(temporary) => return Ok(folder.remove_file(temporary)?),
        Ok(true) => match exchange(folder, temporary, name) {
            Ok(_) if is_new().is_ok_and(|is_new| is_new) => ReplaceError::Changed,
            // Someone has replaced the new file too, or removed it.
            Ok(_) | Err(_) => return Err(ReplaceError::Moved(new)),
        },
        // The file system cannot exchange files, so this look is the last one.
        Ok(false) if is_expected(name) => match folder.rename(temporary, folder, name) {
            Ok(()) => return Ok(()),
            Err(error) => error.into(),
        },
        Ok(false) => ReplaceError::Changed,
        Err(error) => error,
    };
    // That error is the one to report.
    let _ = folder.remove_file(temporary);
    Err(error)
}

fn changed_if_missing(error: io::Error) -> ReplaceError {
    match error.kind() {
        io::ErrorKind::NotFound => ReplaceError::Changed,
        _ => ReplaceError::Failed(error),
    }
}

/// Writes a new file with a temporary name, and returns its name. Without a mode it gets the usual one. With a mode it
/// is private until its content is complete.
pub(crate) fn write_temporary(
    folder: &Dir,
    content: &[u8],
    mode: Option<u32>,
) -> io::Result<(String, File)> {
    match mode {
        None => write_new(folder, content, USUAL_MODE, |_| Ok(())),
        Some(mode) => write_new(folder, content, PRIVATE_MODE, |file| {
            file.set_permissions(Permissions::from_mode(mode))
        }),
    }
}

/// Writes a new file with a temporary name, which gets the attributes of the file `old`, but this mode. It is private until
/// it has them.
pub(crate) fn write_replacement(
    folder: &Dir,
    content: &[u8],
    (old, mode): (&File, u32),
) -> io::Result<(String, File)> {
    write_new(folder, content, PRIVATE_MODE, |file| {
        carry_over(old, file, mode)
    })
}

/// Writes a file that is created with this mode and gets its attributes from `complete`.
fn write_new(
    folder: &Dir,
    content: &[u8],
    mode: u32,
    complete: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<(String, File)> {
    let (temporary, mut file) = create_temporary(folder, mode)?;
    let written = file
        .write_all(content)
        .and_then(|()| complete(&file))
        .and_then(|()| file.sync_all());
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
fn exchange(folder: &Dir, one: &OsStr, other: &OsStr) -> io::Result<bool> {
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
    reopen_folder(dir)?.sync_all()
}

/// Opens a folder again: the handle itself is only a reference to it.
pub(crate) fn reopen_folder(dir: &Dir) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(dir, ".", flags, Mode::empty())?;
    Ok(File::from_std(opened.into()))
}

/// Returns a random name for a temporary file.
pub(crate) fn temporary_name() -> String {
    format!(".{:016x}{TEMPORARY_END}", random_number())
}

/// Whether this is the name of a temporary file. One that is old was left by a crash.
pub(crate) fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && name.ends_with(TEMPORARY_END.as_bytes())
}

/// Returns a random number, different in every process. Not suitable for cryptography.
pub(crate) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// Creates an empty file with this mode.
fn create_temporary(folder: &Dir, mode: u32) -> io::Result<(String, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
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
        let (written, _) = write_new(&folder, b"content", PRIVATE_MODE, |file| {
            assert_eq!(file.metadata()?.permissions().mode() & 0o777, 0o600);
            assert_eq!(file.metadata()?.len(), 7);
            file.set_permissions(Permissions::from_mode(0o644))
        })
        .unwrap();
        assert_eq!(mode(&written), 0o644);
        folder.write("usual", "").unwrap();
        let (new, _) = write_temporary(&folder, b"content", None).unwrap();
        assert_eq!(mode(&new), mode("usual"));
    }

    fn files(folder: &Dir) -> Vec<(String, String)> {
        let entries = folder.entries().unwrap().map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let content = folder.read_to_string(&name).unwrap();
            (name, content)
        });
        let mut files: Vec<_> = entries.collect();
        files.sort();
        files
    }

    /// Replaces the file `name` while another program acts right before the exchange and right after it.
    fn replace_during(
        before_exchange: impl Fn(&Dir),
        after_exchange: impl Fn(&Dir),
    ) -> (Result<(), ReplaceError>, Vec<(String, String)>) {
        let folder = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        folder.write("name", "old").unwrap();
        folder.write("other", "saved").unwrap();
        let looks = std::cell::Cell::new(0);
        let replaced = replace(
            &folder,
            "name".as_ref(),
            b"new",
            ExecutableBits::Drop,
            |name| {
                let is_expected = folder.read_to_string(name).is_ok_and(|text| text == "old");
                looks.set(looks.get() + 1);
                match looks.get() {
                    1 => before_exchange(&folder),
                    _ => after_exchange(&folder),
                }
                is_expected
            },
        );
        (replaced, files(&folder))
    }

    fn expected(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        files.iter().map(owned).collect()
    }

    #[test]
    fn a_file_is_replaced_and_nothing_temporary_is_left() {
        let (replaced, files) = replace_during(|_| (), |_| ());
        replaced.unwrap();
        assert_eq!(files, expected(&[("name", "new"), ("other", "saved")]));
    }

    #[test]
    fn a_file_that_is_saved_right_before_the_exchange_is_put_back() {
        let save = |folder: &Dir| folder.rename("other", folder, "name").unwrap();
        let (replaced, files) = replace_during(save, |_| ());
        assert!(matches!(replaced, Err(ReplaceError::Changed)));
        assert_eq!(files, expected(&[("name", "saved")]));
    }

    #[test]
    fn a_file_that_is_removed_right_before_the_exchange_is_not_created_again() {
        let remove = |folder: &Dir| folder.remove_file("name").unwrap();
        let (replaced, files) = replace_during(remove, |_| ());
        assert!(matches!(replaced, Err(ReplaceError::Changed)));
        assert_eq!(files, expected(&[("other", "saved")]));
    }

    #[test]
    fn no_version_is_lost_if_one_is_saved_before_the_exchange_and_one_after_it() {
        let write = |folder: &Dir| folder.write("name", "saved in place").unwrap();
        let save = |folder: &Dir| folder.rename("other", folder, "name").unwrap();
        let (replaced, files) = replace_during(write, save);
        let Err(ReplaceError::Moved(name)) = replaced else {
            panic!("{replaced:?}");
        };
        let mut expected = expected(&[("name", "saved in place"), (&name, "saved")]);
        expected.sort();
        assert_eq!(files, expected);
    }

    #[test]
    fn a_file_is_not_created_over_one_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        create(&folder, "name".as_ref(), b"mine").unwrap();
        let created = create(&folder, "name".as_ref(), b"new");
        assert!(matches!(created, Err(ReplaceError::Changed)));
        assert_eq!(files(&folder), expected(&[("name", "mine")]));
    }
}
