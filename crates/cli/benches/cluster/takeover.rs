//! Measures how long a session is idle after the lease of its replica has expired.
//!
//! The table `holds` is polled. A lease that expired during a turn is recorded with its expiry, on the database's
//! clock. After that moment only another replica can append to the session, so the next event of the log is the
//! take-over.

use super::common::evidence::Log;
use super::faults::query;
use lango_core::EventBody;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum time between the expiry of a lease and the take-over.
pub(crate) const TAKEOVER_LIMIT: Duration = Duration::from_secs(5);

const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A period without a database, in which no take-over is possible. Milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outage {
    pub from: u64,
    pub until: u64,
}

/// The faults of a run and the outages of its database.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub faults: Vec<(u64, &'static str)>,
    pub outages: Vec<Outage>,
}

impl History {
    /// Returns the name of the last fault before a moment.
    fn before(&self, moment: u64) -> &'static str {
        let before = self.faults.iter().rev().find(|(time, _)| *time < moment);
        before.map_or("nothing", |(_, name)| name)
    }
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// The leases that expired during a turn: session and fencing token, and the time of expiry.
#[derive(Debug, Default)]
pub(crate) struct ExpiredLeases(BTreeMap<(String, u64), u64>);

impl ExpiredLeases {
    pub(crate) fn watch(address: &str, is_over: &AtomicBool) -> Self {
        let statement = "SELECT h.session, h.fence, round(extract(epoch FROM h.until) * 1000) \
                         FROM holds h WHERE h.until > '-infinity' AND h.until < clock_timestamp() \
                         AND EXISTS (SELECT FROM turns t WHERE t.session = h.session AND t.finished = 0)";
        let mut expired = Self::default();
        while !is_over.load(Ordering::Relaxed) {
            for row in query(address, statement).unwrap_or_default() {
                let [session, fence, until] = &row[..] else {
                    panic!("{row:?}");
                };
                let lease = (session.clone(), fence.parse().unwrap());
                expired.0.insert(lease, until.parse().unwrap());
            }
            thread::sleep(POLL_INTERVAL);
        }
        expired
    }
}

/// The time from expiry to take-over for each expired lease, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct TakeOvers {
    times: Vec<u64>,
    late: Vec<String>,
    never: Vec<String>,
}

impl TakeOvers {
    pub(crate) fn of(expired: &ExpiredLeases, history: &History, log: &Log) -> Self {
        let mut take_overs = Self::default();
        for ((session, fence), expired_at) in &expired.0 {
            let events = log.sessions.get(session).map_or(&[][..], Vec::as_slice);
            let at = events.iter().position(|event| event.time.0 > *expired_at);
            let before = match at {
                Some(at) => at.checked_sub(1).map(|at| &events[at].body),
                None => events.last().map(|event| &event.body),
            };
            // A turn that waits for the user or has ended needs no take-over.
            let is_running = !matches!(
                before,
                None | Some(EventBody::ApprovalRequested(_) | EventBody::TurnFinished { .. })
            );
            match at.map(|at| &events[at]) {
                _ if !is_running => {}
                None => take_overs.never.push(format!("{session} {fence}")),
                Some(next) => {
                    let took = without(*expired_at, next.time.0, &history.outages);
                    if took > u64::try_from(TAKEOVER_LIMIT.as_millis()).unwrap() {
                        let after = history.before(*expired_at);
                        let detail =
                            format!("{took} ms after {after}: {session}, event {}", next.seq);
                        take_overs.late.push(detail);
                    }
                    take_overs.times.push(took);
                }
            }
        }
        take_overs.times.sort_unstable();
        take_overs
    }

    pub(crate) fn are_in_time(&self) -> bool {
        self.late.is_empty() && self.never.is_empty()
    }

    pub(crate) fn print(&self) {
        let at = |share: usize| {
            let last = self.times.len().checked_sub(1);
            last.map_or(0, |last| self.times[last * share / 100])
        };
        println!(
            "take-overs        {}, after expiry p50 {} ms, p99 {} ms, max {} ms",
            self.times.len(),
            at(50),
            at(99),
            at(100)
        );
        println!(
            "late              {} {:?}",
            self.late.len(),
            first(&self.late)
        );
        println!(
            "never             {} {:?}",
            self.never.len(),
            first(&self.never)
        );
    }
}

fn first(of: &[String]) -> &[String] {
    &of[..of.len().min(5)]
}

/// Returns the time from one moment to another, without the outages of the database.
fn without(from: u64, until: u64, outages: &[Outage]) -> u64 {
    let overlap = |outage: &Outage| {
        let (start, end) = (outage.from.max(from), outage.until.min(until));
        end.saturating_sub(start)
    };
    let outage: u64 = outages.iter().map(overlap).sum();
    until.saturating_sub(from).saturating_sub(outage)
}
