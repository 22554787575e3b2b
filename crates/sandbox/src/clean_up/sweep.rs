//! The second pass: removes protected files that the command created. Runs in the guard, inside the sandbox, and works
//! with open handles only.
//!
//! It reads only directories that changed since the scan, according to their change time (ctime), which a command
//! cannot forge. It never touches a protected path that existed before: a mount covered it, so only the user can have
//! changed it.

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

/// Time limit of a sweep.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(60);
/// Maximum number of entries that a sweep reads.
const MAX_ENTRIES: usize = 5_000_000;
/// Change times lag behind the clock by up to one kernel tick.
const CLOCK_TICK_NS: u64 = 20_000_000;
/// Some file systems store times only in whole seconds, the coarsest ones in steps of two seconds.
const COARSE_CLOCK_NS: u64 = 2_000_000_000;
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// The open handles that a sweep works with.
pub(crate) struct Handles {
    /// A handle for each root of the checklist, in the same order; `None` if the root could not be opened.
    pub(crate) roots: Vec<Option<OwnedFd>>,
    pub(crate) trash: Option<OwnedFd>,
}

/// The result of a sweep.
pub(crate) struct SweepResult {
    pub(crate) report: CleanUpReport,
    /// Whether the sweep was complete, and no limit ended it early.
    pub(crate) is_finished: bool,
}

/// Removes protected files that were created since the scan. `until_ns` is set if the command ended some time ago:
/// files created after that time are the user's and stay.
pub(crate) fn sweep(
    checklist: &Checklist,
    handles: &Handles,
    until_ns: Option<u64>,
) -> SweepResult {
    let mut sweep = Sweep {
        checklist,
        known: checklist.known.iter().copied().collect(),
        trash: Trash::new(handles.trash.as_ref().map(AsFd::as_fd)),
        until_ns,
        deadline: Instant::now() + MAX_TIME,
        entries: 0,
        handled: HashSet::new(),
        is_finished: true,
        report: CleanUpReport::default(),
    };
    for (root, handle) in checklist.roots.iter().zip(&handles.roots) {
        if let Some(handle) = handle {
            sweep.sweep_root(root, handle.as_fd());
        }
    }
    SweepResult {
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
    /// Paths that are already in the report.
    handled: HashSet<PathBuf>,
    is_finished: bool,
    report: CleanUpReport,
}

/// A root of the checklist, indexed for lookups.
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
    fn sweep_root(&mut self, root: &'a Root, handle: BorrowedFd<'a>) {
        let same = Status::of_handle(handle).is_ok_and(|status| {
            let now = status.identity;
            (now.device, now.inode) == (root.identity.device, root.identity.inode)
        });
        if !same {
            let path = root.path.display();
            self.report
                .add_incomplete(&format!("`{path}` was replaced by another directory"));
            return;
        }
        let changed = root.directories.iter();
        let changed = changed.filter(|directory| !self.is_unchanged(directory, handle));
        // Directories nearest to the top come first, so that they are read even if a limit ends the sweep.
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
            if !self.is_within_limits() {
                break;
            }
            self.sweep_directory(&index, &inside, &mut waiting);
        }
        for inside in &root.listed {
            self.check_listed(&index, inside);
        }
        for link in &root.links {
            self.check_link(&index, &link.path);
        }
    }

    fn is_unchanged(&self, directory: &KnownDirectory, root: BorrowedFd<'_>) -> bool {
        // If a link was swapped in on the path, the identity differs.
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

    fn is_within_limits(&mut self) -> bool {
        let limit = if self.entries >= MAX_ENTRIES {
            format!("more than {MAX_ENTRIES} files changed")
        } else if Instant::now() >= self.deadline {
            format!("it took longer than {} seconds", MAX_TIME.as_secs())
        } else {
            return true;
        };
        self.report.add_incomplete(&limit);
        self.is_finished = false;
        false
    }

    /// Checks the entries of one directory.
    fn sweep_directory(
        &mut self,
        index: &Index<'_>,
        inside: &Path,
        waiting: &mut VecDeque<PathBuf>,
    ) {
        let mut directory = match Directory::open_as_owner(index.handle, inside) {
            Ok(directory) => directory,
            // It was removed or replaced meanwhile; the clean-up of the other command handles that.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return,
            Err(error) => return self.report_unreadable(index.root, inside, error),
        };
        let (status, entries) = match (Status::of_handle(&directory), directory.entries()) {
            (Ok(status), Ok(entries)) => (status, entries),
            (Err(error), _) | (_, Err(error)) => {
                return self.report_unreadable(index.root, inside, error);
            }
        };
        self.entries += entries.len();
        let known = index.directories.get(inside);
        if known.is_some_and(|known| !known.is_closed) && directory.has_changed_modes() {
            // The command revoked its owner's access. Restore it, so that the next scan can read the directory.
            directory.grant_owner_access_permanently();
        }
        let mut git = GitEntries::default();
        entries.iter().for_each(|(name, _)| git.add(name));
        if git.is_repository() && self.handle_repository(index, &mut directory, inside, &status) {
            return;
        }
        let parent = ParentDirectory::of(inside);
        for (name, kind) in &entries {
            let path = inside.join(name);
            if parent.protection_of(name).is_some() {
                let is_allowed = self.checklist.allow_git_init && is_git_name(name);
                if !is_allowed {
                    self.remove_if_new(index, &mut directory, &path);
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

    /// Handles a directory that git recognizes as a repository. Returns whether its entries need no further check.
    fn handle_repository(
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
            // The user's files may be in it, so remove only `HEAD`; without that it is not a repository.
            let head = Path::new("HEAD");
            if let Ok(status) = Status::of(&*directory, head) {
                self.remove(index, directory, &inside.join(head), &status);
            }
            return false;
        }
        let parent = inside.parent().unwrap_or(Path::new(""));
        match Directory::open_as_owner(index.handle, parent) {
            Ok(mut parent) => self.remove(index, &mut parent, inside, status),
            Err(error) => self.report_unreadable(index.root, parent, error),
        }
        true
    }

    /// Removes a path that the policy itself names, if the command created it.
    fn check_listed(&mut self, index: &Index<'_>, inside: &Path) {
        if inside.as_os_str().is_empty() {
            return;
        }
        let parent = inside.parent().unwrap_or(Path::new(""));
        if let Ok(mut directory) = Directory::open_as_owner(index.handle, parent) {
            self.remove_if_new(index, &mut directory, inside);
        }
    }

    /// Reports a protected link that was removed or replaced.
    fn check_link(&mut self, index: &Index<'_>, inside: &Path) {
        let parent = inside.parent().unwrap_or(Path::new(""));
        let name = inside.file_name().unwrap_or_default();
        let found = Directory::open_as_owner(index.handle, parent)
            .and_then(|directory| Status::of(&directory, name));
        if !found.is_ok_and(|status| self.is_known(index, inside, &status)) {
            self.report.add_lost_link(index.root.path.join(inside));
        }
    }

    /// Whether a protected entry existed before. A command can move a link and create hard links to it, so a link
    /// counts as known only at its original path.
    fn is_known(&self, index: &Index<'_>, inside: &Path, status: &Status) -> bool {
        if index.covered.contains(inside) {
            return true;
        }
        if let Some(file) = index.foreign.get(inside) {
            // Unchanged: the clean-up of the other command removes it.
            return file.identity == status.identity
                && i128::from(file.changed_ns) == status.changed_ns;
        }
        if status.kind() == FileType::Symlink {
            return index.links.get(inside) == Some(&status.identity);
        }
        self.known.contains(&status.identity)
    }

    fn remove_if_new(&mut self, index: &Index<'_>, directory: &mut Directory, inside: &Path) {
        let name = inside.file_name().unwrap_or_default();
        let Ok(status) = Status::of(&*directory, name) else {
            return;
        };
        if !self.is_known(index, inside, &status) {
            self.remove(index, directory, inside, &status);
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
            self.report.add_remaining(path);
        }
    }

    fn is_born_later(&self, status: &Status) -> bool {
        self.until_ns
            .is_some_and(|until| status.identity.born_ns > until)
    }

    /// Whether the command certainly created the entry.
    fn is_certainly_new(&self, index: &Index<'_>, inside: &Path, status: &Status) -> bool {
        let is_scanned = !index
            .root
            .unscanned
            .iter()
            .any(|unscanned| inside.starts_with(unscanned));
        // If the command ended some time ago, the user may have moved an older file here.
        let is_of_its_time = self.until_ns.is_none()
            || status.identity.born_ns + CLOCK_TICK_NS >= self.checklist.started_ns;
        is_scanned && is_of_its_time
    }

    fn remove(
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
            && self.is_certainly_new(index, inside, status)
            && self
                .trash
                .add(directory, inside.file_name().unwrap_or_default())
                .is_ok();
        if is_removed {
            self.report.add_removed(path);
        } else {
            self.report.add_remaining(path);
        }
    }

    /// Clears the setuid and setgid bits of a file.
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
            Err(_) => self.report.add_remaining(path),
        }
    }

    fn report_unreadable(&mut self, root: &Root, inside: &Path, error: Errno) {
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
