//! How many messages `lango serve` takes and answers: `cargo bench -p lango-cli --bench load`, `-- short` for a taste.
//!
//! The real binary in one or more copies, on SQLite and on a PostgreSQL of its own that waits for the disk, and clients over
//! HTTP on loopback. Acknowledged is a message once its task is stored and answered with; all that was acknowledged has to
//! come to its end. A turn is the whole of it, with a model that answers at once. The rows take turns in several rounds,
//! and the best of each counts. At last the statements of a turn are counted, on PostgreSQL.

#![allow(
    clippy::unwrap_used,
    reason = "in a measurement, a panic is the report"
)]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod crowd;
mod line;
mod statements;
mod world;

use common::random::Random;
use crowd::{Crowd, Pace};
use lango_testkit::postgres::Cluster;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use world::{Store, World};

const WORLDS: [(Store, usize); 4] = [
    (Store::Sqlite, 1),
    (Store::Postgres, 1),
    (Store::Postgres, 2),
    (Store::Postgres, 4),
];

/// How much is done.
struct Extent {
    rounds: usize,
    clients: &'static [usize],
    /// Turns in all, for each row of a round.
    turns: usize,
    bursts: usize,
}

const WHOLE: Extent = Extent {
    rounds: 5,
    clients: &[16, 64],
    turns: 1_280,
    bursts: 8,
};

const SHORT: Extent = Extent {
    rounds: 1,
    clients: &[16],
    turns: 320,
    bursts: 2,
};

fn main() {
    let is_short = std::env::args().any(|argument| argument == "short");
    let extent = if is_short { SHORT } else { WHOLE };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure(&extent));
}

async fn measure(extent: &Extent) {
    let cores = std::thread::available_parallelism().unwrap();
    println!(
        "{cores} cores are shared by clients, copies and PostgreSQL: what counts is the relation of the rows to each other"
    );
    println!(
        "the best of {} rounds; times in ms; CPU in ms for each turn\n",
        extent.rounds
    );
    let mut random = Random::new(Random::seed());
    let cluster = Cluster::start(&["fsync=on"]);
    let start = |(store, copies)| World::start(store, copies, &cluster, &mut random);
    let worlds = WORLDS.map(start);
    let mut rows: Vec<Option<Row>> = Vec::new();
    for round in 0..extent.rounds {
        let mut at = 0;
        for world in &worlds {
            for clients in extent.clients {
                let row = Row::measure(world, &cluster, *clients, round, extent).await;
                match rows.get_mut(at) {
                    Some(best) => *best = best.take().map(|best| best.better(row)),
                    None => rows.push(Some(row)),
                }
                at += 1;
            }
        }
    }
    Row::print_head();
    rows.iter().flatten().for_each(Row::print);
    worlds.into_iter().for_each(World::end);
    println!();
    statements::count(&cluster, &mut random).await;
}

/// What was measured of some clients at some copies.
struct Row {
    store: Store,
    copies: usize,
    clients: usize,
    acknowledged: Pace,
    turns: Pace,
    /// CPU seconds for each turn: of the copies, of PostgreSQL and of the clients.
    cpu: [f64; 3],
}

impl Row {
    async fn measure(
        world: &World,
        cluster: &Cluster,
        clients: usize,
        round: usize,
        extent: &Extent,
    ) -> Self {
        let copies = world.callers();
        let name = format!("c{clients}-r{round}");
        let mut crowd = Crowd::gather(copies, clients, &name).await;
        let acknowledged = crowd.acknowledgements(extent.bursts).await;
        let spent = || [world.spent(), cluster.spent(), spent_here()];
        let before = spent();
        let each = extent.turns / clients;
        let turns = crowd.turns(each).await;
        let after = spent();
        let cpu = [0, 1, 2].map(|of| {
            let spent = after[of].saturating_sub(before[of]);
            spent.as_secs_f64() / (each * clients) as f64
        });
        Self {
            store: world.store,
            copies: copies.len(),
            clients,
            acknowledged,
            turns,
            cpu,
        }
    }

    fn better(self, other: Self) -> Self {
        Self {
            acknowledged: self.acknowledged.better(other.acknowledged),
            turns: self.turns.better(other.turns),
            cpu: [0, 1, 2].map(|of| self.cpu[of].min(other.cpu[of])),
            ..self
        }
    }

    fn print_head() {
        println!(
            "{:<12}{:>7}{:>9} |{:>14}{:>7}{:>7} |{:>9}{:>7}{:>7} |{:>7}{:>12}{:>9}",
            "store",
            "copies",
            "clients",
            "acknowledged/s",
            "p50",
            "p99",
            "turns/s",
            "p50",
            "p99",
            "copies",
            "PostgreSQL",
            "clients"
        );
    }

    fn print(&self) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let [copies, postgres, clients] = self.cpu.map(|seconds| seconds * 1e3);
        println!(
            "{:<12}{:>7}{:>9} |{:>14.0}{:>7.1}{:>7.1} |{:>9.0}{:>7.1}{:>7.1} |{copies:>7.2}{postgres:>12.2}{clients:>9.2}",
            self.store.name(),
            self.copies,
            self.clients,
            self.acknowledged.per_second,
            ms(self.acknowledged.p50),
            ms(self.acknowledged.p99),
            self.turns.per_second,
            ms(self.turns.p50),
            ms(self.turns.p99),
        );
    }
}

fn spent_here() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}
