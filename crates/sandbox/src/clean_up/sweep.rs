//! The second look: what a command created where it must not. Runs in the guard, inside of the sandbox, by open handles.
//!
//! Only directories that changed since the scan are read again. A command cannot set the time of a change.

use super::CleanUpReport;
use super::checklist::{Checklist, KnownDirectory, Root};
use super::directory::{Directory, Identity, Status, set_mode};
use super::remove::Trash;
use crate::NewNames;
use crate::protected::{GitEntries, Place, is_git_name};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a sweep may take.
pub(crate) const MOST_TIME: Duration = Duration::from_secs(60);
/// How many entries a sweep reads.
const MOST_ENTRIES: usize = 5_000_000;
/// The clock of change times lags behind by up to a tick of the kernel.
const CLOCK_TICK_NS: u64 = 20_000_000;
/// Some disks store whole seconds only, every other one of them at worst.
const COARSE_CLOCK_NS: u64 = 2_000_000_000;
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// The handles that a sweep works with.
pub(crate) struct Handles {
    /// One for each root of the checklist, in its order; those that cannot be opened are missing.
    pub(crate) roots: Vec<Option<OwnedFd>>,
    pub(crate) trash: Option<OwnedFd>,
}

/// Removes what was created since the scan. What was born after `until` is somebody else's.
pub(crate) fn sweep(
    checklist: &Checklist,
    handles: &Handles,
    until_ns: Option<u64>,
) -> CleanUpReport {
    let mut sweep = Sweep {
        checklist,
        known: checklist.known.iter().copied().collect(),
        trash: Trash::new(handles.trash.as_ref().map(AsFd::as_fd)),
        until_ns,
        deadline: Instant::now() + MOST_TIME,
        entries: 0,
        report: CleanUpReport {
            incomplete: checklist.incomplete.clone(),
            ..CleanUpReport::default()
        },
    };
    for (root, handle) in checklist.roots.iter().zip(&handles.roots) {
        if let Some(handle) = handle {
            sweep.root(root, handle.as_fd());
        }
    }
    sweep.report
}

struct Sweep<'a> {
    checklist: &'a Checklist,
    known: HashSet<Identity>,
    trash: Trash<'a>,
    until_ns: Option<u64>,
    deadline: Instant,
    entries: usize,
    report: CleanUpReport,
}

impl<'a> Sweep<'a> {
    fn root(&mut self, root: &'a Root, handle: BorrowedFd<'a>) {
        let same = Status::of_handle(handle).is_ok_and(|status| {
            let now = status.identity;
            (now.device, now.inode) == (root.identity.device, root.identity.inode)
        });
        if !same {
            let path = root.path.display();
            self.report
                .add_incomplete(format!("`{path}` is another directory now"));
            return;
        }
        let changed: Vec<&KnownDirectory> = root
            .directories
            .iter()
            .filter(|directory| !self.is_unchanged(directory, handle))
            .collect();
        let mut waiting: Vec<PathBuf> = Vec::new();
        if !changed.is_empty() {
            let recorded: HashSet<&Path> = root
                .directories
                .iter()
                .map(|directory| directory.path.as_path())
                .collect();
            let changed = changed.iter().map(|directory| directory.path.clone());
            waiting.extend(changed);
            while let Some(inside) = waiting.pop() {
                if !self.has_room() {
                    break;
                }
                self.directory(root, handle, &inside, &recorded, &mut waiting);
            }
        }
        for inside in &root.listed {
            self.listed(root, handle, inside);
        }
        for inside in &root.links {
            self.link(root, handle, inside);
        }
    }

    fn is_unchanged(&self, directory: &KnownDirectory, root: BorrowedFd<'_>) -> bool {
        // A path that is led astray on the way does not end at the same directory.
        let path = if directory.path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &directory.path
        };
        let Ok(now) = Status::of(root, path) else {
            return false;
        };
        let tick = if directory.changed_ns.is_multiple_of(1_000_000_000) {
            COARSE_CLOCK_NS
        } else {
            CLOCK_TICK_NS
        };
        now.identity == directory.identity
            && now.changed_ns == i128::from(directory.changed_ns)
            && directory.changed_ns < self.checklist.started_ns.saturating_sub(tick)
    }

    fn has_room(&mut self) -> bool {
        let limit = if self.entries >= MOST_ENTRIES {
            format!("more than {MOST_ENTRIES} files changed")
        } else if Instant::now() >= self.deadline {
            format!("it took longer than {} seconds", MOST_TIME.as_secs())
        } else {
            return true;
        };
        self.report.add_incomplete(limit);
        false
    }

    /// Looks through one directory.
    fn directory(
        &mut self,
        root: &Root,
        handle: BorrowedFd<'_>,
        inside: &Path,
        recorded: &HashSet<&Path>,
        waiting: &mut Vec<PathBuf>,
    ) {
        let mut directory = match Directory::open_as_owner(handle, inside) {
            Ok(directory) => directory,
            // It is gone, or something else stands in its place by now; that is the business of another clean-up.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return,
            Err(error) => return self.unreadable(root, inside, error),
        };
        let (status, entries) = match (Status::of_handle(&directory), directory.entries()) {
            (Ok(status), Ok(entries)) => (status, entries),
            (Err(error), _) | (_, Err(error)) => return self.unreadable(root, inside, error),
        };
        self.entries += entries.len();
        let mut git = GitEntries::default();
        entries.iter().for_each(|(name, _)| git.add(name));
        if git.is_repository()
            && self.repository(root, handle, &mut directory, inside, recorded, &status)
        {
            return;
        }
        let place = Place::of(inside);
        for (name, kind) in &entries {
            let path = inside.join(name);
            if place.protection_of(name).is_some() {
                let is_allowed = self.checklist.allow_git_init && is_git_name(name);
                if !is_allowed {
                    self.take_if_new(root, &mut directory, &path);
                }
            } else if *kind == FileType::Directory {
                if !recorded.contains(path.as_path()) && !root.hidden.contains(&path) {
                    waiting.push(path);
                }
            } else if *kind == FileType::RegularFile {
                self.clear_privileges(root, &directory, &path);
            }
        }
    }

    /// Handles a directory that git takes for a repository. Says whether there is nothing else to look at in it.
    fn repository(
        &mut self,
        root: &Root,
        handle: BorrowedFd<'_>,
        directory: &mut Directory,
        inside: &Path,
        recorded: &HashSet<&Path>,
        status: &Status,
    ) -> bool {
        let is_root = inside.as_os_str().is_empty();
        if self.known.contains(&status.identity) {
            return !is_root;
        }
        if self.checklist.allow_git_init || self.is_too_young(status) {
            return false;
        }
        if is_root || recorded.contains(inside) {
            // The user's own files may be in it; without this one it is no repository.
            self.take(root, directory, &inside.join("HEAD"));
            return false;
        }
        let parent = inside.parent().unwrap_or(Path::new(""));
        match Directory::open_as_owner(handle, parent) {
            Ok(mut parent) => self.take(root, &mut parent, inside),
            Err(error) => self.unreadable(root, parent, error),
        }
        true
    }

    /// A path that the policy itself names, if the command created it.
    fn listed(&mut self, root: &Root, handle: BorrowedFd<'_>, inside: &Path) {
        let parent = inside.parent().unwrap_or(Path::new(""));
        if inside.as_os_str().is_empty() {
            return;
        }
        if let Ok(mut directory) = Directory::open_as_owner(handle, parent) {
            self.take_if_new(root, &mut directory, inside);
        }
    }

    /// A protected link, if it is no longer the one that it was.
    fn link(&mut self, root: &Root, handle: BorrowedFd<'_>, inside: &Path) {
        let parent = inside.parent().unwrap_or(Path::new(""));
        let name = inside.file_name().unwrap_or_default();
        let found = Directory::open_as_owner(handle, parent)
            .and_then(|directory| Status::of(&directory, name));
        if !found.is_ok_and(|status| self.known.contains(&status.identity)) {
            self.report.add_lost(root.path.join(inside));
        }
    }

    fn take_if_new(&mut self, root: &Root, directory: &mut Directory, inside: &Path) {
        let name = inside.file_name().unwrap_or_default();
        let Ok(status) = Status::of(&*directory, name) else {
            return;
        };
        if !self.known.contains(&status.identity) && !self.is_too_young(&status) {
            self.take(root, directory, inside);
        }
    }

    fn is_too_young(&self, status: &Status) -> bool {
        self.until_ns
            .is_some_and(|until| status.identity.born_ns > until)
    }

    fn take(&mut self, root: &Root, directory: &mut Directory, inside: &Path) {
        let path = root.path.join(inside);
        if self.report.removed.contains(&path) || self.report.left.contains(&path) {
            return;
        }
        if self.checklist.new_names == NewNames::Reported {
            return self.report.add_left(path);
        }
        match self
            .trash
            .take(directory, inside.file_name().unwrap_or_default())
        {
            Ok(()) => self.report.add_removed(path),
            Err(_) => self.report.add_left(path),
        }
    }

    /// Clears the bits with which a program runs as its owner, whoever starts it.
    fn clear_privileges(&mut self, root: &Root, directory: &Directory, inside: &Path) {
        let name = inside.file_name().unwrap_or_default();
        let Ok(status) = Status::of(directory, name) else {
            return;
        };
        let is_privileged = status.mode & (SETUID | SETGID) != 0;
        let is_old = status.changed_ns < i128::from(self.checklist.started_ns);
        if !is_privileged || is_old || self.checklist.new_names == NewNames::Reported {
            return;
        }
        let path = root.path.join(inside);
        match clear_bits(directory, name) {
            Ok(()) => self.report.add_cleared(path),
            Err(_) => self.report.add_left(path),
        }
    }

    fn unreadable(&mut self, root: &Root, inside: &Path, error: Errno) {
        let path = root.path.join(inside);
        self.report
            .add_incomplete(format!("`{}` could not be read: {error}", path.display()));
    }
}

fn clear_bits(directory: &Directory, name: &OsStr) -> rustix::io::Result<()> {
    let file = super::directory::open_beneath(directory.as_fd(), Path::new(name), OFlags::PATH)?;
    let status = Status::of_handle(&file)?;
    if status.kind() != FileType::RegularFile {
        return Ok(());
    }
    let mode = status.mode & 0o7777 & !(SETUID | SETGID);
    set_mode(&file, Mode::from_raw_mode(mode))
}
