//! Directories by open handle. Nothing here resolves a symbolic link or leaves the directory that a handle stands for,
//! whatever is renamed meanwhile.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags, openat2, statx,
};
use rustix::io::{Errno, Result};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a file is, independent of its name. The time of its birth tells apart files that got the same inode number one
/// after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) born_ns: u64,
}

/// The metadata that clean-up looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) identity: Identity,
    pub(crate) changed_ns: i128,
    pub(crate) mode: u32,
}

impl Status {
    /// The status of an entry, links not followed.
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

/// A handle of a writable directory, from which everything else is opened. The path must be free of links.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// A directory that can be listed, and in which entries can be removed for as long as this lives. A command can have
/// closed it, or the way to it, against its own user; the owner of a directory can open it again.
#[derive(Debug)]
pub(crate) struct Directory {
    handle: OwnedFd,
    /// Handles whose modes were widened, and the modes they had.
    widened: Vec<(OwnedFd, Mode)>,
}

impl Directory {
    /// Opens a directory for listing, if its modes allow it. The empty path is the root itself.
    pub(crate) fn open(root: BorrowedFd<'_>, inside: &Path) -> Result<Self> {
        let path = if inside.as_os_str().is_empty() {
            Path::new(".")
        } else {
            inside
        };
        let handle = open_beneath(root, path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Self {
            handle,
            widened: Vec::new(),
        })
    }

    /// Opens a directory for listing; its owner can, whatever the modes on the way are.
    pub(crate) fn open_as_owner(root: BorrowedFd<'_>, inside: &Path) -> Result<Self> {
        match Self::open(root, inside) {
            Ok(mut directory) => {
                // Without the right to search it, its entries can be listed and not looked at.
                if Status::of_handle(&directory)?.mode & 0o100 == 0 {
                    let _ = directory.widen();
                }
                Ok(directory)
            }
            Err(Errno::ACCESS) => Self::open_closed(root, inside),
            Err(error) => Err(error),
        }
    }

    /// Goes down component by component, and opens each directory on the way to its owner.
    fn open_closed(root: BorrowedFd<'_>, inside: &Path) -> Result<Self> {
        let path_only = OFlags::PATH | OFlags::DIRECTORY;
        let mut way = Self {
            handle: root.try_clone_to_owned().map_err(|_| Errno::MFILE)?,
            widened: Vec::new(),
        };
        way.widen()?;
        for name in inside.iter() {
            let next = open_beneath(way.handle.as_fd(), Path::new(name), path_only)?;
            way.handle = next;
            way.widen()?;
        }
        let readable = OFlags::RDONLY | OFlags::DIRECTORY;
        way.handle = open_beneath(way.handle.as_fd(), Path::new("."), readable)?;
        Ok(way)
    }

    /// Gives the owner all rights to this directory until this is dropped.
    pub(crate) fn widen(&mut self) -> Result<()> {
        let mode = Status::of_handle(&self.handle)?.mode;
        if mode & 0o700 == 0o700 {
            return Ok(());
        }
        set_mode(&self.handle, Mode::from_raw_mode(mode & 0o7777 | 0o700))?;
        let handle = self.handle.try_clone().map_err(|_| Errno::MFILE)?;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        self.widened.push((handle, mode));
        Ok(())
    }

    /// Gives the owner all rights to this directory for good, if it was closed.
    pub(crate) fn open_for_good(&mut self) {
        if self.widen().is_ok() {
            let own = Status::of_handle(&self.handle).map(|status| status.identity);
            self.widened.retain(|(handle, _)| {
                let identity = Status::of_handle(handle).map(|status| status.identity);
                identity.is_err() || identity.ok() != own.ok()
            });
        }
    }

    /// Whether its owner had to be given rights to it for now.
    pub(crate) fn is_widened(&self) -> bool {
        !self.widened.is_empty()
    }

    /// Calls a function with each entry's name and its type, as far as the directory tells it.
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

    /// Its entries, in a list of their own because clean-up removes some on the way.
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
        for (handle, mode) in self.widened.iter().rev() {
            let _ = set_mode(handle, *mode);
        }
    }
}

/// Opens what a path leads to beneath a directory. A link anywhere on the way is an error.
pub(crate) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(directory, path, flags, Mode::empty(), resolve)
}

/// Sets the mode of what a handle stands for. Handles that only stand for a path take it through `/proc` alone.
pub(crate) fn set_mode(handle: impl AsFd, mode: Mode) -> Result<()> {
    let path = format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd());
    rustix::fs::chmodat(CWD, path, mode, AtFlags::empty())
}
