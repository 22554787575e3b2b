//! What a command uses up, by the kernel's own account: the watchdog's eyes.
//!
//! The sums are over all processes below the guard. A process that is gone leaves what it wrote to the one that took it
//! in, at last to the guard itself, so what was written only grows; where a sum shrinks all the same (a parent refused to
//! take its children in), the difference stays on the account.

use super::accounts::{
    Process, Sockets, account, held, network_namespace, process, process_is_there, queued, room,
    segments, share, sockets, used,
};
use crate::plan::Plan;
use crate::{Network, Profile, Stopped};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

/// A process whose account is closed to the guard may stay so for this many looks.
const CLOSED_LOOKS: u32 = 20;

/// What one socket of this machine's own kind can hold at most, and one of TCP.
const SOCKET_BYTES: u64 = 2 * 212_992;
const TCP_SOCKET_BYTES: u64 = 10 << 20;
/// A command stops writing before a disk is full: with less room than this left, of which it may have taken so much.
const RESERVE: u64 = 512 << 20;
const TAKEN: u64 = 64 << 20;

/// The account of one command.
pub(super) struct Usage {
    limits: crate::Limits,
    in_memory: Vec<PathBuf>,
    counts_sockets: bool,
    nests_networks: bool,
    own: i32,
    written: u64,
    lost: u64,
    closed_looks: u32,
    /// The folders on disk that it writes in, and the room that was left there.
    room: Vec<(PathBuf, u64)>,
    /// What the guard had written before the command began.
    written_before: u64,
}

impl Usage {
    pub(super) fn new(plan: &Plan) -> Self {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let on_disk = plan
            .write
            .iter()
            .filter(|path| !plan.in_memory.contains(path));
        Self {
            limits: plan.limits,
            room: on_disk.map(|path| (path.clone(), room(path))).collect(),
            in_memory: plan.in_memory.clone(),
            // In lango's own network there are those of others too.
            counts_sockets: plan.namespaces && plan.network != Network::Host,
            nests_networks: plan.profile == Profile::Browser,
            own,
            written: 0,
            lost: 0,
            closed_looks: 0,
            written_before: account(own).unwrap_or(0),
        }
    }

    /// The limit that the command is over now.
    pub(super) fn over_limit(&mut self) -> Option<Stopped> {
        let below = self.below();
        let threads: u64 = below.iter().map(|process| process.threads).sum();
        if threads > u64::from(self.limits.processes) {
            return Some(Stopped::Processes);
        }
        if self.holds_too_much(&below) {
            return Some(Stopped::Memory);
        }
        let writes_too_much = self.written(&below) > self.limits.written_bytes
            || self.closed_looks > CLOSED_LOOKS
            || self
                .room
                .iter()
                .any(|(path, before)| is_running_out(*before, room(path)));
        writes_too_much.then_some(Stopped::Disk)
    }

    /// The processes below this one.
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
        let mut waiting = vec![self.own];
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

    /// Whether processes, files in memory and shared segments hold more than they may together.
    fn holds_too_much(&self, below: &[Process]) -> bool {
        let aside = match self.in_memory.is_empty() {
            true => 0,
            false => self.in_memory.iter().map(|path| used(path)).sum::<u64>() + segments(),
        };
        let limit = self.limits.memory_bytes;
        if self.counts_sockets && self.sockets_hold_more_than(limit, below) {
            return true;
        }
        // Pages that processes share with each other count for each of them here; only then is a closer look worth it.
        let most: u64 = below.iter().map(|process| held(process.pid)).sum();
        if aside + most <= limit {
            return false;
        }
        let shares = below.iter().map(|process| share(process.pid));
        aside + shares.sum::<u64>() > limit
    }

    /// What lies in sockets is on no account, but each of them holds only so much.
    fn sockets_hold_more_than(&self, limit: u64, below: &[Process]) -> bool {
        // One process stands for each network. The guard's own is the command's; only a browser makes more.
        let mut networks = HashMap::from([(network_namespace(self.own), self.own)]);
        if self.nests_networks {
            for process in below {
                networks
                    .entry(network_namespace(process.pid))
                    .or_insert(process.pid);
            }
        }
        let mut most = 0;
        for process in networks.into_values() {
            let Sockets { unix, tcp } = sockets(process);
            most += unix * SOCKET_BYTES;
            if tcp * TCP_SOCKET_BYTES > limit {
                most += queued(process);
            }
        }
        most > limit
    }

    fn written(&mut self, below: &[Process]) -> u64 {
        let mut sum = account(self.own).unwrap_or(0);
        let mut is_closed = false;
        for process in below {
            match account(process.pid) {
                Some(written) => sum += written,
                None => is_closed |= !process.is_gone && process_is_there(process.pid),
            }
        }
        self.closed_looks = match is_closed {
            true => self.closed_looks + 1,
            false => 0,
        };
        self.lost += self.written.saturating_sub(sum);
        self.written = sum;
        (sum + self.lost).saturating_sub(self.written_before)
    }
}

/// Whether a disk is filling up while the command runs. Who fills it cannot be told; the command is what can be ended.
fn is_running_out(before: u64, now: u64) -> bool {
    now < RESERVE && before.saturating_sub(now) > TAKEN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_was_full_before_is_no_reason_to_end_a_command() {
        assert!(is_running_out(10 << 30, 100 << 20));
        assert!(!is_running_out(100 << 20, 99 << 20));
        assert!(!is_running_out(10 << 30, 5 << 30));
        assert!(!is_running_out(u64::MAX, u64::MAX));
    }
}
