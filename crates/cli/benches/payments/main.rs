//! Payments on a chain of this machine: `scripts/payments`, or `cargo bench -p lango-cli --bench payments -- short`.
//!
//! Scenarios of what goes wrong, one at a time; requests that hosts demand to be paid for; racing payments of three replicas over
//! one PostgreSQL with `kill -9` at random moments, judged by the chain's own events; and payments through the real binary.
//! Ends with 1 unless no limit was exceeded by one unit, nothing was paid twice, and nothing is unknown at the end.

#![allow(clippy::unwrap_used, reason = "in a harness, a panic is the report")]

mod binary;
mod chain;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the other harnesses use the rest")]
mod common;
mod node;
mod race;
mod replica;
mod requests;
mod scenarios;
mod wallet;

use chain::Chain;
use common::random::Random;
use lango_testkit::postgres;
use race::Race;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, world] = arguments.as_slice()
        && mode == "replica"
    {
        replica::work(world);
        return ExitCode::SUCCESS;
    }
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let (payments, kills, through_binary) = match has("long") {
        true => (10_000, 60, 300),
        false => (400, 6, 6),
    };
    let only = ["scenarios", "requests", "race", "planted", "binary"];
    let only = only.into_iter().find(|part| has(part));
    let is_run = |part: &str| only.is_none_or(|only| only == part);
    let seed = Random::seed();
    let mut random = Random::new(seed);
    println!("payments; seed {seed}");
    let chain = Chain::start(&mut random);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut wrong = Vec::new();
    if is_run("scenarios") {
        let started = Instant::now();
        let count = runtime.block_on(scenarios::run(&chain));
        println!(
            "{count} scenarios hold ({:.1} s)",
            started.elapsed().as_secs_f64()
        );
    }
    if is_run("requests") {
        let started = Instant::now();
        let host = chain::paid_host(&chain, &mut random);
        let count = runtime.block_on(requests::run(&chain, &host));
        println!(
            "{count} kinds of paid requests hold ({:.1} s)",
            started.elapsed().as_secs_f64()
        );
    }
    if is_run("race") {
        println!("{payments} racing payments of three replicas");
        let race = Race {
            payments,
            kills,
            plant: None,
            wallet: 100,
        };
        wrong.extend(race::run(&race, &chain, postgres::empty(), &mut random));
    }
    if is_run("planted") {
        for (plant, wallet) in [("limits", 102), ("keys", 103)] {
            println!("the same without the guard `{plant}`, which has to be noticed");
            let race = Race {
                payments: 160,
                kills: 3,
                plant: Some(plant),
                wallet,
            };
            let noticed = race::run(&race, &chain, postgres::empty(), &mut random);
            println!("  noticed: {noticed:?}");
            if noticed.is_empty() {
                wrong.push(format!("a race without the guard `{plant}` looks good"));
            }
        }
    }
    if is_run("binary") {
        println!("{through_binary} payments through the binary");
        wrong.extend(binary::run(through_binary, &chain, &mut random));
    }
    for one in wrong.iter().take(20) {
        println!("WRONG: {one}");
    }
    if wrong.is_empty() {
        println!("all good");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
