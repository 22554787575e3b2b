//! Looks into the memory and environment of every process below lango while it runs, again and again.

use lango_testkit::canary::CanaryScanner;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum number of bytes that are read of one mapping.
const MOST_MAPPING: usize = 64 << 20;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Time after which a process is looked into again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What was found in processes below lango.
#[derive(Debug, Default)]
pub struct Watched {
    /// Processes that were looked into.
    pub processes: BTreeSet<u32>,
    pub bytes: u64,
    pub problems: Vec<String>,
}

/// A thread that looks until it is told to stop.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Watched>,
}

impl Watch {
    pub fn start(lango: u32, scanner: Arc<CanaryScanner>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut watched = Watched::default();
            let mut looks: BTreeMap<u32, Instant> = BTreeMap::new();
            while !stop.load(Ordering::Relaxed) {
                for process in below(lango).into_iter().filter(|id| is_sandboxed(*id)) {
                    let last = looks.get(&process);
                    if last.is_none_or(|last| last.elapsed() > AGAIN_AFTER) {
                        look_into(process, &scanner, &mut watched);
                        looks.insert(process, Instant::now());
                    }
                }
                thread::sleep(PAUSE);
            }
            watched
        });
        Self { is_over, thread }
    }

    pub fn stop(self) -> Watched {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Whether it runs in a sandbox: a process that lango has only just forked is lango itself.
fn is_sandboxed(process: u32) -> bool {
    let namespace = |id: u32| fs::read_link(format!("/proc/{id}/ns/pid")).ok();
    namespace(process).is_some_and(|own| Some(own) != namespace(std::process::id()))
}

fn look_into(process: u32, scanner: &CanaryScanner, watched: &mut Watched) {
    let mut report = |place: &str, bytes: &[u8]| {
        watched.bytes += bytes.len() as u64;
        for sighting in scanner.scan(bytes) {
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let problem = format!("{sighting:?} in {place} of `{command}`");
            if watched.problems.len() < 50 && !watched.problems.contains(&problem) {
                watched.problems.push(problem);
            }
        }
    };
    // It may end at any moment: what cannot be read any more is not looked into.
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
        let mut bytes = vec![0; length.min(MOST_MAPPING)];
        if let Ok(count) = memory.read_at(&mut bytes, start) {
            report("memory", &bytes[..count]);
        }
    }
    watched.processes.insert(process);
}

/// The start and length of a writable mapping.
fn writable(line: &str) -> Option<(u64, usize)> {
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    if !words.next()?.starts_with("rw") {
        return None;
    }
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    Some((start, usize::try_from(end - start).ok()?))
}

/// The processes below this one.
fn below(root: u32) -> Vec<u32> {
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
    let is_below = |mut id: u32| {
        while let Some(&parent) = parents.get(&id) {
            if parent == root {
                return true;
            }
            id = parent;
        }
        false
    };
    parents.keys().copied().filter(|id| is_below(*id)).collect()
}
