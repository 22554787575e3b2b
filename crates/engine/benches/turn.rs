//! Wall time of a turn: `cargo bench -p lango-engine --bench turn`.

#[allow(dead_code, reason = "the other measurements use the rest")]
mod common;

use common::{Bench, BenchStore};
use divan::Bencher;

fn main() {
    divan::main();
}

#[divan::bench(args = [10, 1_000, 100_000])]
fn hello_in_memory(bencher: Bencher, history: usize) {
    run(bencher, BenchStore::Memory, history, "hello");
}

#[divan::bench(args = [10, 1_000, 100_000])]
fn one_tool_in_memory(bencher: Bencher, history: usize) {
    run(bencher, BenchStore::Memory, history, "what does a.txt say?");
}

#[divan::bench(args = [10, 1_000, 100_000], sample_count = 50)]
fn hello_on_sqlite(bencher: Bencher, history: usize) {
    run(bencher, BenchStore::Sqlite, history, "hello");
}

#[divan::bench(args = [10, 1_000, 100_000], sample_count = 50)]
fn one_tool_on_sqlite(bencher: Bencher, history: usize) {
    run(bencher, BenchStore::Sqlite, history, "what does a.txt say?");
}

fn run(bencher: Bencher, place: BenchStore<'_>, history: usize, question: &str) {
    let mut bench = Bench::with_history(place, history);
    bencher.bench_local(|| bench.turn(question));
}
