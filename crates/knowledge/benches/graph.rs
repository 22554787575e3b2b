//! Measures how long a traversal takes and how that grows with the graph: `cargo bench -p lango-knowledge --bench
//! graph`.
//!
//! Degrees follow a power law, so there are hubs with many thousands of facts. Each traversal goes to depth 3 with the
//! default limits, through the public API. `-- short` uses a small graph and few traversals.

#![allow(clippy::unwrap_used, reason = "in a benchmark, a panic is the report")]

use lango_core::{Provenance, Timestamp, Trust, UserId};
use lango_store::Store;
use lango_store::graph::{Confidence, Direction, Entity, Name, NewFact, Walk, WalkLimits};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PREDICATES: u64 = 20;
const KINDS: u64 = 8;

/// The number of facts per batch.
const BATCH: u64 = 20_000;

fn main() {
    let is_short = std::env::args().any(|argument| argument == "short");
    let (sizes, walks): (&[u64], usize) = if is_short {
        (&[2_000, 20_000], 200)
    } else {
        (&[10_000, 100_000, 1_000_000], 5_000)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    println!("walks to depth 3 with the default limits; times in ms\n");
    println!(
        "{:>10}  {:<24}{:>8}{:>8}{:>8}{:>8}",
        "facts", "walks", "found", "p50", "p99", "most"
    );
    for size in sizes {
        runtime.block_on(measure(*size, walks));
    }
}

async fn measure(facts: u64, walks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = Arc::new(Store::open_sqlite(&path, "root".into()).unwrap());
    let graph: &Store = &store;
    let entities = facts / 5;
    let building = Instant::now();
    build(graph, facts, entities).await;
    let built = building.elapsed();

    let plain = |start: u64| walk(start, Vec::new());
    let mut random = Random(1);
    let starts: Vec<_> = (0..walks).map(|_| random.below(entities)).collect();
    row(
        graph,
        facts,
        "from anywhere",
        starts.iter().map(|start| plain(*start)),
    )
    .await;
    let hubs = (0..walks as u64).map(|walk| plain(walk % 50));
    row(graph, facts, "from the 50 largest hubs", hubs).await;
    let typed = starts.iter().map(|start| walk(*start, vec![kind(3)]));
    row(graph, facts, "to one type in eight", typed).await;

    let files = std::fs::read_dir(folder.path()).unwrap();
    let size: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    println!(
        "{facts:>10}  built in {:.1} s; files {} MB; memory now {} MB, at most {} MB\n",
        built.as_secs_f64(),
        size / 1_000_000,
        memory_mb("VmRSS:"),
        memory_mb("VmHWM:"),
    );
}

async fn build(graph: &Store, facts: u64, entities: u64) {
    let mut random = Random(facts);
    let mut added = 0;
    while added < facts {
        let portion = (facts - added).min(BATCH);
        let portion = (0..portion).map(|_| fact(&mut random, entities)).collect();
        added += graph.relate_all(&user(), portion).await.unwrap();
    }
}

fn fact(random: &mut Random, entities: u64) -> NewFact {
    NewFact {
        subject: entity(random.skewed(entities)),
        predicate: name(format!("relation {}", random.below(PREDICATES))),
        object: entity(random.skewed(entities)),
        source: Provenance {
            name: format!("file {}", random.below(100)).into(),
            trust: Trust::Untrusted,
        },
        confidence: Confidence::FULL,
        created: Timestamp(1),
        valid_from: Timestamp(1),
    }
}

fn entity(number: u64) -> Entity {
    Entity {
        name: name(format!("entity number {number}")),
        kind: Some(kind(number % KINDS)),
    }
}

fn kind(number: u64) -> Name {
    name(format!("kind {number}"))
}

fn name(text: String) -> Name {
    Name::new(&text).unwrap()
}

fn user() -> UserId {
    UserId::from("local")
}

fn walk(start: u64, kinds: Vec<Name>) -> Walk {
    Walk {
        start: entity(start).name,
        direction: Direction::Both,
        predicates: Vec::new(),
        kinds,
        limits: WalkLimits::default(),
    }
}

async fn row(graph: &Store, facts: u64, what: &str, walks: impl Iterator<Item = Walk>) {
    let user = user();
    let (mut times, mut found) = (Vec::new(), 0);
    for walk in walks {
        let started = Instant::now();
        let traversal = graph.traverse(&user, walk).await.unwrap();
        times.push(started.elapsed());
        found += traversal.map_or(0, |traversal| traversal.steps.len());
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{facts:>10}  {what:<24}{:>8}{:>8.2}{:>8.2}{:>8.2}",
        found / times.len(),
        ms(at(0.5)),
        ms(at(0.99)),
        ms(at(1.0)),
    );
}

/// Returns a figure of this process's memory from Linux, in MB.
fn memory_mb(figure: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(figure));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1000
}

/// A pseudo-random generator that gives the same numbers in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns small numbers far more often than large ones: the frequency of n is about n to the power of -2/3.
    fn skewed(&mut self, bound: u64) -> u64 {
        let share = self.next() as f64 / u64::MAX as f64;
        ((share.powi(3) * bound as f64) as u64).min(bound - 1)
    }
}
