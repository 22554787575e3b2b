//! A soak test of the browser with the real binary: `cargo bench -p lango-cli --bench browser -- long`.
//!
//! A scripted model makes `lango serve` open page after page, with pop-ups, downloads, dialogs and images, while the
//! memory of lango and of the browser is printed. Then four sessions browse concurrently, and lango, turns and browsers
//! are ended in every possible way. Exits with 1 if lango's memory or open files grow, a session sees another's tabs,
//! or a process is left over.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod endings;
mod lango;
mod memory;
mod processes;
mod script;
mod sessions;
mod site;

use lango::Harness;
use memory::MemoryPlan;
use std::process::ExitCode;

/// Between the two measurements that are compared, every kind of page is opened equally often.
const LONG: MemoryPlan = MemoryPlan {
    pages: 244,
    warm_up: 40,
    growth_kib: 8 << 10,
};
const SHORT: MemoryPlan = MemoryPlan {
    pages: 20,
    warm_up: 8,
    growth_kib: 8 << 10,
};

fn main() -> ExitCode {
    let is_long = std::env::args().any(|argument| argument == "long");
    let harness = Harness::start();
    let (plan, rounds) = if is_long { (LONG, 10) } else { (SHORT, 2) };
    let mut problems = memory::run(&harness, &plan);
    problems.extend(sessions::run(&harness, rounds));
    problems.extend(endings::run(&harness, is_long));
    for problem in &problems {
        let problem: String = problem.chars().take(600).collect();
        println!("FAILED: {problem}");
    }
    println!("{} problems", problems.len());
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
