//! Measures the resource usage of a command from the kernel's statistics, for the watchdog.
//!
//! The sums are over all processes below the guard. When a process is reaped, the kernel adds its written bytes to the
//! count of its parent, and eventually to that of the guard, so the total only grows. If a sum shrinks anyway, because
//! a parent ignored its children, the difference is added separately.

use super::proc_stats::{
    Process, Sockets, free_bytes, is_running, network_namespace, process, proportional_bytes,
    queued_tcp_bytes, resident_bytes, shared_segment_bytes, sockets, used_bytes, written_bytes,
};
use crate::plan::Plan;
use crate::{ExceededLimit, Network, SandboxProfile};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

/// Maximum number of consecutive checks in which the statistics of a process may be unreadable.
const MAX_UNREADABLE_CHECKS: u32 = 20;

/// Maximum memory that one Unix socket and one TCP socket can use.
const SOCKET_BYTES: u64 = 2 * 212_992;
const TCP_SOCKET_BYTES: u64 = 10 << 20;
/// A command is stopped before a disk is full: if less than `RESERVE` is free and it may have used more than `TAKEN`.
const RESERVE: u64 = 512 << 20;
const TAKEN: u64 = 64 << 20;

/// The resource usage of one command.
pub(super) struct Usage {
    limits: crate::ResourceLimits,
    in_memory: Vec<PathBuf>,
    counts_sockets: bool,
    nests_networks: bool,
    guard: i32,
    written: u64,
    /// Written bytes that are no longer in the kernel's sums.
    lost: u64,
    unreadable_checks: u32,
    /// The writable folders on disk, and the space that was free when the command started.
    free_before: Vec<(PathBuf, u64)>,
    /// Bytes that the guard had written before the command started.
    written_before: u64,
}

impl Usage {
    pub(super) fn new(plan: &Plan) -> Self {
        let guard = rustix::process::getpid().as_raw_nonzero().get();
        let on_disk = plan
            .write
            .iter()
            .filter(|path| !plan.in_memory.contains(path));
        Self {
            limits: plan.limits,
            free_before: on_disk
                .map(|path| (path.clone(), free_bytes(path)))
                .collect(),
            in_memory: plan.in_memory.clone(),
            // lango's own network also has sockets of other programs.
            counts_sockets: plan.namespaces && plan.network != Network::Host,
            nests_networks: plan.profile == SandboxProfile::Browser,
            guard,
            written: 0,
            lost: 0,
            unreadable_checks: 0,
            written_before: written_bytes(guard).unwrap_or(0),
        }
    }

    /// Returns a limit that the command currently exceeds, if any.
    pub(super) fn exceeded_limit(&mut self) -> Option<ExceededLimit> {
        let below = self.below();
        let threads: u64 = below.iter().map(|process| process.threads).sum();
        if threads > u64::from(self.limits.processes) {
            return Some(ExceededLimit::Processes);
        }
        if self.exceeds_memory(&below) {
            return Some(ExceededLimit::Memory);
        }
        let writes_too_much = self.written(&below) > self.limits.written_bytes
            || self.unreadable_checks > MAX_UNREADABLE_CHECKS
            || self
                .free_before
                .iter()
                .any(|(path, before)| is_running_out(*before, free_bytes(path)));
        writes_too_much.then_some(ExceededLimit::Disk)
    }

    /// Returns the ids of all processes below the guard.
    pub(super) fn processes_below(&self) -> Vec<i32> {
        self.below().iter().map(|process| process.pid).collect()
    }

    fn below(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all: Vec<Process> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(process)
            .collect();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for process in &all {
            children
                .entry(process.parent)
                .or_default()
                .push(process.pid);
        }
        let mut below = HashSet::new();
        let mut waiting = vec![self.guard];
        while let Some(pid) = waiting.pop() {
            for child in children.remove(&pid).unwrap_or_default() {
                below.insert(child);
                waiting.push(child);
            }
        }
        all.into_iter()
            .filter(|process| below.contains(&process.pid))
            .collect()
    }

    /// Whether processes, in-memory files, shared segments and sockets together exceed the memory limit.
    fn exceeds_memory(&self, below: &[Process]) -> bool {
        let files_and_segments = if self.in_memory.is_empty() {
            0
        } else {
            let files: u64 = self.in_memory.iter().map(|path| used_bytes(path)).sum();
            files + shared_segment_bytes()
        };
        let limit = self.limits.memory_bytes;
        if self.counts_sockets && self.sockets_exceed(limit, below) {
            return true;
        }
        // This sum counts shared pages once per process. The exact sum is slow, so compute it only if this one is too
        // high.
        let upper_bound: u64 = below
            .iter()
            .map(|process| resident_bytes(process.pid))
            .sum();
        if files_and_segments + upper_bound <= limit {
            return false;
        }
        let shares = below.iter().map(|process| proportional_bytes(process.pid));
        files_and_segments + shares.sum::<u64>() > limit
    }

    /// Whether the sockets may use more memory than `limit`. The kernel does not report their memory, but each has a
    /// maximum.
    fn sockets_exceed(&self, limit: u64, below: &[Process]) -> bool {
        // One process per network namespace. The guard's is that of the command; only a browser creates more.
        let mut networks = HashMap::from([(network_namespace(self.guard), self.guard)]);
        if self.nests_networks {
            for process in below {
                networks
                    .entry(network_namespace(process.pid))
                    .or_insert(process.pid);
            }
        }
        let mut total = 0;
        for process in networks.into_values() {
            let Sockets { unix, tcp } = sockets(process);
            total += unix * SOCKET_BYTES;
            if tcp * TCP_SOCKET_BYTES > limit {
                total += queued_tcp_bytes(process);
            }
        }
        total > limit
    }

    fn written(&mut self, below: &[Process]) -> u64 {
        let mut sum = written_bytes(self.guard).unwrap_or(0);
        let mut is_unreadable = false;
        for process in below {
            match written_bytes(process.pid) {
                Some(written) => sum += written,
                None => is_unreadable |= !process.has_ended && is_running(process.pid),
            }
        }
        self.unreadable_checks = if is_unreadable {
            self.unreadable_checks + 1
        } else {
            0
        };
        self.lost += self.written.saturating_sub(sum);
        self.written = sum;
        (sum + self.lost).saturating_sub(self.written_before)
    }
}

/// Whether a disk is filling up while the command runs. Another program may be filling it, but only the command can be
/// stopped.
fn is_running_out(before: u64, now: u64) -> bool {
    now < RESERVE && before.saturating_sub(now) > TAKEN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_was_full_before_is_no_reason_to_stop_a_command() {
        assert!(is_running_out(10 << 30, 100 << 20));
        assert!(!is_running_out(100 << 20, 99 << 20));
        assert!(!is_running_out(10 << 30, 5 << 30));
        assert!(!is_running_out(u64::MAX, u64::MAX));
    }
}
