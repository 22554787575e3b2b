//! Directory operations on open handles. No operation follows a symbolic link or leaves the directory of its handle,
//! even if entries are renamed at the same time.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags, openat2, statx,
};
use rustix::io::{Errno, Result};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The identity of a file, independent of its name. The creation time distinguishes files that reuse an inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) born_ns: u64,
}

/// The metadata that the clean-up uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) identity: Identity,
    pub(crate) changed_ns: i128,
    pub(crate) mode: u32,
}

impl Status {
    /// Reads the status of an entry; does not follow links.
    pub(crate) fn of(directory: impl AsFd, path: impl rustix::path::Arg) -> Result<Self> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let found = statx(directory, path, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
        Ok(Self::from(&found))
    }

    pub(crate) fn of_handle(handle: impl AsFd) -> Result<Self> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let found = statx(handle, c"", AtFlags::EMPTY_PATH, wanted)?;
        Ok(Self::from(&found))
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    fn from(found: &Statx) -> Self {
        let ns = |seconds: i64, nanoseconds: u32| {
            i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
        };
        let born = ns(found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
        Self {
            identity: Identity {
                device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
                born_ns: u64::try_from(born).unwrap_or_default(),
            },
            changed_ns: ns(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
            mode: found.stx_mode.into(),
        }
    }
}

/// Opens a writable directory, from which everything else is opened. Fails if the path contains a link.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// An open directory. The command may have removed its own user's access to the directory or its parents. The clean-up
/// runs as the owner, so it can grant that access again. Dropping this value restores the original modes.
#[derive(Debug)]
pub(crate) struct Directory {
    handle: OwnedFd,
    /// Handles whose modes were changed, with their original modes.
    changed_modes: Vec<(OwnedFd, Mode)>,
}

impl Directory {
    /// Opens a directory for listing. Fails if its mode does not allow that. The empty path is the root itself.
    pub(crate) fn open(root: BorrowedFd<'_>, inside: &Path) -> Result<Self> {
        let path = if inside.as_os_str().is_empty() {
            Path::new(".")
        } else {
            inside
        };
        let handle = open_beneath(root, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Self {
            handle,
            changed_modes: Vec::new(),
        })
    }

    /// Opens a directory for listing, granting its owner access where the modes do not allow it.
    pub(crate) fn open_as_owner(root: BorrowedFd<'_>, inside: &Path) -> Result<Self> {
        match Self::open(root, inside) {
            Ok(mut directory) => {
                // Without the search permission, entries can be listed but their metadata cannot be read.
                if Status::of_handle(&directory)?.mode & 0o100 == 0 {
                    let _ = directory.grant_owner_access();
                }
                Ok(directory)
            }
            Err(Errno::ACCESS) => Self::open_closed(root, inside),
            Err(error) => Err(error),
        }
    }

    /// Descends component by component and grants the owner access to each directory.
    fn open_closed(root: BorrowedFd<'_>, inside: &Path) -> Result<Self> {
        let path_only = OFlags::PATH | OFlags::DIRECTORY;
        let mut current = Self {
            handle: root.try_clone_to_owned().map_err(|_| Errno::MFILE)?,
            changed_modes: Vec::new(),
        };
        current.grant_owner_access()?;
        for name in inside.iter() {
            let next = open_beneath(current.handle.as_fd(), Path::new(name), path_only)?;
            current.handle = next;
            current.grant_owner_access()?;
        }
        let readable = OFlags::RDONLY | OFlags::DIRECTORY;
        current.handle = open_beneath(current.handle.as_fd(), Path::new("."), readable)?;
        Ok(current)
    }

    /// Gives the owner full access to this directory until this value is dropped.
    pub(crate) fn grant_owner_access(&mut self) -> Result<()> {
        let mode = Status::of_handle(&self.handle)?.mode;
        if mode & 0o700 == 0o700 {
            return Ok(());
        }
        set_mode(&self.handle, Mode::from_raw_mode(mode & 0o7777 | 0o700))?;
        let handle = self.handle.try_clone().map_err(|_| Errno::MFILE)?;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        self.changed_modes.push((handle, mode));
        Ok(())
    }

    /// Gives the owner full access to this directory permanently.
    pub(crate) fn grant_owner_access_permanently(&mut self) {
        if self.grant_owner_access().is_ok() {
            let own = Status::of_handle(&self.handle).map(|status| status.identity);
            self.changed_modes.retain(|(handle, _)| {
                let identity = Status::of_handle(handle).map(|status| status.identity);
                identity.is_err() || identity.ok() != own.ok()
            });
        }
    }

    /// Whether the owner's access had to be granted temporarily.
    pub(crate) fn has_changed_modes(&self) -> bool {
        !self.changed_modes.is_empty()
    }

    /// Calls a function with the name and type of each entry. Some file systems do not report the type.
    pub(crate) fn each(&self, mut entry: impl FnMut(&OsStr, FileType)) -> Result<()> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 32 << 10];
        let mut entries = RawDir::new(&self.handle, &mut buffer);
        while let Some(found) = entries.next() {
            let found = found?;
            let name = OsStr::from_bytes(found.file_name().to_bytes());
            if name != "." && name != ".." {
                entry(name, found.file_type());
            }
        }
        Ok(())
    }

    /// Collects the entries, because the clean-up removes some while it iterates.
    pub(crate) fn entries(&self) -> Result<Vec<(OsString, FileType)>> {
        let mut entries = Vec::new();
        self.each(|name, kind| {
            let kind = match kind {
                FileType::Unknown => Status::of(self, name).map_or(kind, |status| status.kind()),
                kind => kind,
            };
            entries.push((name.to_owned(), kind));
        })?;
        Ok(entries)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        for (handle, mode) in self.changed_modes.iter().rev() {
            let _ = set_mode(handle, *mode);
        }
    }
}

/// Opens a path below a directory. Fails if any component is a link.
pub(crate) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(directory, path, flags, Mode::empty(), resolve)
}

/// Sets the mode of an open file. Goes through `/proc`, the only way that works for `O_PATH` handles.
pub(crate) fn set_mode(handle: impl AsFd, mode: Mode) -> Result<()> {
    let path = format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd());
    rustix::fs::chmodat(CWD, path, mode, AtFlags::empty())
}
