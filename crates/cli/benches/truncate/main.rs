//! What a power failure may leave of the write-ahead log: `cargo bench -p lango-cli --bench truncate -- 2000`.
//!
//! Real turns run in a real database that never moves its write-ahead log into the file. Copies are taken while they run,
//! the log is cut at every boundary of a frame and at random bytes, and what is left is opened: each session must be
//! a clean beginning of what was written, with everything in it that was acknowledged within the part that was kept; and
//! a turn must be able to go on in it. Ends with 1 unless all of that holds.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

mod check;
mod cuts;
#[path = "../common/random.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod random;
mod world;

use check::{Found, check};
use cuts::cuts;
use random::Random;
use std::process::ExitCode;
use std::time::Instant;
use world::{Truth, make};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.find_map(|argument| argument.parse().ok());
    let count: usize = count.unwrap_or(200);
    let seed = Random::seed();
    let began = Instant::now();
    println!("truncate: {count} cuts, seed {seed}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut random = Random::new(seed);
    let truth = runtime.block_on(make(&mut random));
    println!(
        "written           {} batches in {} sessions, {} copies, the last write-ahead log has {} bytes",
        truth.batches.len(),
        truth.sessions().len(),
        truth.copies.len(),
        truth.copies.last().unwrap().wal.len()
    );
    let cuts = cuts(&truth.copies, count, &mut random);
    let at_boundaries = cuts.iter().filter(|cut| cut.is_boundary).count();
    let mut found = Found::default();
    for cut in &cuts {
        runtime.block_on(check(&truth, cut, &mut random, &mut found));
    }
    println!(
        "cuts              {} ({at_boundaries} at boundaries of frames) in {} s",
        cuts.len(),
        began.elapsed().as_secs()
    );
    println!("sessions opened   {}", found.sessions);
    println!("events seen       {}", found.events);
    println!(
        "turns gone on     {} ({} were cut off)",
        found.gone_on, found.cut_off
    );
    println!("wrong             {}", found.wrong.len());
    for what in found.wrong.iter().take(10) {
        println!("    {what}");
    }
    let unseen = unseen(&truth, &runtime);
    println!("planted, unseen   {} {unseen:?}", unseen.len());
    match found.wrong.is_empty() && unseen.is_empty() && found.cut_off > 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The check is tried itself: with a truth that is not what was written, it has to find something.
fn unseen(truth: &Truth, runtime: &tokio::runtime::Runtime) -> Vec<&'static str> {
    let whole = cuts::whole(&truth.copies);
    let is_unseen = |plant: &dyn Fn(&mut Truth)| {
        let mut planted = truth.clone();
        plant(&mut planted);
        let mut found = Found::default();
        runtime.block_on(check(&planted, &whole, &mut Random::new(1), &mut found));
        found.wrong.is_empty()
    };
    type Plant = fn(&mut Truth);
    let plants: [(&str, Plant); 3] = [
        ("an acknowledged batch is missing", |truth| {
            let last = truth.batches.last().unwrap().clone();
            truth.batches.push(last);
            truth.copies.last_mut().unwrap().acknowledged += 1;
        }),
        ("an event is another", |truth| {
            let first = &mut truth.batches[0];
            let mut events = first.events.to_vec();
            events[0].author = "somebody-else".into();
            first.events = events.into();
        }),
        ("half a batch is there", |truth| {
            let last = truth.batches.last_mut().unwrap();
            let mut events = last.events.to_vec();
            let mut more = events[0].clone();
            more.seq += events.len() as u64;
            events.push(more);
            last.events = events.into();
        }),
    ];
    let unseen = plants.iter().filter(|(_, plant)| is_unseen(plant));
    unseen.map(|(name, _)| *name).collect()
}
