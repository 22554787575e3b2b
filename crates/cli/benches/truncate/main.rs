//! Simulates power failures that truncate the write-ahead log: `cargo bench -p lango-cli --bench truncate -- 2000`.
//!
//! Real turns run in a real database whose write-ahead log is never checkpointed. Snapshots of the files are taken
//! meanwhile. The log of a snapshot is cut at frame boundaries and at random bytes, and the database is opened. Each
//! session must contain whole batches from its first one on, including every batch that was acknowledged within the
//! part that was kept, and turns must be able to continue. Exits with 1 otherwise.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

mod check;
mod cuts;
#[path = "../common/random.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod random;
mod recording;

use check::{CheckResult, check};
use cuts::cuts;
use random::Random;
use recording::{Recording, record};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.find_map(|argument| argument.parse().ok());
    let count: usize = count.unwrap_or(200);
    let seed = Random::seed();
    let started = Instant::now();
    println!("truncate: {count} cuts, seed {seed}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut random = Random::new(seed);
    let recording = runtime.block_on(record(&mut random));
    println!(
        "written           {} batches in {} sessions, {} snapshots, the last write-ahead log has {} bytes",
        recording.batches.len(),
        recording.sessions().len(),
        recording.snapshots.len(),
        recording.snapshots.last().unwrap().wal.len()
    );
    let cuts = cuts(&recording.snapshots, count, &mut random);
    let at_boundaries = cuts.iter().filter(|cut| cut.is_boundary).count();
    let mut result = CheckResult::default();
    for cut in &cuts {
        runtime.block_on(check(&recording, cut, &mut random, &mut result));
    }
    println!(
        "cuts              {} ({at_boundaries} at frame boundaries) in {} s",
        cuts.len(),
        started.elapsed().as_secs()
    );
    println!("sessions opened   {}", result.sessions);
    println!("events read       {}", result.events);
    println!("turns resumed     {}", result.resumed);
    println!("turns added       {}", result.added);
    println!("violations        {}", result.violations.len());
    for violation in result.violations.iter().take(10) {
        println!("    {violation}");
    }
    let undetected = undetected_faults(&recording, &runtime);
    println!("undetected faults {} {undetected:?}", undetected.len());
    if result.violations.is_empty() && undetected.is_empty() && result.resumed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Tests the check itself: plants faults in copies of the recording and returns those that the check does not detect.
fn undetected_faults(
    recording: &Recording,
    runtime: &tokio::runtime::Runtime,
) -> Vec<&'static str> {
    let whole = cuts::whole(&recording.snapshots);
    let is_undetected = |plant: &dyn Fn(&mut Recording)| {
        let mut planted = recording.clone();
        plant(&mut planted);
        let mut result = CheckResult::default();
        runtime.block_on(check(&planted, &whole, &mut Random::new(1), &mut result));
        result.violations.is_empty()
    };
    type Plant = fn(&mut Recording);
    let faults: [(&str, Plant); 3] = [
        ("an acknowledged batch is missing", |recording| {
            let last = recording.batches.last().unwrap().clone();
            recording.batches.push(last);
            recording.snapshots.last_mut().unwrap().acknowledged += 1;
        }),
        ("an event has another author", |recording| {
            let first = &mut recording.batches[0];
            let mut events = first.events.to_vec();
            events[0].author = "somebody-else".into();
            first.events = events.into();
        }),
        ("a batch is incomplete", |recording| {
            let last = recording.batches.last_mut().unwrap();
            let mut events = last.events.to_vec();
            let mut more = events[0].clone();
            more.seq += events.len() as u64;
            events.push(more);
            last.events = events.into();
        }),
    ];
    let undetected = faults.iter().filter(|(_, plant)| is_undetected(plant));
    undetected.map(|(name, _)| *name).collect()
}
