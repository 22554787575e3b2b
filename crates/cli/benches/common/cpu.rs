//! The CPU time of other processes.

use std::fs;
use std::time::Duration;

/// The unit of the times in `/proc/PID/stat`.
const TICK: Duration = Duration::from_millis(10);

/// Returns the CPU time that a process has used.
pub(crate) fn time_of(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name is in brackets and may contain any character.
    let (_, after_name) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u32>().unwrap();
    TICK * (ticks(11) + ticks(12))
}
