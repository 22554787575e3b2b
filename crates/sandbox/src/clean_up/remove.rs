//! Moves one entry of a directory to the trash. What the trash cannot take stays where it is: a file that
//! cannot be got back is worse than one that is reported.

use super::copy::Budget;
use super::directory::{Directory, Status, open_beneath, set_mode};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::{Errno, Result};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// So much of a name is kept in the trash, where a number follows it.
const LONGEST_NAME: usize = 200;

/// Where removed entries go: a directory that only clean-up holds a handle of.
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

    /// Moves an entry of a directory to the trash, or copies and deletes it if that is on another disk. A launcher without
    /// a trash has it deleted.
    pub(super) fn take(&self, directory: &mut Directory, name: &OsStr) -> Result<()> {
        // Without the right to write in it nothing is removed, and the error below says so.
        let _ = directory.widen();
        open_to_owner(directory.as_fd(), name);
        let Some(trash) = self.handle else {
            return self.delete(directory, name);
        };
        let unused = self.unused_name(name);
        match renameat_with(&*directory, name, trash, &unused, RenameFlags::NOREPLACE) {
            Err(Errno::NOENT) => Ok(()),
            // Some disks cannot promise not to replace; the name is new all the same.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(&*directory, name, trash, &unused),
            Err(Errno::XDEV) => {
                Budget::new().copy(directory.as_fd(), name, trash, &unused)?;
                self.delete(directory, name)
            }
            moved => moved,
        }
    }

    fn unused_name(&self, name: &OsStr) -> OsString {
        let number = self.used.get();
        self.used.set(number + 1);
        let bytes = name.as_bytes();
        let start = &bytes[..bytes.len().min(LONGEST_NAME)];
        let mut unused = OsStr::from_bytes(start).to_os_string();
        unused.push(format!(".{}.{number}", self.stamp));
        unused
    }

    /// Deletes an entry with all that is in it. What lies deeper is first moved to the top, so that no depth needs more
    /// than two open directories.
    fn delete(&self, directory: &Directory, name: &OsStr) -> Result<()> {
        let top = match Directory::open(directory.as_fd(), Path::new(name)) {
            Ok(top) => top,
            Err(Errno::NOTDIR | Errno::LOOP) => return gone(unlinkat(directory, name, FILE)),
            Err(error) => return gone(Err(error)),
        };
        let mut waiting: Vec<OsString> = Vec::new();
        for (entry, kind) in top.entries()? {
            if kind == FileType::Directory {
                waiting.push(entry);
            } else {
                gone(unlinkat(&top, &entry, FILE))?;
            }
        }
        while let Some(entry) = waiting.pop() {
            open_to_owner(top.as_fd(), &entry);
            let inner = Directory::open(top.as_fd(), Path::new(&entry))?;
            for (below, kind) in inner.entries()? {
                if kind == FileType::Directory {
                    open_to_owner(inner.as_fd(), &below);
                    let name = self.unused_name(OsStr::new("d"));
                    gone(renameat(&inner, &below, &top, &name))?;
                    waiting.push(name);
                } else {
                    gone(unlinkat(&inner, &below, FILE))?;
                }
            }
            gone(unlinkat(&top, &entry, AtFlags::REMOVEDIR))?;
        }
        gone(unlinkat(directory, name, AtFlags::REMOVEDIR))
    }
}

const FILE: AtFlags = AtFlags::empty();

/// What is gone already need not be removed.
fn gone(result: Result<()>) -> Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}

/// Gives the owner all rights to a directory that is about to go: without them it can neither be moved nor emptied.
fn open_to_owner(directory: BorrowedFd<'_>, name: &OsStr) {
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
