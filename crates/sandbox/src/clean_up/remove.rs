//! Taking one entry out of a directory: into the trash, or away for good if the trash cannot take it.

use super::copy::Budget;
use super::directory::{Directory, Status, open_beneath, set_mode};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, renameat_with, unlinkat};
use rustix::io::{Errno, Result};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

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

    /// Removes an entry of a directory.
    pub(super) fn take(&self, directory: &mut Directory, name: &OsStr) -> Result<()> {
        // Without the right to write in it nothing is removed, and the error below says so.
        let _ = directory.widen();
        open_to_owner(directory.as_fd(), name);
        if let Some(trash) = self.handle {
            let unused = self.unused_name(name);
            let flags = RenameFlags::NOREPLACE;
            match renameat_with(&*directory, name, trash, &unused, flags) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // What is too large for a copy is deleted all the same: it must not stay.
                Err(Errno::XDEV) => {
                    let _ = Budget::new().copy(directory.as_fd(), name, trash, &unused);
                }
                Err(_) => {}
            }
        }
        self.delete(directory, name)
    }

    fn unused_name(&self, name: &OsStr) -> OsString {
        let number = self.used.get();
        self.used.set(number + 1);
        let mut unused = name.to_os_string();
        unused.push(format!(".{}.{number}", self.stamp));
        unused
    }

    /// Deletes an entry with all that is in it. What lies deeper is first moved to the top, so that no depth needs more
    /// than two open directories.
    fn delete(&self, directory: &Directory, name: &OsStr) -> Result<()> {
        let top = match open_beneath(
            directory.as_fd(),
            Path::new(name),
            OFlags::RDONLY | OFlags::DIRECTORY,
        ) {
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return unlinkat(directory, name, AtFlags::empty());
            }
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error),
            Ok(_) => Directory::open(directory.as_fd(), Path::new(name))?,
        };
        let mut waiting: Vec<OsString> = Vec::new();
        for (entry, kind) in top.entries()? {
            self.unlink_or_keep(&top, &entry, kind, &mut waiting)?;
        }
        while let Some(entry) = waiting.pop() {
            open_to_owner(top.as_fd(), &entry);
            let inner = Directory::open(top.as_fd(), Path::new(&entry))?;
            for (below, kind) in inner.entries()? {
                if kind == FileType::Directory {
                    open_to_owner(inner.as_fd(), &below);
                    let name = self.unused_name(OsStr::new("d"));
                    renameat_with(&inner, &below, &top, &name, RenameFlags::NOREPLACE)?;
                    waiting.push(name);
                } else {
                    self.unlink_or_keep(&inner, &below, kind, &mut waiting)?;
                }
            }
            unlinkat(&top, &entry, AtFlags::REMOVEDIR)?;
        }
        drop(top);
        unlinkat(directory, name, AtFlags::REMOVEDIR)
    }

    fn unlink_or_keep(
        &self,
        directory: &Directory,
        name: &OsStr,
        kind: FileType,
        directories: &mut Vec<OsString>,
    ) -> Result<()> {
        if kind == FileType::Directory {
            directories.push(name.to_owned());
            return Ok(());
        }
        unlinkat(directory, name, AtFlags::empty())
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
