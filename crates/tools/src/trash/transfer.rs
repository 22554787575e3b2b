//! Something moved from one folder to another, never over something that is there.
//!
//! In one step if both are on one file system. Otherwise it is copied, down to its last file and within a limit, and
//! then removed; links are copied as links, whatever they lead to.

use crate::kind::Kind;
use crate::tree::DEEPEST;
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, Metadata, OpenOptions, Permissions, PermissionsExt};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::{self, Read};

/// A name in a folder.
pub(super) type At<'a> = (&'a Dir, &'a OsStr);

/// Why something is not, or not only, where it was to go.
#[derive(Debug)]
pub(super) enum Interrupted {
    /// Something is there.
    Occupied,
    /// It has more bytes than may be copied.
    TooLarge,
    /// It holds what cannot be copied.
    Special,
    /// It was copied, but is still where it was, at least in part.
    NotRemoved(io::Error),
    Failed(io::Error),
}

impl From<io::Error> for Interrupted {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::Occupied,
            _ => Self::Failed(error),
        }
    }
}

/// Moves what is at `from`; copies at most `limit` bytes for it.
pub(super) fn transfer(from: At<'_>, to: At<'_>, limit: u64) -> Result<(), Interrupted> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Another file system, or one that knows no renaming without replacing.
        Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS) => copy_and_remove(from, to, limit),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Removes what is there, a folder with all it holds; links are not followed.
pub(super) fn remove(folder: &Dir, name: &OsStr) -> io::Result<()> {
    match Kind::from(folder.symlink_metadata(name)?.file_type()) {
        Kind::Folder => folder.remove_dir_all(name),
        _ => folder.remove_file(name),
    }
}

fn copy_and_remove(from: At<'_>, to: At<'_>, limit: u64) -> Result<(), Interrupted> {
    if to.0.symlink_metadata(to.1).is_ok() {
        return Err(Interrupted::Occupied);
    }
    let mut left = limit;
    if let Err(interrupted) = copy(from, to, &mut left, 1) {
        if !matches!(interrupted, Interrupted::Occupied) {
            // The reason to report is why it was not copied.
            let _ = remove(to.0, to.1);
        }
        return Err(interrupted);
    }
    remove(from.0, from.1).map_err(Interrupted::NotRemoved)
}

fn copy(from: At<'_>, to: At<'_>, left: &mut u64, depth: usize) -> Result<(), Interrupted> {
    let metadata = from.0.symlink_metadata(from.1)?;
    match Kind::from(metadata.file_type()) {
        Kind::File => copy_file(from, to, left),
        Kind::Folder if depth > DEEPEST => Err(Interrupted::TooLarge),
        Kind::Folder => {
            to.0.create_dir(to.1)?;
            let source = from.0.open_dir_nofollow(from.1)?;
            let copied = to.0.open_dir_nofollow(to.1)?;
            for entry in source.entries()? {
                let name = entry?.file_name();
                copy((&source, &name), (&copied, &name), left, depth + 1)?;
            }
            Ok(copied.set_permissions(".", mode_of(&metadata))?)
        }
        Kind::Link => {
            let target = from.0.read_link_contents(from.1)?;
            Ok(to.0.symlink_contents(target, to.1)?)
        }
        Kind::NamedPipe | Kind::Socket | Kind::Device | Kind::Other => Err(Interrupted::Special),
    }
}

fn copy_file(from: At<'_>, to: At<'_>, left: &mut u64) -> Result<(), Interrupted> {
    let read = OpenOptions::new()
        .read(true)
        .nonblock(true)
        .follow(FollowSymlinks::No)
        .clone();
    let source = from.0.open_with(from.1, &read)?;
    // Something else may have taken the name since it was looked at.
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        return Err(Interrupted::Special);
    }
    if metadata.len() > *left {
        return Err(Interrupted::TooLarge);
    }
    let create = OpenOptions::new().write(true).create_new(true).clone();
    let mut copied = to.0.open_with(to.1, &create)?;
    let bytes = io::copy(&mut source.take(left.saturating_add(1)), &mut copied)?;
    *left = left.checked_sub(bytes).ok_or(Interrupted::TooLarge)?;
    copied.set_permissions(mode_of(&metadata))?;
    copied.sync_all()?;
    // Some file systems keep no time; then there is none to keep.
    if let Ok(modified) = metadata.modified() {
        copied.into_std().set_modified(modified.into_std())?;
    }
    Ok(())
}

fn mode_of(metadata: &Metadata) -> Permissions {
    Permissions::from_mode(metadata.permissions().mode() & 0o777)
}
