//! Scans the memory and environment of all sandboxed processes repeatedly while lango runs.

use lango_testkit::canary::CanaryScanner;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum number of bytes to read from one mapping.
const MAX_MAPPING: usize = 64 << 20;
/// Pause between two rounds.
const PAUSE: Duration = Duration::from_millis(10);

/// Minimum time between two scans of the same process.
const RESCAN_AFTER: Duration = Duration::from_millis(100);

/// The result of scanning the sandboxed processes.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    /// The ids of the scanned processes.
    pub processes: BTreeSet<u32>,
    pub bytes: u64,
    pub problems: Vec<String>,
}

/// A thread that scans processes until it is stopped.
pub(crate) struct ProcessScan {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<ScanResult>,
}

impl ProcessScan {
    pub(crate) fn start(lango: u32, scanner: Arc<CanaryScanner>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut result = ScanResult::default();
            let mut scans: BTreeMap<u32, Instant> = BTreeMap::new();
            while !stop.load(Ordering::Relaxed) {
                let descendants = descendants(lango).into_iter();
                for process in descendants.filter(|id| is_sandboxed(*id)) {
                    let last = scans.get(&process);
                    if last.is_none_or(|last| last.elapsed() > RESCAN_AFTER) {
                        scan(process, &scanner, &mut result);
                        scans.insert(process, Instant::now());
                    }
                }
                thread::sleep(PAUSE);
            }
            result
        });
        Self { is_over, thread }
    }

    pub(crate) fn stop(self) -> ScanResult {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Returns whether a process runs in a sandbox. One that lango has just forked still has lango's own memory.
fn is_sandboxed(process: u32) -> bool {
    let namespace = |id: u32| fs::read_link(format!("/proc/{id}/ns/pid")).ok();
    namespace(process).is_some_and(|own| Some(own) != namespace(std::process::id()))
}

fn scan(process: u32, scanner: &CanaryScanner, result: &mut ScanResult) {
    let mut report = |location: &str, bytes: &[u8]| {
        result.bytes += bytes.len() as u64;
        for hit in scanner.scan(bytes) {
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let problem = format!("{hit:?} in the {location} of `{command}`");
            if result.problems.len() < 50 && !result.problems.contains(&problem) {
                result.problems.push(problem);
            }
        }
    };
    // The process may exit at any moment; files that can no longer be read are skipped.
    for name in ["environ", "cmdline"] {
        report(
            name,
            &fs::read(format!("/proc/{process}/{name}")).unwrap_or_default(),
        );
    }
    let Ok(memory) = File::open(format!("/proc/{process}/mem")) else {
        return;
    };
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    for (start, length) in maps.lines().filter_map(writable) {
        let mut bytes = vec![0; length.min(MAX_MAPPING)];
        if let Ok(count) = memory.read_at(&mut bytes, start) {
            report("memory", &bytes[..count]);
        }
    }
    result.processes.insert(process);
}

/// Parses a line of `/proc/ID/maps`. Returns the start and length of a writable mapping.
fn writable(line: &str) -> Option<(u64, usize)> {
    let mut fields = line.split(' ');
    let (start, end) = fields.next()?.split_once('-')?;
    if !fields.next()?.starts_with("rw") {
        return None;
    }
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    Some((start, usize::try_from(end - start).ok()?))
}

/// Returns all descendants of a process.
fn descendants(root: u32) -> Vec<u32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok());
        let Some(id) = id else { continue };
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let after_name = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest)
            .unwrap_or_default();
        let parent = after_name.split_whitespace().nth(1);
        if let Some(parent) = parent.and_then(|parent| parent.parse::<u32>().ok()) {
            parents.insert(id, parent);
        }
    }
    let is_descendant = |mut id: u32| {
        while let Some(&parent) = parents.get(&id) {
            if parent == root {
                return true;
            }
            id = parent;
        }
        false
    };
    let ids = parents.keys().copied();
    ids.filter(|id| is_descendant(*id)).collect()
}
