//! Counts the SQL statements of a turn on PostgreSQL: sends messages one by one to a single replica and reads
//! PostgreSQL's statistics.
//!
//! The unit is transactions: nearly every statement of lango is its own transaction.

use super::common::random::Random;
use super::connection::{Connection, WaitFor};
use super::replicas::{Replicas, Store};
use lango_testkit::postgres::{Cluster, programs};
use std::process::Command;
use std::time::Duration;

const TURNS: usize = 200;

/// How long to measure an idle replica, whose background scans run statements too.
const IDLE: Duration = Duration::from_secs(4);

/// PostgreSQL flushes the statistics of a connection at most once a second.
const STATISTICS_DELAY: Duration = Duration::from_millis(1_100);

/// Counts the transactions of a turn, and prints the result.
pub(crate) async fn count(cluster: &Cluster, random: &mut Random) {
    let replicas = Replicas::start(Store::Postgres, 1, cluster, random);
    let mut connection = Connection::open(&replicas.rpc_clients()[0]).await;
    let mut counter = Counter {
        address: cluster.address(),
        connection: &mut connection,
        sent: 0,
    };
    // Warm up, so that all statements are prepared.
    counter.send(TURNS, |_| "counted".to_owned()).await;
    let before = counter.transactions().await;
    tokio::time::sleep(IDLE).await;
    let idle = counter.transactions().await - before;
    println!(
        "{:<28}{:>14}{:>18}",
        "PostgreSQL, one client", "transactions", "ms per turn"
    );
    let fresh: fn(usize) -> String = |number| format!("counted-{number}");
    for (name, conversation) in [
        (
            "the same conversation",
            (|_| "counted".to_owned()) as fn(usize) -> String,
        ),
        ("a new one each time", fresh),
    ] {
        let before = counter.transactions().await;
        let started = std::time::Instant::now();
        counter.send(TURNS, conversation).await;
        let took = started.elapsed();
        let after = counter.transactions().await;
        let share = (took + STATISTICS_DELAY).div_duration_f64(IDLE + STATISTICS_DELAY);
        let background = idle * share;
        let each = (after - before - background) / (TURNS + 1) as f64;
        let ms = took.as_secs_f64() * 1e3 / TURNS as f64;
        println!("{name:<28}{each:>14.1}{ms:>18.2}");
    }
    replicas.end();
}

struct Counter<'a> {
    address: String,
    connection: &'a mut Connection,
    sent: usize,
}

impl Counter<'_> {
    async fn send(&mut self, count: usize, conversation: fn(usize) -> String) {
        for _ in 0..count {
            self.sent += 1;
            let message = format!("counted-{}", self.sent);
            let conversation = conversation(self.sent);
            self.connection
                .send_hello(&conversation, &message, WaitFor::Completion)
                .await;
        }
    }

    /// Returns the number of transactions so far. Sends one more message, because a connection flushes its statistics
    /// only after a statement.
    async fn transactions(&mut self) -> f64 {
        tokio::time::sleep(STATISTICS_DELAY).await;
        self.send(1, |_| "counted".to_owned()).await;
        let mut psql = Command::new(programs().join("psql"));
        let statement = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'";
        psql.args(["-X", "-A", "-t", "-c", statement, &self.address]);
        let output = psql.output().unwrap();
        let count = String::from_utf8(output.stdout).unwrap();
        count.trim().parse().unwrap()
    }
}
