//! What is kept from change inside of writable folders: found before a command runs, and looked after once it is gone.
//!
//! What is there beforehand can be covered by a mount. What is not there cannot, without leaving files behind on the
//! disk; so a second look takes away what came to be meanwhile. Both looks go breadth first and see a bounded number of
//! entries, the shallow ones for sure. The second reads only those folders that changed: a folder's change time cannot
//! be set by a command. It never follows a link, as a command could have put one in a folder's place.

use crate::protected::protection_of_entry;
use crate::{LaunchError, Policy};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a second look found.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// What was taken away, or put back.
    pub(crate) removed: Vec<PathBuf>,
    /// What could not be.
    pub(crate) left: Vec<PathBuf>,
}

/// How many entries a look sees.
const ENTRIES: usize = 100_000;
/// How many kept things one command's view can hold.
const KEPT: usize = 256;
/// The clock of change times lags behind by up to a tick of the kernel.
const CLOCK_TICK_NS: i128 = 20_000_000;

/// What was found in the writable folders before a command ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    taken_ns: i128,
    folders: HashMap<PathBuf, Folder>,
    entries: HashMap<PathBuf, Identity>,
    /// What a kept entry points to, and is kept for that.
    targets: Vec<PathBuf>,
}

/// A thing's numbers on its disk; and where it leads if it is a link, as those can be deleted and their numbers used again.
type Identity = (u64, u64, Option<PathBuf>);

#[derive(Debug, Clone)]
struct Folder {
    numbers: (u64, u64),
    folders: Vec<PathBuf>,
}

impl Snapshot {
    /// Looks through the policy's writable folders.
    pub(crate) fn take(policy: &Policy) -> Result<Self, LaunchError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut snapshot = Self {
            taken_ns: now.map_or(0, |time| time.as_nanos() as i128),
            ..Self::default()
        };
        let mut seen = 0;
        let mut waiting: VecDeque<PathBuf> = policy.writable().cloned().collect();
        while let Some(path) = waiting.pop_front() {
            if seen >= ENTRIES || snapshot.folders.contains_key(&path) {
                continue;
            }
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let (folders, kept) = read(&path, policy, &mut seen);
            for path in kept {
                snapshot.record(path);
            }
            waiting.extend(folders.iter().cloned());
            let numbers = (metadata.dev(), metadata.ino());
            snapshot.folders.insert(path, Folder { numbers, folders });
        }
        for path in policy.kept.iter().chain(&policy.hidden) {
            snapshot.record(path.clone());
        }
        let writable = |path: &Path| policy.writable().any(|root| path.starts_with(root));
        let pointers: Vec<PathBuf> = snapshot.entries.keys().cloned().collect();
        let targets = pointers.iter().flat_map(|path| pointer_targets(path));
        snapshot.targets = targets.filter(|path| writable(path)).collect();
        if snapshot.entries.len() > KEPT {
            return Err(LaunchError::Policy {
                path: policy.workspace.clone(),
                problem: format!(
                    "it holds more than {KEPT} things that are kept from change; choose a smaller folder"
                ),
            });
        }
        Ok(snapshot)
    }

    /// The things that are kept.
    #[cfg(target_os = "linux")]
    pub(crate) fn kept(&self) -> impl Iterator<Item = &PathBuf> {
        let named = self.entries.keys();
        named
            .filter(|path| {
                let parent = path.parent().and_then(Path::file_name);
                path.file_name()
                    .is_some_and(|name| protection_of_entry(parent, name).is_some())
            })
            .chain(&self.targets)
    }

    /// Takes away what was made since, and says what that was. Things go to the trash if there is one on the same disk.
    pub(crate) fn sweep(&self, policy: &Policy, trash: Option<&Path>) -> Swept {
        let (mut removed, mut left) = (Vec::new(), Vec::new());
        for path in self.made_since(policy) {
            match take_away(&path, trash) {
                true => removed.push(path),
                false => left.push(path),
            }
        }
        let links = self
            .entries
            .iter()
            .filter_map(|(path, identity)| Some((path, identity.2.as_ref()?)));
        for (path, target) in links {
            let whole_way = path.parent().is_some_and(is_free_of_links);
            let missing = fs::symlink_metadata(path).is_err();
            if whole_way && missing && std::os::unix::fs::symlink(target, path).is_ok() {
                removed.push(path.clone());
            }
        }
        removed.sort();
        removed.dedup();
        Swept { removed, left }
    }

    /// The same, but all of it is left where it is.
    pub(crate) fn look(&self, policy: &Policy) -> Swept {
        Swept {
            removed: Vec::new(),
            left: self.made_since(policy),
        }
    }

    fn record(&mut self, path: PathBuf) {
        if let Some(identity) = identity(&path) {
            self.entries.insert(path, identity);
        }
    }

    fn made_since(&self, policy: &Policy) -> Vec<PathBuf> {
        // The very thing that was there before is not new, though it may have moved along with a folder.
        let known: HashSet<&Identity> = self.entries.values().collect();
        let is_new = |path: &Path| identity(path).is_some_and(|found| !known.contains(&found));
        let mut made = Vec::new();
        let mut seen = 0;
        let mut visited = HashSet::new();
        let mut waiting: VecDeque<PathBuf> = policy.writable().cloned().collect();
        while let Some(path) = waiting.pop_front() {
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if !metadata.is_dir() || seen >= ENTRIES || !visited.insert(path.clone()) {
                continue;
            }
            match self.folders.get(&path) {
                Some(folder) if self.is_unchanged(folder, &metadata) => {
                    seen += folder.folders.len();
                    waiting.extend(folder.folders.iter().cloned());
                }
                _ => {
                    let (folders, kept) = read(&path, policy, &mut seen);
                    waiting.extend(folders);
                    made.extend(kept.into_iter().filter(|path| is_new(path)));
                }
            }
        }
        let listed = policy.kept.iter().chain(&policy.hidden);
        let in_reach = |path: &Path| policy.writable().any(|root| path.starts_with(root));
        let whole_way = |path: &Path| path.parent().is_some_and(is_free_of_links);
        made.extend(
            listed
                .filter(|path| in_reach(path) && whole_way(path) && is_new(path))
                .cloned(),
        );
        made
    }

    fn is_unchanged(&self, folder: &Folder, metadata: &Metadata) -> bool {
        let changed =
            i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
        folder.numbers == (metadata.dev(), metadata.ino())
            && changed < self.taken_ns - CLOCK_TICK_NS
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), fs::read_link(path).ok()))
}

/// The folders in a folder, and its kept things. Hidden folders are not looked into.
fn read(path: &Path, policy: &Policy, seen: &mut usize) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut folders, mut kept) = (Vec::new(), Vec::new());
    let _open = OpenFolder::of(path, 0o500);
    let Ok(entries) = fs::read_dir(path) else {
        return (folders, kept);
    };
    for entry in entries.flatten() {
        *seen += 1;
        if protection_of_entry(path.file_name(), &entry.file_name()).is_some() {
            kept.push(entry.path());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = entry.path();
            if !policy.hidden.contains(&path) {
                folders.push(path);
            }
        }
        if *seen >= ENTRIES {
            break;
        }
    }
    (folders, kept)
}

/// Where a `.git` file or a link of a kept name points to, as far as that exists.
fn pointer_targets(path: &Path) -> Vec<PathBuf> {
    let mut targets: Vec<PathBuf> = Vec::new();
    if path.is_symlink() {
        targets.extend(fs::canonicalize(path));
    } else if let Ok(metadata) = fs::symlink_metadata(path)
        && metadata.is_file()
        && metadata.len() < 4096
        && let Ok(text) = fs::read_to_string(path)
        && let Some(target) = text.strip_prefix("gitdir:")
        && let Some(folder) = path.parent()
        && let Ok(target) = fs::canonicalize(folder.join(target.trim()))
    {
        let common = fs::read_to_string(target.join("commondir")).unwrap_or_default();
        if !common.is_empty() {
            targets.extend(fs::canonicalize(target.join(common.trim())));
        }
        targets.push(target);
    }
    targets
}

fn is_free_of_links(folder: &Path) -> bool {
    fs::canonicalize(folder).is_ok_and(|real| real == folder)
}

/// Whether the thing is gone from where it was. A command can have closed it, or the folder that it is in, against its own
/// user; whoever owns a folder can open it again.
fn take_away(path: &Path, trash: Option<&Path>) -> bool {
    let _open = path.parent().map(|folder| OpenFolder::of(folder, 0o700));
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        open_all(path);
    }
    if let Some(trash) = trash
        && let Some(name) = path.file_name()
    {
        let _ = fs::create_dir_all(trash);
        let place = (0..1000).find_map(|number| {
            let mut unused = name.to_os_string();
            unused.push(format!(".{}.{number}", std::process::id()));
            let place = trash.join(unused);
            fs::symlink_metadata(&place).is_err().then_some(place)
        });
        if place.is_some_and(|place| fs::rename(path, place).is_ok()) {
            return true;
        }
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).is_ok(),
        Ok(_) => fs::remove_file(path).is_ok(),
        Err(_) => true,
    }
}

/// A folder in which its owner may do this much for as long as this lives.
struct OpenFolder<'a> {
    path: &'a Path,
    /// What it was before, if that had to be changed.
    mode: Option<u32>,
}

impl<'a> OpenFolder<'a> {
    fn of(path: &'a Path, needed: u32) -> Self {
        let metadata = fs::symlink_metadata(path).ok();
        let mode = metadata
            .filter(|metadata| metadata.is_dir() && metadata.mode() & needed != needed)
            .map(|metadata| metadata.mode() & 0o7777)
            .filter(|mode| set_mode(path, mode | needed));
        Self { path, mode }
    }
}

impl Drop for OpenFolder<'_> {
    fn drop(&mut self) {
        if let Some(mode) = self.mode {
            set_mode(self.path, mode);
        }
    }
}

fn set_mode(path: &Path, mode: u32) -> bool {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).is_ok()
}

/// Opens a folder that is to go, and all below it.
fn open_all(folder: &Path) {
    let mut seen = 0;
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        set_mode(&folder, 0o700);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen < ENTRIES && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
}
