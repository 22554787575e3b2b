//! The browser over a long time, through the binary: `cargo bench -p lango-cli --bench browser -- long`.
//!
//! A scripted model lets `lango serve` open page after page, with pop-ups, downloads, dialogs and pictures, while the memory
//! of lango and of the browser is printed. Then four sessions browse at once, and lango, turns and browsers end in every way
//! there is. Ends with 1 if lango's memory or open files grow, a session sees another's tabs, or a process is left.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

mod census;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod endings;
mod lango;
mod memory;
mod script;
mod sessions;
mod site;

use lango::World;
use memory::MemoryPlan;
use std::process::ExitCode;

/// Between the two times that are compared lies a whole number of rounds through the kinds of pages.
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
    let world = World::start();
    let (plan, rounds) = if is_long { (LONG, 10) } else { (SHORT, 2) };
    let mut problems = memory::run(&world, &plan);
    problems.extend(sessions::run(&world, rounds));
    problems.extend(endings::run(&world, is_long));
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
