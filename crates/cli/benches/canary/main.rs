//! Canary secrets through real use: `cargo bench -p lango-cli --bench canary -- long`.
//!
//! Secrets are stored in the vault and used by git over https (Basic), curl (Bearer), a program of an MCP server, MCP servers
//! over HTTP, remote agents and model providers. Every server echoes what it was sent, in every encoding. Then the values are
//! looked for in the database, logs, events, exports, model requests, answers, the workspace, and, while commands ran, in the
//! memory and environment of every sandboxed process. Ends with 1 if a value is found, or if one was never used.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod plan;
mod script;
mod servers;
mod watch;
mod world;

use plan::{Plan, Use};
use std::process::ExitCode;
use std::time::Instant;
use world::World;

/// Number of problems to print.
const MOST_SHOWN: usize = 30;

fn main() -> ExitCode {
    let is_long = std::env::args().any(|argument| argument == "long");
    let plan = if is_long { Plan::long() } else { Plan::short() };
    let started = Instant::now();
    let world = World::start(&plan);
    println!(
        "{} canaries stored and bound after {:.1} s",
        plan.uses.len(),
        started.elapsed().as_secs_f32()
    );
    let mut problems = world.use_all(&plan);
    for kind in Use::KINDS {
        let count = plan.uses.iter().filter(|one| one.kind() == kind).count();
        println!("{count:>4} used by {kind}");
    }
    problems.extend(world.unused(&plan));
    problems.extend(world.look_everywhere(&plan));
    for problem in problems.iter().take(MOST_SHOWN) {
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
