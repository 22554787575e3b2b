//! Measures turns through `lango serve`, with server, clients and model in separate processes: `scripts/bench`.
//!
//! A turn is a blocking `SendMessage` in `specialists`: a delegation with `finish`, three streamed model calls, one
//! pure tool.

#![allow(
    clippy::unwrap_used,
    reason = "in a measurement, a panic is the report"
)]

mod approvals;
mod client;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod model;
mod server;
mod soak;
mod subscribers;

use client::Load;
use lango_testkit::postgres::Cluster;
use server::{Server, Setup};
use std::time::Duration;

/// One row of the table.
struct Scenario {
    name: &'static str,
    load: Load,
    latency: Duration,
    is_postgres: bool,
    max_running: Option<usize>,
    /// The cores of the server, and those of client and model.
    cores: Option<[&'static str; 2]>,
}

const fn scenario(name: &'static str, clients: usize, turns: usize) -> Scenario {
    Scenario {
        name,
        load: Load { clients, turns },
        latency: Duration::from_millis(50),
        is_postgres: false,
        max_running: None,
        cores: None,
    }
}

const WHOLE: [Scenario; 6] = [
    scenario("SQLite, 200 clients", 200, 5),
    scenario("SQLite, 1,000 clients", 1_000, 2),
    Scenario {
        max_running: Some(64),
        ..scenario("SQLite, 1,000 clients, 64 running", 1_000, 2)
    },
    Scenario {
        is_postgres: true,
        ..scenario("PostgreSQL, 200 clients", 200, 5)
    },
    Scenario {
        latency: Duration::ZERO,
        cores: Some(["1", "0"]),
        ..scenario("SQLite, 16 clients, no latency, server on core 1", 16, 60)
    },
    Scenario {
        latency: Duration::ZERO,
        cores: Some(["0,1", "0"]),
        ..scenario(
            "SQLite, 16 clients, no latency, server on both cores",
            16,
            60,
        )
    },
];

const SHORT: [Scenario; 2] = [
    scenario("SQLite, 50 clients", 50, 4),
    Scenario {
        max_running: Some(8),
        ..scenario("SQLite, 100 clients, 8 running", 100, 2)
    },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("model") => model::run(&arguments[1]),
        Some("client") => client::run(&arguments[1..]),
        Some("soak") => soak::run(count(&arguments, 20_000)),
        Some("approvals") => approvals::run(count(&arguments, 1_000)),
        Some("watch") => subscribers::watch(&arguments[1..]),
        Some("subscribers") => {
            let readers = count(&arguments, 1_000);
            subscribers::run(readers, readers.div_ceil(10));
        }
        _ => measure(&arguments),
    }
}

fn count(arguments: &[String], default: usize) -> usize {
    let number = arguments.get(1).and_then(|number| number.parse().ok());
    number.unwrap_or(default)
}

fn measure(arguments: &[String]) {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let scenarios: &[Scenario] = if has("short") { &SHORT } else { &WHOLE };
    let cluster = (!has("short")).then(|| Cluster::start(&["fsync=on"]));
    println!("times in ms; CPU in ms per turn; memory in MB");
    println!(
        "{:<54}{:>8}{:>9}{:>8}{:>8}{:>8}{:>12}{:>8}",
        "", "refused", "turns/s", "p50", "p99", "server", "PostgreSQL", "memory"
    );
    let mut refused = 0;
    for scenario in scenarios {
        refused += row(scenario, cluster.as_ref());
    }
    if cluster.is_some() {
        let small = Load {
            clients: 16,
            turns: 20,
        };
        let system_calls = Setup::new(Duration::ZERO).count_system_calls(small);
        println!("\nsystem calls per turn (16 clients, SQLite, no latency): {system_calls}");
    }
    assert_eq!(refused, 0, "messages were refused");
}

/// Measures and prints one row. Returns how many messages were refused.
fn row(scenario: &Scenario, cluster: Option<&Cluster>) -> usize {
    let mut setup = Setup::new(scenario.latency);
    setup.max_running = scenario.max_running;
    setup.cores = scenario.cores;
    let cluster = cluster.filter(|_| scenario.is_postgres);
    let server = Server::start(&setup, cluster);
    let warm_up = Load {
        clients: 16,
        turns: 2,
    };
    server.load(warm_up, "warm");
    let cpu_times = || {
        (
            server.cpu_time(),
            cluster.map_or(Duration::ZERO, Cluster::cpu_time),
        )
    };
    let before = cpu_times();
    let result = server.load(scenario.load, "run");
    let after = cpu_times();
    let turns = (scenario.load.clients * scenario.load.turns) as f64;
    let each = |before: Duration, after: Duration| (after - before).as_secs_f64() * 1e3 / turns;
    println!(
        "{:<54}{:>8}{:>9.0}{:>8.1}{:>8.1}{:>8.2}{:>12.2}{:>8}",
        scenario.name,
        result.refused,
        result.per_second,
        result.p50,
        result.p99,
        each(before.0, after.0),
        each(before.1, after.1),
        server.peak_megabytes(),
    );
    result.refused
}
