//! Runs many turns through one server and checks that memory, file descriptors and latency do not grow.

use super::client::Load;
use super::server::{Server, Setup};
use std::time::Duration;

const ROUND: Load = Load {
    clients: 16,
    turns: 10,
};

/// Maximum ratio of the last quarter to the third. Earlier quarters are ignored because caches are still filling.
const MAX_GROWTH: f64 = 1.15;

/// Measurements after one round.
struct Sample {
    megabytes: f64,
    descriptors: f64,
    p50: f64,
}

/// Runs this many turns and prints a line for each twentieth of them.
pub(crate) fn run(turns: usize) {
    let server = Server::start(&Setup::new(Duration::ZERO), None);
    let round_turns = ROUND.clients * ROUND.turns;
    let rounds = turns.div_ceil(round_turns).max(4);
    println!(
        "{:>8}{:>12}{:>14}{:>9}{:>9}",
        "turns", "memory, MB", "descriptors", "p50", "p99"
    );
    let mut samples = Vec::new();
    for round in 1..=rounds {
        let result = server.load(ROUND, &format!("soak-{round}"));
        assert_eq!(result.refused, 0);
        let (kilobytes, descriptors) = server.resources();
        let megabytes = kilobytes as f64 / 1024.0;
        let (p50, p99) = (result.p50, result.p99);
        if round == 1 || round % (rounds / 20).max(1) == 0 {
            let done = round * round_turns;
            println!("{done:>8}{megabytes:>12.1}{descriptors:>14}{p50:>9.1}{p99:>9.1}");
        }
        samples.push(Sample {
            megabytes,
            descriptors: descriptors as f64,
            p50,
        });
    }
    check("memory", &samples, |sample| sample.megabytes);
    check("descriptors", &samples, |sample| sample.descriptors);
    check("p50", &samples, |sample| sample.p50);
}

/// Compares the last quarter with the third.
fn check(name: &str, samples: &[Sample], value: fn(&Sample) -> f64) {
    let quarter = samples.len() / 4;
    let mean = |samples: &[Sample]| samples.iter().map(value).sum::<f64>() / samples.len() as f64;
    let early = mean(&samples[2 * quarter..3 * quarter]);
    let late = mean(&samples[samples.len() - quarter..]);
    println!("{name}: {early:.1} in the third quarter, {late:.1} in the last one");
    assert!(late < early * MAX_GROWTH, "{name} grows");
}
