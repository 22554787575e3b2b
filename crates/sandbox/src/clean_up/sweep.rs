//! The second look: what a command created where it must not. Runs in the guard, inside of the sandbox, by open handles.
//!
//! Only directories that changed since the scan are read again: a command cannot set the time of a change. A protected
//! path that existed is never touched, whatever is there now: a mount covered it, so only the user can have changed it.

use super::CleanUpReport;
use super::checklist::{Checklist, ForeignFile, KnownDirectory, Root};
use super::directory::{Directory, Identity, Status, set_mode};
use super::remove::Trash;
use crate::NewFiles;
use crate::protected::{GitEntries, ParentDirectory, is_git_name};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet, VecDeque};
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

/// The result of a sweep.
pub(crate) struct Swept {
    pub(crate) report: CleanUpReport,
    /// Whether no limit ended it.
    pub(crate) is_finished: bool,
}

/// Removes what was created since the scan. With `until_ns`, the time of the command is over: only what was born in it is
/// removed, and what was born later is the user's.
pub(crate) fn sweep(checklist: &Checklist, handles: &Handles, until_ns: Option<u64>) -> Swept {
    let mut sweep = Sweep {
        checklist,
        known: checklist.known.iter().copied().collect(),
        trash: Trash::new(handles.trash.as_ref().map(AsFd::as_fd)),
        until_ns,
        deadline: Instant::now() + MOST_TIME,
        entries: 0,
        handled: HashSet::new(),
        is_finished: true,
        report: CleanUpReport::default(),
    };
    for (root, handle) in checklist.roots.iter().zip(&handles.roots) {
        if let Some(handle) = handle {
            sweep.root(root, handle.as_fd());
        }
    }
    Swept {
        report: sweep.report,
        is_finished: sweep.is_finished,
    }
}

struct Sweep<'a> {
    checklist: &'a Checklist,
    known: HashSet<Identity>,
    trash: Trash<'a>,
    until_ns: Option<u64>,
    deadline: Instant,
    entries: usize,
    /// Paths that the report has already.
    handled: HashSet<PathBuf>,
    is_finished: bool,
    report: CleanUpReport,
}

/// A root of the checklist, to look things up in.
struct Index<'a> {
    root: &'a Root,
    handle: BorrowedFd<'a>,
    directories: HashMap<&'a Path, &'a KnownDirectory>,
    foreign: HashMap<&'a Path, &'a ForeignFile>,
    covered: HashSet<&'a Path>,
    links: HashMap<&'a Path, Identity>,
}

impl<'a> Index<'a> {
    fn new(root: &'a Root, handle: BorrowedFd<'a>) -> Self {
        let directories = root.directories.iter();
        let foreign = root.foreign.iter();
        let links = root.links.iter();
        Self {
            root,
            handle,
            directories: directories
                .map(|known| (known.path.as_path(), known))
                .collect(),
            foreign: foreign.map(|file| (file.path.as_path(), file)).collect(),
            covered: root.covered.iter().map(PathBuf::as_path).collect(),
            links: links
                .map(|link| (link.path.as_path(), link.identity))
                .collect(),
        }
    }
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
                .add_incomplete(&format!("`{path}` is another directory now"));
            return;
        }
        let changed = root.directories.iter();
        let changed = changed.filter(|directory| !self.is_unchanged(directory, handle));
        // Those nearest to the top first: a limit must not keep them from being read.
        let mut waiting: VecDeque<PathBuf> =
            changed.map(|directory| directory.path.clone()).collect();
        let unscanned = root.unscanned.iter();
        waiting.extend(
            unscanned
                .filter(|path| path.as_os_str().is_empty())
                .cloned(),
        );
        if waiting.is_empty() && root.listed.is_empty() && root.links.is_empty() {
            return;
        }
        let index = Index::new(root, handle);
        while let Some(inside) = waiting.pop_front() {
            if !self.has_room() {
                break;
            }
            self.directory(&index, &inside, &mut waiting);
        }
        for inside in &root.listed {
            self.listed(&index, inside);
        }
        for link in &root.links {
            self.link(&index, &link.path);
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
        self.report.add_incomplete(&limit);
        self.is_finished = false;
        false
    }

    /// Looks through one directory.
    fn directory(&mut self, index: &Index<'_>, inside: &Path, waiting: &mut VecDeque<PathBuf>) {
        let mut directory = match Directory::open_as_owner(index.handle, inside) {
            Ok(directory) => directory,
            // It is gone, or something else stands in its place by now; that is the business of another clean-up.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return,
            Err(error) => return self.unreadable(index.root, inside, error),
        };
        let (status, entries) = match (Status::of_handle(&directory), directory.entries()) {
            (Ok(status), Ok(entries)) => (status, entries),
            (Err(error), _) | (_, Err(error)) => return self.unreadable(index.root, inside, error),
        };
        self.entries += entries.len();
        let known = index.directories.get(inside);
        if known.is_some_and(|known| !known.is_closed) && directory.is_widened() {
            // The command closed it; the next scan has to read it again.
            directory.open_for_good();
        }
        let mut git = GitEntries::default();
        entries.iter().for_each(|(name, _)| git.add(name));
        if git.is_repository() && self.repository(index, &mut directory, inside, &status) {
            return;
        }
        let place = ParentDirectory::of(inside);
        for (name, kind) in &entries {
            let path = inside.join(name);
            if place.protection_of(name).is_some() {
                let is_allowed = self.checklist.allow_git_init && is_git_name(name);
                if !is_allowed {
                    self.take_if_new(index, &mut directory, &path);
                }
            } else if index.root.hides(inside, name) {
                self.report_if_new(index, &directory, &path);
            } else if *kind == FileType::Directory {
                let is_scanned = index.directories.contains_key(path.as_path());
                if !is_scanned && !index.root.hidden.contains(&path) {
                    waiting.push_back(path);
                }
            } else if *kind == FileType::RegularFile {
                self.clear_privileges(index.root, &directory, &path);
            }
        }
    }

    /// Handles a directory that git takes for a repository. Says whether there is nothing else to look at in it.
    fn repository(
        &mut self,
        index: &Index<'_>,
        directory: &mut Directory,
        inside: &Path,
        status: &Status,
    ) -> bool {
        let is_root = inside.as_os_str().is_empty();
        if self.is_known(index, inside, status) {
            return !is_root;
        }
        if self.checklist.allow_git_init {
            return false;
        }
        if is_root || index.directories.contains_key(inside) {
            // The user's own files may be in it; without this one it is no repository.
            let head = Path::new("HEAD");
            if let Ok(status) = Status::of(&*directory, head) {
                self.take(index, directory, &inside.join(head), &status);
            }
            return false;
        }
        let parent = inside.parent().unwrap_or(Path::new(""));
        match Directory::open_as_owner(index.handle, parent) {
            Ok(mut parent) => self.take(index, &mut parent, inside, status),
            Err(error) => self.unreadable(index.root, parent, error),
        }
        true
    }

    /// A path that the policy itself names, if the command created it.
    fn listed(&mut self, index: &Index<'_>, inside: &Path) {
        if inside.as_os_str().is_empty() {
            return;
        }
        let parent = inside.parent().unwrap_or(Path::new(""));
        if let Ok(mut directory) = Directory::open_as_owner(index.handle, parent) {
            self.take_if_new(index, &mut directory, inside);
        }
    }

    /// A protected link, if it is no longer the one that it was.
    fn link(&mut self, index: &Index<'_>, inside: &Path) {
        let parent = inside.parent().unwrap_or(Path::new(""));
        let name = inside.file_name().unwrap_or_default();
        let found = Directory::open_as_owner(index.handle, parent)
            .and_then(|directory| Status::of(&directory, name));
        if !found.is_ok_and(|status| self.is_known(index, inside, &status)) {
            self.report.add_lost(index.root.path.join(inside));
        }
    }

    /// Whether a protected entry existed before. A command can move and link a link, so that one counts only in its place.
    fn is_known(&self, index: &Index<'_>, inside: &Path, status: &Status) -> bool {
        if index.covered.contains(inside) {
            return true;
        }
        if let Some(file) = index.foreign.get(inside) {
            // As it was, it is for the other command's clean-up to remove.
            return file.identity == status.identity
                && i128::from(file.changed_ns) == status.changed_ns;
        }
        if status.kind() == FileType::Symlink {
            return index.links.get(inside) == Some(&status.identity);
        }
        self.known.contains(&status.identity)
    }

    fn take_if_new(&mut self, index: &Index<'_>, directory: &mut Directory, inside: &Path) {
        let name = inside.file_name().unwrap_or_default();
        let Ok(status) = Status::of(&*directory, name) else {
            return;
        };
        if !self.is_known(index, inside, &status) {
            self.take(index, directory, inside, &status);
        }
    }

    fn report_if_new(&mut self, index: &Index<'_>, directory: &Directory, inside: &Path) {
        let name = inside.file_name().unwrap_or_default();
        let status = Status::of(directory, name);
        let is_new = status.is_ok_and(|status| {
            !self.is_known(index, inside, &status) && !self.is_born_later(&status)
        });
        let path = index.root.path.join(inside);
        if is_new && self.handled.insert(path.clone()) {
            self.report.add_left(path);
        }
    }

    fn is_born_later(&self, status: &Status) -> bool {
        self.until_ns
            .is_some_and(|until| status.identity.born_ns > until)
    }

    /// Whether it is certain that the entry is the command's.
    fn is_certain(&self, index: &Index<'_>, inside: &Path, status: &Status) -> bool {
        let is_scanned = !index
            .root
            .unscanned
            .iter()
            .any(|unscanned| inside.starts_with(unscanned));
        // Long after the command, what is older than it may have been moved here by the user.
        let is_of_its_time = self.until_ns.is_none()
            || status.identity.born_ns + CLOCK_TICK_NS >= self.checklist.started_ns;
        is_scanned && is_of_its_time
    }

    fn take(
        &mut self,
        index: &Index<'_>,
        directory: &mut Directory,
        inside: &Path,
        status: &Status,
    ) {
        let path = index.root.path.join(inside);
        if self.is_born_later(status) || !self.handled.insert(path.clone()) {
            return;
        }
        let is_removed = self.checklist.new_files == NewFiles::Remove
            && self.is_certain(index, inside, status)
            && self
                .trash
                .take(directory, inside.file_name().unwrap_or_default())
                .is_ok();
        if is_removed {
            self.report.add_removed(path);
        } else {
            self.report.add_left(path);
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
        if !is_privileged || is_old || self.checklist.new_files == NewFiles::Report {
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
        let path = path.display();
        self.report
            .add_incomplete(&format!("`{path}` could not be read: {error}"));
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
