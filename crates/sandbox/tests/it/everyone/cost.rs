//! Measures the overhead of the sandbox. Printed, not asserted: it depends on the machine and its load.

use crate::fixture::Fixture;
use std::time::{Duration, Instant};

const RUNS: usize = 30;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test]
async fn the_cost_of_a_command_is_printed() {
    let fixture = Fixture::new();
    let (mut bare, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let started = Instant::now();
        tokio::process::Command::new("true").status().await.unwrap();
        bare.push(started.elapsed());
        let started = Instant::now();
        fixture.run(fixture.command(&["true"])).await;
        inside.push(started.elapsed());
    }
    let (bare, inside) = (median(bare), median(inside));
    println!("`true`: {bare:?} bare, {inside:?} in the sandbox, median of {RUNS}");
}
