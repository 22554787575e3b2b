//! The faults, one after the other: each is over, and everybody is back, before the next one.

use super::common::place::Place;
use super::common::random::Random;
use super::copies::Copies;
use super::takeover::{History, Outage, now};
use lango_testkit::postgres::{Cluster, programs};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// `kill -9` of a copy, which comes back after a while.
    Kill,
    /// A copy stands still for longer than its lease, and then goes on as if nothing had been.
    Stop,
    /// The database stops at once and is started again.
    Database,
    /// Some connections to the database are cut.
    Connections,
}

const FAULTS: [(Fault, &str); 4] = [
    (Fault::Kill, "kills"),
    (Fault::Stop, "stops"),
    (Fault::Database, "database crashes"),
    (Fault::Connections, "cut connections"),
];

/// The longest pause between two faults.
const PAUSE: Duration = Duration::from_secs(2);

/// Everything that can be broken.
pub struct Faults {
    copies: Copies,
    database: Cluster,
    lease: Duration,
    random: Random,
    history: History,
    done: BTreeMap<Fault, u64>,
}

impl Faults {
    pub fn new(copies: Copies, database: Cluster, lease: Duration, random: Random) -> Self {
        Self {
            copies,
            database,
            lease,
            random,
            history: History::default(),
            done: BTreeMap::new(),
        }
    }

    /// Causes one, and waits a moment.
    pub fn cause_one(&mut self, place: &Place) {
        // Every kind is done before one is done again.
        let least = |(fault, _): &&(Fault, &str)| self.done.get(fault).copied().unwrap_or(0);
        let fewest = FAULTS.iter().map(|fault| least(&fault)).min().unwrap_or(0);
        let rare: Vec<Fault> = FAULTS
            .iter()
            .filter(|fault| least(fault) == fewest)
            .map(|(fault, _)| *fault)
            .collect();
        let fault = *self.random.pick(&rare);
        *self.done.entry(fault).or_default() += 1;
        let victim = usize::try_from(self.random.below(self.copies.count() as u64)).unwrap();
        let name = FAULTS.iter().find(|(known, _)| *known == fault);
        self.history
            .faults
            .push((now(), name.map_or("", |(_, name)| name)));
        match fault {
            Fault::Kill => {
                self.copies.kill(victim);
                // Sometimes it is back before its lease has lapsed.
                thread::sleep(self.random.within(self.lease * 2));
                self.copies.start_again(place, victim);
                assert!(self.copies.is_ready(victim), "a copy does not start again");
            }
            Fault::Stop => {
                self.copies.server(victim).signal(Signal::STOP);
                let longer = self.random.within(Duration::from_secs(4));
                thread::sleep(self.lease + Duration::from_millis(500) + longer);
                self.copies.server(victim).signal(Signal::CONT);
            }
            Fault::Database => {
                let from = now();
                self.database.stop_immediately();
                thread::sleep(self.random.within(Duration::from_secs(1)));
                self.database.start_again();
                self.history.outages.push(Outage { from, until: now() });
            }
            Fault::Connections => cut_connections(&self.database.address()),
        }
        thread::sleep(self.random.within(PAUSE));
    }

    /// Everything as it is after the last fault, what happened when, and how often.
    pub fn finish(mut self, place: &Place) -> (Copies, Cluster, History, String) {
        for number in 0..self.copies.count() {
            self.copies.kill(number);
            self.copies.start_again(place, number);
            assert!(self.copies.is_ready(number), "a copy does not start again");
        }
        let done = FAULTS.iter().map(|(fault, name)| {
            let count = self.done.get(fault).copied().unwrap_or(0);
            format!("{count} {name}")
        });
        let all: u64 = self.done.values().sum();
        let done = format!("{all} ({})", done.collect::<Vec<_>>().join(", "));
        (self.copies, self.database, self.history, done)
    }
}

fn cut_connections(address: &str) {
    let statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name = 'lango' AND random() < 0.5";
    // A database that just starts has no connections to cut.
    let _ = ask(address, statement);
}

/// The rows that a statement gives; none if the database does not answer.
pub fn ask(address: &str, statement: &str) -> Option<Vec<Vec<String>>> {
    let mut psql = Command::new(programs().join("psql"));
    psql.args(["-X", "-A", "-t", "-F", " ", "-c", statement, address]);
    let output = psql.env("PGCONNECT_TIMEOUT", "5").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    let is_fine = output.status.success();
    is_fine.then(|| text.lines().map(words).collect())
}
