//! Control groups: the kernel's limits for all processes of a command together, if lango may create a group.
//!
//! Supports both versions: a folder per controller (v1), or one folder for all (v2). Without a group, the watchdog and
//! the limits per process have to suffice.

use crate::ResourceLimits;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PREFIX: &str = "lango-";
/// How many processes the group may have beyond the command's limit: bubblewrap and the helper are in the group too.
const OWN_PROCESSES: u64 = 16;
/// How far the kernel's memory limit is above the watchdog's. The watchdog should act first, because it can report why
/// it stopped the command.
const OWN_MEMORY: u64 = 64 << 20;
/// The age at which an empty group of another PID namespace is removed.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The control group of one command. Dropping it removes the group, once its processes have ended.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folders: Vec<PathBuf>,
    pub(crate) bounds_processes: bool,
    pub(crate) bounds_memory: bool,
}

impl ControlGroup {
    /// Creates a group with these limits; `None` if no group can be created.
    pub(crate) fn create(limits: &ResourceLimits) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let Owner {
            namespace,
            process,
            start_time,
        } = Owner::this_process()?;
        let name = format!("{PREFIX}{namespace}-{process}-{start_time}-{number}");
        let mut group = Self {
            folders: Vec::new(),
            bounds_processes: false,
            bounds_memory: false,
        };
        let text = fs::read_to_string("/proc/self/cgroup").ok()?;
        for parent in parents(&text) {
            group.add(&parent, &name, limits);
            if group.bounds_processes && group.bounds_memory {
                break;
            }
        }
        (!group.folders.is_empty()).then_some(group)
    }

    /// Opens the files into which a process writes `0` to join the group.
    pub(crate) fn open_procs_files(&self) -> std::io::Result<Vec<File>> {
        let open = |folder: &PathBuf| {
            OpenOptions::new()
                .write(true)
                .open(folder.join("cgroup.procs"))
        };
        self.folders.iter().map(open).collect()
    }

    /// Opens the file with the group's OOM-kill counter: `memory.oom_control` (v1) or `memory.events` (v2).
    pub(crate) fn memory_events(&self) -> Option<File> {
        let names = ["memory.oom_control", "memory.events"];
        let mut files = self
            .folders
            .iter()
            .flat_map(|folder| names.iter().map(|name| folder.join(name)));
        files.find_map(|file| File::open(file).ok())
    }

    /// Returns whether the OOM killer killed a process of the group.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.memory_events()
            .is_some_and(|events| has_oom_kill(&events))
    }

    fn add(&mut self, parent: &Path, name: &str, limits: &ResourceLimits) {
        let folder = parent.join(name);
        if fs::create_dir(&folder).is_err() {
            return;
        }
        let set = |file: &str, value: u64| {
            // Must not create a file, in case the folder is not a control group.
            let file = OpenOptions::new().write(true).open(folder.join(file));
            file.is_ok_and(|mut file| file.write_all(value.to_string().as_bytes()).is_ok())
        };
        let memory = limits.memory_bytes.saturating_add(OWN_MEMORY);
        let processes = set("pids.max", u64::from(limits.processes) + OWN_PROCESSES);
        let memory = set("memory.max", memory) || set("memory.limit_in_bytes", memory);
        set("memory.swap.max", 0);
        let useful = (processes && !self.bounds_processes) || (memory && !self.bounds_memory);
        if !useful
            || OpenOptions::new()
                .write(true)
                .open(folder.join("cgroup.procs"))
                .is_err()
        {
            let _ = fs::remove_dir(&folder);
            return;
        }
        self.bounds_processes |= processes;
        self.bounds_memory |= memory;
        self.folders.push(folder);
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            // The processes were already killed; wait briefly until the kernel has removed them.
            for _ in 0..50 {
                match fs::remove_dir(folder) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        std::thread::sleep(Duration::from_millis(4));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Reads the counter that [`ControlGroup::memory_events`] opened. Returns whether it is above zero.
pub(crate) fn has_oom_kill(events: &File) -> bool {
    let mut bytes = [0; 1024];
    let length = events.read_at(&mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..length]);
    let mut counts = text.lines().filter_map(|line| line.split_once(' '));
    counts.any(|(name, count)| name == "oom_kill" && count.trim() != "0")
}

/// Removes the empty groups that processes left behind when they were killed.
///
/// Processes of another PID namespace are invisible here, so their groups are removed only after [`STALE`]. A group
/// that is empty now may also be new, with its first process about to join it.
pub(crate) fn remove_stale() {
    let Some(this) = Owner::this_process() else {
        return;
    };
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for parent in parents(&text) {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if name.starts_with(PREFIX) && is_stale(&name, &entry, &this) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

fn is_stale(name: &str, entry: &DirEntry, this: &Owner) -> bool {
    match Owner::of_group(name) {
        Some(owner) if owner.namespace == this.namespace => {
            start_time(owner.process) != Some(owner.start_time)
        }
        _ => {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE))
        }
    }
}

/// The process that created a group. Process ids are reused and are only valid in their PID namespace, so the namespace
/// and the start time are needed to identify it.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    namespace: u64,
    process: u32,
    start_time: u64,
}

impl Owner {
    fn this_process() -> Option<Self> {
        let process = std::process::id();
        Some(Self {
            namespace: fs::metadata("/proc/self/ns/pid").ok()?.ino(),
            process,
            start_time: start_time(process)?,
        })
    }

    fn of_group(name: &str) -> Option<Self> {
        let mut numbers = name.strip_prefix(PREFIX)?.splitn(4, '-');
        let owner = Self {
            namespace: numbers.next()?.parse().ok()?,
            process: numbers.next()?.parse().ok()?,
            start_time: numbers.next()?.parse().ok()?,
        };
        numbers.next().is_some().then_some(owner)
    }
}

/// Returns the start time of a process in the kernel's clock ticks.
fn start_time(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// Returns the folders in which a group can be created, from the text of `/proc/self/cgroup`.
fn parents(text: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mut parents = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let path = path.trim_start_matches('/');
        let is_one = |controller: &str| controller == "pids" || controller == "memory";
        if controllers.split(',').any(is_one) {
            parents.push(root.join(controllers).join(path));
        } else if number == "0" && root.join("cgroup.controllers").exists() {
            // A group that contains processes cannot have subgroups with limits; its parent often can.
            let own = root.join(path);
            parents.extend(
                own.parent()
                    .filter(|parent| parent.starts_with(root))
                    .map(PathBuf::from),
            );
            parents.push(own);
        }
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_groups_have_a_folder_per_controller() {
        let text = "8:pids:/\n7:blkio:/\n4:memory:/a/b\n0::/\n";
        let expected = ["/sys/fs/cgroup/pids/", "/sys/fs/cgroup/memory/a/b"];
        let parents = parents(text);
        assert!(parents.len() >= 2);
        assert_eq!(parents[..2], expected.map(PathBuf::from));
    }

    #[test]
    fn the_name_of_a_group_identifies_its_owner() {
        let this = Owner::this_process().unwrap();
        let name = format!(
            "lango-{}-{}-{}-0",
            this.namespace, this.process, this.start_time
        );
        assert_eq!(Owner::of_group(&name), Some(this));
        for other in ["another-1-2-3-4", "lango-x", "lango-1-2-3"] {
            assert_eq!(Owner::of_group(other), None, "{other}");
        }
    }

    #[test]
    fn a_new_group_of_another_pid_namespace_is_not_stale() {
        let folder = tempfile::tempdir().unwrap();
        let this = Owner::this_process().unwrap();
        let of = |namespace: u64, start_time: u64| {
            let name = format!("lango-{namespace}-{}-{start_time}-0", this.process);
            fs::create_dir(folder.path().join(&name)).unwrap();
            let mut entries = fs::read_dir(folder.path()).unwrap().flatten();
            let entry = entries.find(|entry| entry.file_name() == *name).unwrap();
            is_stale(&name, &entry, &this)
        };
        assert!(
            !of(this.namespace, this.start_time),
            "it belongs to this process"
        );
        assert!(of(this.namespace, this.start_time + 1), "its process ended");
        assert!(
            !of(this.namespace + 1, this.start_time + 1),
            "its process is not visible"
        );
    }
}
