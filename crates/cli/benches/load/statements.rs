//! How many statements a turn is on PostgreSQL: one message after the other to one copy, and what the server counted.
//!
//! Each statement of lango is a transaction, but for a few that come together; the server counts those.

use super::common::random::Random;
use super::line::{Line, Wanted};
use super::world::{Store, World};
use lango_testkit::postgres::{Cluster, programs};
use std::process::Command;
use std::time::Duration;

/// How many turns are counted.
const TURNS: usize = 200;

/// A copy looks around now and then by itself; this is how long that is watched.
const IDLE: Duration = Duration::from_secs(4);

/// How long a connection may take to tell of its counts.
const TELLING: Duration = Duration::from_millis(1_100);

/// Counts, and prints what it counted.
pub async fn count(cluster: &Cluster, random: &mut Random) {
    let world = World::start(Store::Postgres, 1, cluster, random);
    let mut line = Line::to(&world.callers()[0]).await;
    let mut counter = Counter {
        address: cluster.address(),
        line: &mut line,
        said: 0,
    };
    // So that all statements are prepared.
    counter.say(TURNS, |_| "counted".to_owned()).await;
    let before = counter.transactions().await;
    tokio::time::sleep(IDLE).await;
    let idle = counter.transactions().await - before;
    println!(
        "{:<28}{:>14}{:>18}",
        "PostgreSQL, one client", "transactions", "ms for each turn"
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
        let began = std::time::Instant::now();
        counter.say(TURNS, conversation).await;
        let took = began.elapsed();
        let after = counter.transactions().await;
        let share = (took + TELLING).div_duration_f64(IDLE + TELLING);
        let by_itself = idle * share;
        let each = (after - before - by_itself) / (TURNS + 1) as f64;
        let ms = took.as_secs_f64() * 1e3 / TURNS as f64;
        println!("{name:<28}{each:>14.1}{ms:>18.2}");
    }
    world.end();
}

struct Counter<'a> {
    address: String,
    line: &'a mut Line,
    said: usize,
}

impl Counter<'_> {
    async fn say(&mut self, times: usize, conversation: fn(usize) -> String) {
        for _ in 0..times {
            self.said += 1;
            let message = format!("counted-{}", self.said);
            let conversation = conversation(self.said);
            self.line.hello(&conversation, &message, Wanted::End).await;
        }
    }

    /// So far. A connection tells of its counts at the end of what it does, if a second has passed since it last told.
    async fn transactions(&mut self) -> f64 {
        tokio::time::sleep(TELLING).await;
        self.say(1, |_| "counted".to_owned()).await;
        let mut psql = Command::new(programs().join("psql"));
        let statement = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'";
        psql.args(["-X", "-A", "-t", "-c", statement, &self.address]);
        let output = psql.output().unwrap();
        let count = String::from_utf8(output.stdout).unwrap();
        count.trim().parse().unwrap()
    }
}
