//! Causes faults one at a time: replicas and database have recovered before the next fault.

use super::common::random::Random;
use super::common::test_env::TestEnv;
use super::replicas::Replicas;
use super::takeover::{History, Outage, now};
use lango_testkit::postgres::{Cluster, programs};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// Kills a replica with SIGKILL and restarts it after a while.
    Kill,
    /// Suspends a replica for longer than its lease, then resumes it.
    Stop,
    /// Stops the database immediately, as in a crash, and starts it again.
    Database,
    /// Terminates about half of the connections to the database.
    Connections,
}

const FAULTS: [(Fault, &str); 4] = [
    (Fault::Kill, "kills"),
    (Fault::Stop, "stops"),
    (Fault::Database, "database crashes"),
    (Fault::Connections, "lost connections"),
];

/// Maximum pause between two faults.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// The replicas and the database, with the faults so far.
pub(crate) struct Faults {
    replicas: Replicas,
    database: Cluster,
    lease: Duration,
    random: Random,
    history: History,
    done: BTreeMap<Fault, u64>,
}

impl Faults {
    pub(crate) fn new(
        replicas: Replicas,
        database: Cluster,
        lease: Duration,
        random: Random,
    ) -> Self {
        Self {
            replicas,
            database,
            lease,
            random,
            history: History::default(),
            done: BTreeMap::new(),
        }
    }

    /// Causes a fault, and pauses.
    pub(crate) fn cause_one(&mut self, test_env: &TestEnv) {
        // Choose among the kinds that occurred least often so far.
        let count = |(fault, _): &&(Fault, &str)| self.done.get(fault).copied().unwrap_or(0);
        let fewest = FAULTS.iter().map(|fault| count(&fault)).min().unwrap_or(0);
        let rare: Vec<Fault> = FAULTS
            .iter()
            .filter(|fault| count(fault) == fewest)
            .map(|(fault, _)| *fault)
            .collect();
        let fault = *self.random.pick(&rare);
        *self.done.entry(fault).or_default() += 1;
        let victim = usize::try_from(self.random.below(self.replicas.count() as u64)).unwrap();
        let name = FAULTS.iter().find(|(known, _)| *known == fault);
        self.history
            .faults
            .push((now(), name.map_or("", |(_, name)| name)));
        match fault {
            Fault::Kill => {
                self.replicas.kill(victim);
                // Sometimes it restarts before its lease has expired.
                thread::sleep(self.random.within(self.lease * 2));
                self.replicas.start_again(test_env, victim);
                assert!(self.replicas.is_ready(victim), "a replica did not restart");
            }
            Fault::Stop => {
                self.replicas.server(victim).signal(Signal::STOP);
                let extra = self.random.within(Duration::from_secs(4));
                thread::sleep(self.lease + Duration::from_millis(500) + extra);
                self.replicas.server(victim).signal(Signal::CONT);
            }
            Fault::Database => {
                let from = now();
                self.database.stop_immediately();
                thread::sleep(self.random.within(Duration::from_secs(1)));
                self.database.start_again();
                self.history.outages.push(Outage { from, until: now() });
            }
            Fault::Connections => terminate_connections(&self.database.address()),
        }
        thread::sleep(self.random.within(MAX_PAUSE));
    }

    /// Restarts all replicas. Returns them with the database, the history, and a summary of the faults.
    pub(crate) fn finish(mut self, test_env: &TestEnv) -> (Replicas, Cluster, History, String) {
        for number in 0..self.replicas.count() {
            self.replicas.kill(number);
            self.replicas.start_again(test_env, number);
            assert!(self.replicas.is_ready(number), "a replica did not restart");
        }
        let done = FAULTS.iter().map(|(fault, name)| {
            let count = self.done.get(fault).copied().unwrap_or(0);
            format!("{count} {name}")
        });
        let all: u64 = self.done.values().sum();
        let done = format!("{all} ({})", done.collect::<Vec<_>>().join(", "));
        (self.replicas, self.database, self.history, done)
    }
}

fn terminate_connections(address: &str) {
    let statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name = 'lango' AND random() < 0.5";
    // A database that is still starting has no connections to terminate.
    let _ = query(address, statement);
}

/// Runs a statement and returns its rows, or `None` if the database does not answer.
pub(crate) fn query(address: &str, statement: &str) -> Option<Vec<Vec<String>>> {
    let mut psql = Command::new(programs().join("psql"));
    psql.args(["-X", "-A", "-t", "-F", " ", "-c", statement, address]);
    let output = psql.env("PGCONNECT_TIMEOUT", "5").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let columns = |line: &str| line.split(' ').map(str::to_owned).collect();
    let is_success = output.status.success();
    is_success.then(|| text.lines().map(columns).collect())
}
