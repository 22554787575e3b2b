//! How long a session stands still after the lease of whoever was at work in it has lapsed.
//!
//! The table of holds is looked at all the time; a hold that lapsed with a turn under way is noted with the moment it
//! lapsed at, on the database's clock. From that moment on nobody but another copy can append there, so the next event of the
//! log is the take-over.

use super::common::evidence::Log;
use super::faults::ask;
use lango_core::EventBody;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How soon after the lease somebody else has to go on.
pub const IN_TIME: Duration = Duration::from_secs(5);

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A time when the database was away: nobody can take anything over then.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    pub from: u64,
    pub until: u64,
}

/// What was done to the copies and to the database, and when.
#[derive(Debug, Default)]
pub struct History {
    pub faults: Vec<(u64, &'static str)>,
    pub outages: Vec<Outage>,
}

impl History {
    /// The last fault before a moment.
    fn before(&self, moment: u64) -> &'static str {
        let before = self.faults.iter().rev().find(|(time, _)| *time < moment);
        before.map_or("nothing", |(_, name)| name)
    }
}

/// Now, in milliseconds.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// The holds that lapsed with a turn under way: session and number of the hold, and when.
#[derive(Debug, Default)]
pub struct Lapses(BTreeMap<(String, u64), u64>);

impl Lapses {
    pub fn watch(address: &str, is_over: &AtomicBool) -> Self {
        let statement = "SELECT h.session, h.fence, round(extract(epoch FROM h.until) * 1000) \
                         FROM holds h WHERE h.until > '-infinity' AND h.until < clock_timestamp() \
                         AND EXISTS (SELECT FROM turns t WHERE t.session = h.session AND t.finished = 0)";
        let mut lapses = Self::default();
        while !is_over.load(Ordering::Relaxed) {
            for row in ask(address, statement).unwrap_or_default() {
                let [session, fence, until] = &row[..] else {
                    panic!("{row:?}");
                };
                let hold = (session.clone(), fence.parse().unwrap());
                lapses.0.insert(hold, until.parse().unwrap());
            }
            thread::sleep(LOOK_EVERY);
        }
        lapses
    }
}

/// How long each take-over took after the lapse, in milliseconds.
#[derive(Debug, Default)]
pub struct TakeOvers {
    times: Vec<u64>,
    late: Vec<String>,
    never: Vec<String>,
}

impl TakeOvers {
    pub fn of(lapses: &Lapses, history: &History, log: &Log) -> Self {
        let mut take_overs = Self::default();
        for ((session, fence), lapsed) in &lapses.0 {
            let events = log.sessions.get(session).map_or(&[][..], Vec::as_slice);
            let at = events.iter().position(|event| event.time.0 > *lapsed);
            let before = match at {
                Some(at) => at.checked_sub(1).map(|at| &events[at].body),
                None => events.last().map(|event| &event.body),
            };
            // Nobody has to go on with what waits for a person or is over.
            let is_under_way = !matches!(
                before,
                None | Some(EventBody::ApprovalRequested(_) | EventBody::TurnFinished { .. })
            );
            match at.map(|at| &events[at]) {
                _ if !is_under_way => {}
                None => take_overs.never.push(format!("{session} {fence}")),
                Some(next) => {
                    let took = without(*lapsed, next.time.0, &history.outages);
                    if took > u64::try_from(IN_TIME.as_millis()).unwrap() {
                        let after = history.before(*lapsed);
                        let what =
                            format!("{took} ms after {after}: {session}, event {}", next.seq);
                        take_overs.late.push(what);
                    }
                    take_overs.times.push(took);
                }
            }
        }
        take_overs.times.sort_unstable();
        take_overs
    }

    pub fn are_in_time(&self) -> bool {
        self.late.is_empty() && self.never.is_empty()
    }

    pub fn print(&self) {
        let at = |share: usize| {
            let last = self.times.len().checked_sub(1);
            last.map_or(0, |last| self.times[last * share / 100])
        };
        println!(
            "take-overs        {}, after the lease p50 {} ms, p99 {} ms, most {} ms",
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

/// The time from one moment to another, without what the database was away.
fn without(from: u64, until: u64, outages: &[Outage]) -> u64 {
    let away = |outage: &Outage| {
        let (begin, end) = (outage.from.max(from), outage.until.min(until));
        end.saturating_sub(begin)
    };
    let away: u64 = outages.iter().map(away).sum();
    until.saturating_sub(from).saturating_sub(away)
}
