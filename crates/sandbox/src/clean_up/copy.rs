//! Copies an entry into a trash on another file system: only files and directories, up to a limit.

use super::directory::{Directory, Status, open_beneath};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, Mode, OFlags, mkdirat, openat};
use rustix::io::{Errno, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const MAX_BYTES: u64 = 1 << 30;
const MAX_ENTRIES: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// What remains of the limits of a copy.
pub(super) struct CopyBudget {
    bytes: u64,
    entries: usize,
    depth: usize,
}

impl CopyBudget {
    pub(super) fn new() -> Self {
        Self {
            bytes: MAX_BYTES,
            entries: MAX_ENTRIES,
            depth: MAX_DEPTH,
        }
    }

    /// Copies an entry into another directory under a new name. Skips links, sockets and other special files.
    pub(super) fn copy(
        &mut self,
        from: BorrowedFd<'_>,
        name: &OsStr,
        to: BorrowedFd<'_>,
        new_name: &OsStr,
    ) -> Result<()> {
        self.entries = self.entries.checked_sub(1).ok_or(Errno::FBIG)?;
        match Status::of(from, name)?.kind() {
            FileType::RegularFile => self.copy_file(from, name, to, new_name),
            FileType::Directory => {
                self.depth = self.depth.checked_sub(1).ok_or(Errno::FBIG)?;
                mkdirat(to, new_name, Mode::RWXU)?;
                let directory = OFlags::RDONLY | OFlags::DIRECTORY;
                let inside = open_beneath(to, Path::new(new_name), directory)?;
                let source = Directory::open(from, Path::new(name))?;
                for (entry, _) in source.entries()? {
                    self.copy(source.as_fd(), &entry, inside.as_fd(), &entry)?;
                }
                self.depth += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn copy_file(
        &mut self,
        from: BorrowedFd<'_>,
        name: &OsStr,
        to: BorrowedFd<'_>,
        new_name: &OsStr,
    ) -> Result<()> {
        // If the entry was replaced by a pipe meanwhile, opening must not block.
        let reading = OFlags::RDONLY | OFlags::NONBLOCK;
        let source = open_beneath(from, Path::new(name), reading)?;
        if Status::of_handle(&source)?.kind() != FileType::RegularFile {
            return Ok(());
        }
        let writing = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = openat(to, new_name, writing, Mode::RUSR | Mode::WUSR)?;
        let mut source = File::from(source).take(self.bytes + 1);
        let copied = std::io::copy(&mut source, &mut File::from(target))
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        self.bytes = self.bytes.checked_sub(copied).ok_or(Errno::FBIG)?;
        Ok(())
    }
}
