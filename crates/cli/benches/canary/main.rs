//! Uses canary secrets in all ways that lango supports, and searches for leaks: `cargo bench -p lango-cli --bench
//! canary -- long`.
//!
//! The canaries are stored in the vault and used by git over HTTPS (Basic), curl (Bearer), the program of an MCP
//! server, MCP servers over HTTP, remote agents and model providers. Every server echoes the secret in every encoding.
//! The harness then searches for the values in the database, logs, events, exports, model requests, answers and the
//! workspace, and while commands run, in the memory and environment of every sandboxed process. Exits with 1 if a value
//! is found or was never used.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod harness;
mod plan;
mod process_scan;
mod script;
mod servers;

use harness::Harness;
use plan::{Plan, Use};
use std::process::ExitCode;
use std::time::Instant;

/// Maximum number of problems to print.
const MAX_SHOWN: usize = 30;

fn main() -> ExitCode {
    let is_long = std::env::args().any(|argument| argument == "long");
    let plan = if is_long { Plan::long() } else { Plan::short() };
    let started = Instant::now();
    let harness = Harness::start(&plan);
    println!(
        "{} canaries stored and bound after {:.1} s",
        plan.uses.len(),
        started.elapsed().as_secs_f32()
    );
    let mut problems = harness.use_all(&plan);
    for kind in Use::KINDS {
        let uses = plan.uses.iter();
        let count = uses.filter(|secret_use| secret_use.kind() == kind).count();
        println!("{count:>4} used by {kind}");
    }
    problems.extend(harness.unused(&plan));
    problems.extend(harness.scan_everything(&plan));
    for problem in problems.iter().take(MAX_SHOWN) {
        println!("FAILED: {problem}");
    }
    println!(
        "{} problems after {:.0} s",
        problems.len(),
        started.elapsed().as_secs_f32()
    );
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
