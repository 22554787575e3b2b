//! Whether the amount of stored data makes anything slower: `cargo bench -p lango-engine --bench flat`.
//!
//! Runs the same work in a session with few, many and very many events, and in one next to very many sessions, on
//! SQLite and on PostgreSQL. Measures the CPU time of this process, the CPU time of PostgreSQL, and wall time. All four
//! alternate in short rounds and the best round counts, so that other load on the machine affects all of them equally.
//!
//! `-- short` stores a fiftieth of the data. Exits with 1 if a turn on SQLite costs 1.5 times as much with one amount
//! of data as with another.

#[allow(dead_code, reason = "the other measurements use the rest")]
mod common;

use common::{Bench, BenchStore};
use lango_testkit::postgres::{Cluster, programs};
use rustix::time::{ClockId, clock_gettime};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// One unit of work.
type Work = fn(&mut Bench);

/// The work to measure, and its repetitions in one round.
const WORK: [(&str, Work, usize); 4] = [
    ("a turn", |bench| bench.turn("hello"), 100),
    ("open a session", Bench::open, 300),
    ("list 20 sessions", Bench::list, 300),
    ("look for unfinished", Bench::list_unfinished, 300),
];

/// The databases, by their amount of data.
const DATABASES: [&str; 4] = ["few", "many", "very_many", "sessions"];

/// The maximum ratio of the costs of two turns. On a busy machine two identical runs differ by a quarter.
const MAX_RATIO: f64 = 1.5;

/// The number of events in the session, and of other sessions.
type StoredData = (usize, usize);

/// The scale of the benchmark.
struct Scale {
    stored: [StoredData; 4],
    rounds: usize,
    /// The divisor of all repetitions.
    shorter: usize,
}

const WHOLE: Scale = Scale {
    stored: [(10, 0), (10_000, 0), (1_000_000, 0), (10, 100_000)],
    rounds: 9,
    shorter: 1,
};

const SHORT: Scale = Scale {
    stored: [(10, 0), (1_000, 0), (20_000, 0), (10, 1_000)],
    rounds: 7,
    shorter: 4,
};

fn main() -> ExitCode {
    let is_short = std::env::args().any(|argument| argument == "short");
    let scale = if is_short { SHORT } else { WHOLE };
    println!("µs each, the best of {} rounds\n", scale.rounds);
    let on_sqlite = on_sqlite(&scale);
    println!();
    on_postgres(&scale);
    if on_sqlite > MAX_RATIO {
        println!("\na turn on SQLite is not flat: {on_sqlite:.2} is more than {MAX_RATIO}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns the ratio of the most and the least expensive turn.
fn on_sqlite(scale: &Scale) -> f64 {
    let mut benches = scale
        .stored
        .map(|(events, others)| Bench::with_other_sessions(BenchStore::Sqlite, events, others));
    head("SQLite, CPU", scale);
    let mut of_turns = 0.0;
    for (name, work, times) in WORK {
        let costs = measure(&mut benches, work, scale, times, &|| Duration::ZERO);
        let ratio = row(name, costs.map(|cost| cost.here));
        if name == WORK[0].0 {
            of_turns = ratio;
        }
    }
    of_turns
}

fn on_postgres(scale: &Scale) {
    // Autovacuum would run at any time, so vacuum before.
    let cluster = Cluster::start(&["autovacuum=off", "shared_buffers=256MB", "max_wal_size=1GB"]);
    let address = cluster.address();
    let mut databases = DATABASES.iter().map(|name| {
        psql(&address, &format!("CREATE DATABASE {name}"));
        let (server, _) = address
            .rsplit_once('/')
            .expect("an address with a database");
        format!("{server}/{name}")
    });
    let mut benches = scale.stored.map(|(events, others)| {
        let database = databases.next().expect("one for each");
        let bench = Bench::with_other_sessions(BenchStore::Postgres(&database), events, others);
        psql(&database, "VACUUM ANALYZE");
        bench
    });
    let costs = WORK
        .map(|(_, work, times)| measure(&mut benches, work, scale, times, &|| cluster.cpu_time()));
    let columns: [(&str, Figure); 3] = [
        ("PostgreSQL, CPU here", |cost| cost.here),
        ("PostgreSQL, CPU there", |cost| cost.there),
        ("PostgreSQL, wall", |cost| cost.wall),
    ];
    for (title, column) in columns {
        head(title, scale);
        for ((name, ..), costs) in WORK.iter().zip(&costs) {
            row(name, costs.each_ref().map(column));
        }
        println!();
    }
}

/// One of the measured values.
type Figure = fn(&Cost) -> f64;

/// The cost of one unit of work, in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    here: f64,
    there: f64,
    wall: f64,
}

fn measure(
    benches: &mut [Bench; 4],
    work: Work,
    scale: &Scale,
    times: usize,
    spent_there: &dyn Fn() -> Duration,
) -> [Cost; 4] {
    let times = times / scale.shorter;
    let mut best = [Cost {
        here: f64::MAX,
        there: f64::MAX,
        wall: f64::MAX,
    }; 4];
    for bench in benches.iter_mut() {
        (0..times / 2).for_each(|_| work(bench));
    }
    for _ in 0..scale.rounds {
        for (bench, best) in benches.iter_mut().zip(&mut best) {
            let (here, there, began) = (spent_here(), spent_there(), Instant::now());
            (0..times).for_each(|_| work(bench));
            let each = |spent: Duration| spent.as_secs_f64() * 1e6 / times as f64;
            best.wall = best.wall.min(each(began.elapsed()));
            best.here = best.here.min(each(spent_here() - here));
            best.there = best.there.min(each(spent_there() - there));
        }
    }
    best
}

/// Runs a statement that is not lango's.
fn psql(address: &str, statement: &str) {
    let mut psql = Command::new(programs().join("psql"));
    psql.args(["-X", "-q", "-c", statement, address]);
    let output = psql.output().expect("psql starts");
    assert!(output.status.success(), "{output:?}");
}

fn spent_here() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(time.tv_nsec.unsigned_abs())
}

fn head(title: &str, scale: &Scale) {
    let names = scale.stored.map(|stored| match stored {
        (events, 0) => format!("{events} events"),
        (_, others) => format!("{others} sessions"),
    });
    print!("{title:<24}");
    names.iter().for_each(|name| print!("{name:>18}"));
    println!("{:>12}", "most/least");
}

/// Prints a row, and returns the ratio of its largest and smallest value.
fn row(name: &str, values: [f64; 4]) -> f64 {
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    print!("{name:<24}");
    values.iter().for_each(|value| print!("{value:>18.1}"));
    println!("{:>12.2}", most / least);
    most / least
}
