//! Moves one entry of a directory to the trash. If that fails, the entry stays in place and is reported: losing a file
//! is worse than leaving it.

use super::copy::CopyBudget;
use super::directory::{Directory, Status, open_beneath, set_mode};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::{Errno, Result};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of bytes of the original name that are kept in the trash, before the added number.
const MAX_NAME_BYTES: usize = 200;

/// The trash: a directory to which only the clean-up has a handle.
pub(super) struct Trash<'a> {
    handle: Option<BorrowedFd<'a>>,
    stamp: u128,
    used: Cell<u64>,
}

impl<'a> Trash<'a> {
    pub(super) fn new(handle: Option<BorrowedFd<'a>>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            handle,
            stamp: now.map_or(0, |time| time.as_micros()),
            used: Cell::new(0),
        }
    }

    /// Moves an entry of a directory to the trash. If the trash is on another file system, copies the entry and deletes
    /// the original. If the launcher has no trash, only deletes it.
    pub(super) fn add(&self, directory: &mut Directory, name: &OsStr) -> Result<()> {
        // If this fails, the removal below fails too and reports the error.
        let _ = directory.grant_owner_access();
        grant_owner_access(directory.as_fd(), name);
        let Some(trash) = self.handle else {
            return self.delete(directory, name);
        };
        let unused = self.unused_name(name);
        match renameat_with(&*directory, name, trash, &unused, RenameFlags::NOREPLACE) {
            Err(Errno::NOENT) => Ok(()),
            // Some file systems do not support NOREPLACE; the name is unique anyway.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(&*directory, name, trash, &unused),
            Err(Errno::XDEV) => {
                CopyBudget::new().copy(directory.as_fd(), name, trash, &unused)?;
                self.delete(directory, name)
            }
            moved => moved,
        }
    }

    fn unused_name(&self, name: &OsStr) -> OsString {
        let number = self.used.get();
        self.used.set(number + 1);
        let bytes = name.as_bytes();
        let start = &bytes[..bytes.len().min(MAX_NAME_BYTES)];
        let mut unused = OsStr::from_bytes(start).to_os_string();
        unused.push(format!(".{}.{number}", self.stamp));
        unused
    }

    /// Deletes an entry with its contents. Moves deeper directories to the top first, so that at most two directories
    /// are open at any depth.
    fn delete(&self, directory: &Directory, name: &OsStr) -> Result<()> {
        let top = match Directory::open(directory.as_fd(), Path::new(name)) {
            Ok(top) => top,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return ignore_missing(unlinkat(directory, name, FILE));
            }
            Err(error) => return ignore_missing(Err(error)),
        };
        let mut waiting: Vec<OsString> = Vec::new();
        for (entry, kind) in top.entries()? {
            if kind == FileType::Directory {
                waiting.push(entry);
            } else {
                ignore_missing(unlinkat(&top, &entry, FILE))?;
            }
        }
        while let Some(entry) = waiting.pop() {
            grant_owner_access(top.as_fd(), &entry);
            let inner = Directory::open(top.as_fd(), Path::new(&entry))?;
            for (below, kind) in inner.entries()? {
                if kind == FileType::Directory {
                    grant_owner_access(inner.as_fd(), &below);
                    let name = self.unused_name(OsStr::new("d"));
                    ignore_missing(renameat(&inner, &below, &top, &name))?;
                    waiting.push(name);
                } else {
                    ignore_missing(unlinkat(&inner, &below, FILE))?;
                }
            }
            ignore_missing(unlinkat(&top, &entry, AtFlags::REMOVEDIR))?;
        }
        ignore_missing(unlinkat(directory, name, AtFlags::REMOVEDIR))
    }
}

const FILE: AtFlags = AtFlags::empty();

/// Treats a missing entry as success: it need not be removed.
fn ignore_missing(result: Result<()>) -> Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}

/// Gives the owner full access to a directory that is about to be removed: otherwise it can be neither moved nor
/// emptied.
fn grant_owner_access(directory: BorrowedFd<'_>, name: &OsStr) {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let Ok(handle) = open_beneath(directory, Path::new(name), flags) else {
        return;
    };
    let closed = Status::of_handle(&handle)
        .ok()
        .map(|status| status.mode & 0o7777)
        .filter(|mode| mode & 0o700 != 0o700);
    if let Some(mode) = closed {
        let _ = set_mode(&handle, Mode::from_raw_mode(mode | 0o700));
    }
}
