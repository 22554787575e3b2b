//! The CPU time of a server's processes, for benchmarks.

use super::Cluster;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The unit of the times in `/proc/PID/stat`.
const TICK: Duration = Duration::from_millis(10);

impl Cluster {
    /// Returns the CPU time of all processes of the server so far, including those that have ended.
    pub fn cpu_time(&self) -> Duration {
        let Some(main) = self.main_process() else {
            return Duration::ZERO;
        };
        let stat = Stat::of(main);
        let children =
            processes().filter(|id| Stat::of(*id).is_some_and(|stat| stat.parent == main));
        let ended = stat.map_or(Duration::ZERO, |stat| stat.ended_children);
        children.chain([main]).map(cpu_time_of).sum::<Duration>() + ended
    }

    fn main_process(&self) -> Option<u32> {
        let status = fs::read_to_string(self.folder().join("data/postmaster.pid")).ok()?;
        status.lines().next()?.trim().parse().ok()
    }
}

/// Returns the CPU time of a single-threaded process; zero if it has just ended.
fn cpu_time_of(id: u32) -> Duration {
    let times = fs::read_to_string(format!("/proc/{id}/schedstat")).unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(Path::new("/proc")).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

struct Stat {
    parent: u32,
    ended_children: Duration,
}

impl Stat {
    fn of(id: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name is in brackets and may contain any character.
        let (_, after_name) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after_name.split(' ').collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u32>().ok();
        Some(Self {
            parent: ticks(1)?,
            ended_children: TICK * (ticks(13)? + ticks(14)?),
        })
    }
}
