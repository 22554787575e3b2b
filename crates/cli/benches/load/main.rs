//! Measures the throughput of `lango serve`: `cargo bench -p lango-cli --bench load`, with `-- short` for a quick run.
//!
//! Runs one or more replicas of the real binary on SQLite and on a private PostgreSQL with `fsync`, with clients over
//! HTTP on loopback. A message is acknowledged once its task is stored and returned; every acknowledged task must
//! complete. A turn is the complete exchange, with a model that answers immediately. All rows are measured in several
//! rounds, and the best values of each row are printed. Finally the statements of a turn on PostgreSQL are counted.

#![allow(
    clippy::unwrap_used,
    reason = "in a measurement, a panic is the report"
)]

mod client_pool;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod connection;
mod replicas;
mod statements;

use client_pool::{ClientPool, Throughput};
use common::random::Random;
use lango_testkit::postgres::Cluster;
use replicas::{Replicas, Store};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

const REPLICA_SETS: [(Store, usize); 4] = [
    (Store::Sqlite, 1),
    (Store::Postgres, 1),
    (Store::Postgres, 2),
    (Store::Postgres, 4),
];

/// The size of a run.
struct Extent {
    rounds: usize,
    clients: &'static [usize],
    /// Total turns for each row of a round.
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
        "clients, replicas and PostgreSQL share {cores} cores: compare the rows with each other, not with other machines"
    );
    println!(
        "the best of {} rounds; times in ms; CPU in ms per turn\n",
        extent.rounds
    );
    let mut random = Random::new(Random::seed());
    let cluster = Cluster::start(&["fsync=on"]);
    let start = |(store, count)| Replicas::start(store, count, &cluster, &mut random);
    let replica_sets = REPLICA_SETS.map(start);
    let mut rows: Vec<Option<Row>> = Vec::new();
    for round in 0..extent.rounds {
        let mut at = 0;
        for replicas in &replica_sets {
            for clients in extent.clients {
                let row = Row::measure(replicas, &cluster, *clients, round, extent).await;
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
    replica_sets.into_iter().for_each(Replicas::end);
    println!();
    statements::count(&cluster, &mut random).await;
}

/// The measurements for a number of clients and replicas.
struct Row {
    store: Store,
    replicas: usize,
    clients: usize,
    acknowledged: Throughput,
    turns: Throughput,
    /// CPU seconds per turn of the replicas, of PostgreSQL and of the clients.
    cpu: [f64; 3],
}

impl Row {
    async fn measure(
        replicas: &Replicas,
        cluster: &Cluster,
        clients: usize,
        round: usize,
        extent: &Extent,
    ) -> Self {
        let servers = replicas.rpc_clients();
        let name = format!("c{clients}-r{round}");
        let mut pool = ClientPool::connect(servers, clients, &name).await;
        let acknowledged = pool.acknowledgements(extent.bursts).await;
        let cpu_times = || [replicas.cpu_time(), cluster.cpu_time(), own_cpu_time()];
        let before = cpu_times();
        let each = extent.turns / clients;
        let turns = pool.turns(each).await;
        let after = cpu_times();
        let cpu = [0, 1, 2].map(|index| {
            let used = after[index].saturating_sub(before[index]);
            used.as_secs_f64() / (each * clients) as f64
        });
        Self {
            store: replicas.store,
            replicas: servers.len(),
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
            cpu: [0, 1, 2].map(|index| self.cpu[index].min(other.cpu[index])),
            ..self
        }
    }

    fn print_head() {
        println!(
            "{:<12}{:>9}{:>9} |{:>14}{:>7}{:>7} |{:>9}{:>7}{:>7} |{:>7}{:>12}{:>9}",
            "store",
            "replicas",
            "clients",
            "acknowledged/s",
            "p50",
            "p99",
            "turns/s",
            "p50",
            "p99",
            "lango",
            "PostgreSQL",
            "clients"
        );
    }

    fn print(&self) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let [replicas, postgres, clients] = self.cpu.map(|seconds| seconds * 1e3);
        println!(
            "{:<12}{:>9}{:>9} |{:>14.0}{:>7.1}{:>7.1} |{:>9.0}{:>7.1}{:>7.1} |{replicas:>7.2}{postgres:>12.2}{clients:>9.2}",
            self.store.name(),
            self.replicas,
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

/// Returns the CPU time of this process.
fn own_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}
