//! CPU time of a turn over all threads, and how it grows with the history: `cargo bench -p lango-engine --bench cpu`.
//! On a busy machine wall time says little; CPU time is what the process really used.
//!
//! `-- short` runs a tenth of the turns. `-- turns PLACE QUESTION COUNT` only runs turns, for counting under callgrind.

#[allow(dead_code, reason = "the other measurements use the rest")]
mod common;

use common::{Bench, BenchStore};
use rustix::time::{ClockId, clock_gettime};

const ONE_TOOL: &str = "what does a.txt say?";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [mode, place, question, count] if mode == "turns" => {
            let place = if place == "memory" {
                BenchStore::Memory
            } else {
                BenchStore::Sqlite
            };
            let question = if question == "hello" {
                "hello"
            } else {
                ONE_TOOL
            };
            run_turns(place, question, count.parse().unwrap_or(100));
        }
        arguments => {
            let is_short = arguments.iter().any(|argument| argument == "short");
            table(if is_short { 10 } else { 1 });
        }
    }
}

fn run_turns(place: BenchStore<'_>, question: &str, count: usize) {
    let mut bench = Bench::with_history(place, 300);
    (0..count).for_each(|_| bench.turn(question));
}

fn table(shorter: usize) {
    println!("CPU µs per turn (all threads), by events of history\n");
    println!(
        "{:<22}{:>10}{:>10}{:>10}{:>14}",
        "turn", "10", "1,000", "100,000", "most/least"
    );
    for (place, name) in [
        (BenchStore::Memory, "in memory"),
        (BenchStore::Sqlite, "on SQLite"),
    ] {
        let turns = if place == BenchStore::Memory {
            4000
        } else {
            400
        };
        for (question, kind) in [("hello", "hello"), (ONE_TOOL, "one tool")] {
            let mut benches =
                [10, 1_000, 100_000].map(|history| Bench::with_history(place, history));
            let measured = measure(&mut benches, question, turns / shorter);
            let most = measured.iter().copied().fold(0.0, f64::max);
            let least = measured.iter().copied().fold(f64::MAX, f64::min);
            println!(
                "{:<22}{:>10.1}{:>10.1}{:>10.1}{:>14.2}",
                format!("{kind}, {name}"),
                measured[0],
                measured[1],
                measured[2],
                most / least
            );
        }
    }
}

/// Measures the three histories alternately, so that other load on the machine affects all of them, and returns the
/// best of five passes.
fn measure(benches: &mut [Bench; 3], question: &str, turns: usize) -> [f64; 3] {
    let mut best = [f64::MAX; 3];
    for bench in benches.iter_mut() {
        (0..60).for_each(|_| bench.turn(question));
    }
    for _ in 0..5 {
        for (bench, best) in benches.iter_mut().zip(&mut best) {
            let before = cpu_micros();
            (0..turns).for_each(|_| bench.turn(question));
            *best = best.min((cpu_micros() - before) / turns as f64);
        }
    }
    best
}

fn cpu_micros() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
