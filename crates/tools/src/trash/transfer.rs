//! Moves a file or folder from one folder to another and never overwrites anything.
//!
//! Within one file system this is a single rename. Otherwise everything is copied, up to a limit, and then removed.
//! Links are copied as links.

use crate::entry_kind::EntryKind;
use crate::tree::MAX_DEPTH;
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, Metadata, OpenOptions, Permissions, PermissionsExt};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::{self, Read};

/// A name in a folder.
pub(super) type Location<'a> = (&'a Dir, &'a OsStr);

/// Why a move failed, or left a part of the source behind.
#[derive(Debug)]
pub(super) enum TransferError {
    /// The destination exists.
    Occupied,
    /// The source is larger than the limit for copies, or nested too deeply.
    TooLarge,
    /// The source is or contains a special file, which cannot be copied.
    Special,
    /// The source was copied, but at least a part of it could not be removed.
    NotRemoved(io::Error),
    Failed(io::Error),
}

impl From<io::Error> for TransferError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AlreadyExists => Self::Occupied,
            _ => Self::Failed(error),
        }
    }
}

/// Moves `from` to `to`; copies at most `limit` bytes if a rename is impossible.
pub(super) fn transfer(
    from: Location<'_>,
    to: Location<'_>,
    limit: u64,
) -> Result<(), TransferError> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Another file system, or one that does not support NOREPLACE.
        Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS) => copy_and_remove(from, to, limit),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Removes a file, or a folder with its contents. Does not follow links.
pub(super) fn remove(folder: &Dir, name: &OsStr) -> io::Result<()> {
    match EntryKind::from(folder.symlink_metadata(name)?.file_type()) {
        EntryKind::Folder => folder.remove_dir_all(name),
        _ => folder.remove_file(name),
    }
}

fn copy_and_remove(from: Location<'_>, to: Location<'_>, limit: u64) -> Result<(), TransferError> {
    if to.0.symlink_metadata(to.1).is_ok() {
        return Err(TransferError::Occupied);
    }
    let mut left = limit;
    if let Err(error) = copy(from, to, &mut left, 1) {
        if !matches!(error, TransferError::Occupied) {
            // The copy error is the one to report.
            let _ = remove(to.0, to.1);
        }
        return Err(error);
    }
    remove(from.0, from.1).map_err(TransferError::NotRemoved)
}

fn copy(
    from: Location<'_>,
    to: Location<'_>,
    left: &mut u64,
    depth: usize,
) -> Result<(), TransferError> {
    let metadata = from.0.symlink_metadata(from.1)?;
    match EntryKind::from(metadata.file_type()) {
        EntryKind::File => copy_file(from, to, left),
        EntryKind::Folder if depth > MAX_DEPTH => Err(TransferError::TooLarge),
        EntryKind::Folder => {
            to.0.create_dir(to.1)?;
            let source = from.0.open_dir_nofollow(from.1)?;
            let copied = to.0.open_dir_nofollow(to.1)?;
            for entry in source.entries()? {
                let name = entry?.file_name();
                copy((&source, &name), (&copied, &name), left, depth + 1)?;
            }
            Ok(copied.set_permissions(".", mode_of(&metadata))?)
        }
        EntryKind::Link => {
            let target = from.0.read_link_contents(from.1)?;
            Ok(to.0.symlink_contents(target, to.1)?)
        }
        EntryKind::NamedPipe | EntryKind::Socket | EntryKind::Device | EntryKind::Other => {
            Err(TransferError::Special)
        }
    }
}

fn copy_file(from: Location<'_>, to: Location<'_>, left: &mut u64) -> Result<(), TransferError> {
    let read = OpenOptions::new()
        .read(true)
        .nonblock(true)
        .follow(FollowSymlinks::No)
        .clone();
    let source = from.0.open_with(from.1, &read)?;
    // Another process may have replaced the entry since its kind was checked.
    let metadata = source.metadata()?;
    if !metadata.is_file() {
        return Err(TransferError::Special);
    }
    if metadata.len() > *left {
        return Err(TransferError::TooLarge);
    }
    let create = OpenOptions::new().write(true).create_new(true).clone();
    let mut copied = to.0.open_with(to.1, &create)?;
    let bytes = io::copy(&mut source.take(left.saturating_add(1)), &mut copied)?;
    *left = left.checked_sub(bytes).ok_or(TransferError::TooLarge)?;
    copied.set_permissions(mode_of(&metadata))?;
    copied.sync_all()?;
    // Some file systems do not store the time.
    if let Ok(modified) = metadata.modified() {
        copied.into_std().set_modified(modified.into_std())?;
    }
    Ok(())
}

fn mode_of(metadata: &Metadata) -> Permissions {
    Permissions::from_mode(metadata.permissions().mode() & 0o777)
}
