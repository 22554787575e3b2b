//! Tracks the sandbox and browser processes that lango started. They are found as its descendants while it runs, and
//! recognized later by their PID namespaces and start times, so that a changed parent or name hides none.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A process, identified by its id and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    id: u32,
    start: u64,
}

/// The child processes of one lango process.
#[derive(Debug)]
pub(crate) struct ProcessTracker {
    root: u32,
    home: PathBuf,
    own_namespace: Option<PathBuf>,
    namespaces: BTreeSet<PathBuf>,
    known: BTreeSet<Identity>,
}

/// The number and memory of the child processes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChildStats {
    pub processes: usize,
    /// The proportional set size in kibibytes: shared pages count in part for each process.
    pub kib: u64,
}

impl ProcessTracker {
    /// Tracks the child processes of the lango with this process id and home.
    pub(crate) fn new(root: u32, home: &Path) -> Self {
        Self {
            root,
            home: home.to_owned(),
            own_namespace: namespace(std::process::id()),
            namespaces: BTreeSet::new(),
            known: BTreeSet::new(),
        }
    }

    /// Records the current child processes.
    pub(crate) fn record(&mut self) {
        for id in all().into_iter().filter(|id| is_descendant(*id, self.root)) {
            if id != self.root {
                self.known.extend(identity(id));
            }
            let namespace = namespace(id).filter(|own| Some(own) != self.own_namespace.as_ref());
            self.namespaces.extend(namespace);
        }
    }

    /// Returns whether a process in a sandbox was recorded.
    pub(crate) fn has_sandbox(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// Returns the id and command line of each child process that is still running.
    pub(crate) fn running(&self) -> Vec<(u32, String)> {
        let is_of_run = |id: &u32| {
            let in_namespace = namespace(*id).is_some_and(|own| self.namespaces.contains(&own));
            let is_known = identity(*id).is_some_and(|own| self.known.contains(&own));
            in_namespace || is_known || names(*id, &self.home)
        };
        let ids = all().into_iter().filter(|id| *id != self.root);
        let ids = ids.filter(|id| !is_zombie(*id)).filter(is_of_run);
        ids.map(|id| (id, command_line(id).chars().take(120).collect()))
            .collect()
    }

    /// Kills the main process of every browser.
    pub(crate) fn kill_browser(&self) {
        let running = self.running().into_iter();
        let is_first =
            |line: &str| line.contains("--remote-debugging-pipe") && !line.contains("--type=");
        for (id, _) in running.filter(|(_, line)| is_first(line)) {
            let id = i32::try_from(id).ok().and_then(Pid::from_raw);
            kill_process(id.unwrap(), Signal::KILL).unwrap();
        }
    }

    /// Returns the number and memory of the running child processes.
    pub(crate) fn stats(&self) -> ChildStats {
        let running = self.running();
        ChildStats {
            processes: running.len(),
            kib: running.iter().filter_map(|(id, _)| shared_kib(*id)).sum(),
        }
    }

    /// Waits until all child processes have exited. Returns how long that took, or an error with those left.
    pub(crate) fn wait_for_none(&self, limit: Duration) -> Result<Duration, String> {
        let started = Instant::now();
        loop {
            let running = self.running();
            if running.is_empty() {
                return Ok(started.elapsed());
            }
            if started.elapsed() > limit {
                return Err(format!("still running after {limit:?}: {running:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the resident memory of a process in kibibytes.
pub(crate) fn resident_kib(id: u32) -> u64 {
    field(&format!("/proc/{id}/status"), "VmRSS:").unwrap_or_default()
}

/// Returns the number of open files of a process.
pub(crate) fn open_files(id: u32) -> usize {
    fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count)
}

fn shared_kib(id: u32) -> Option<u64> {
    field(&format!("/proc/{id}/smaps_rollup"), "Pss:")
}

fn field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.collect()
}

fn namespace(id: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{id}/ns/pid")).ok()
}

/// Returns the fields of `/proc/ID/stat` after the name, which may contain any character.
fn stat(id: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

fn identity(id: u32) -> Option<Identity> {
    let start = stat(id)?.get(19)?.parse().ok()?;
    Some(Identity { id, start })
}

/// Returns whether a process has exited, reaped or not.
fn is_zombie(id: u32) -> bool {
    stat(id).is_none_or(|fields| fields[0] == "Z")
}

fn is_descendant(id: u32, root: u32) -> bool {
    let parent = |id: &u32| stat(*id)?.get(1)?.parse::<u32>().ok();
    let mut ancestors = std::iter::successors(Some(id), parent);
    ancestors.any(|id| id == root)
}

fn command_line(id: u32) -> String {
    let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Returns whether the command line or environment of a process mentions a folder.
fn names(id: u32, folder: &Path) -> bool {
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    let folder = folder.to_str().unwrap_or_default();
    command_line(id).contains(folder) || environment.contains(folder)
}
