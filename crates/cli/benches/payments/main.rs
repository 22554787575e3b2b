//! Makes payments on a local chain: `scripts/payments`, or `cargo bench -p lango-cli --bench payments -- short`.
//!
//! It has four parts: scenarios with one fault each; paid requests; concurrent payments of three replicas over one
//! PostgreSQL with SIGKILL at random moments, checked against the chain's events; and payments through the real binary.
//! Exits with 1 if a limit was exceeded, something was paid twice, or a payment has an unknown outcome at the end.

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
    if let [mode, config] = arguments.as_slice()
        && mode == "replica"
    {
        replica::work(config);
        return ExitCode::SUCCESS;
    }
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let (payments, kills, through_binary) = if has("long") {
        (10_000, 60, 300)
    } else {
        (400, 6, 6)
    };
    let only = ["scenarios", "requests", "race", "planted", "binary"];
    let only = only.into_iter().find(|part| has(part));
    let is_run = |part: &str| only.is_none_or(|only| only == part);
    let seed = Random::seed();
    let mut random = Random::new(seed);
    println!("payments; seed {seed}");
    let chain = Chain::start(&mut random);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut violations = Vec::new();
    if is_run("scenarios") {
        let started = Instant::now();
        let count = runtime.block_on(scenarios::run(&chain));
        println!(
            "{count} scenarios passed ({:.1} s)",
            started.elapsed().as_secs_f64()
        );
    }
    if is_run("requests") {
        let started = Instant::now();
        let host = chain::paid_host(&chain, &mut random);
        let count = runtime.block_on(requests::run(&chain, &host));
        println!(
            "{count} kinds of paid requests passed ({:.1} s)",
            started.elapsed().as_secs_f64()
        );
    }
    if is_run("race") {
        println!("{payments} concurrent payments of three replicas");
        let race = Race {
            payments,
            kills,
            removed_guard: None,
            wallet: 100,
        };
        violations.extend(race::run(
            &race,
            &chain,
            postgres::fresh_schema(),
            &mut random,
        ));
    }
    if is_run("planted") {
        for (guard, wallet) in [("limits", 102), ("keys", 103)] {
            println!("the same without the guard `{guard}`, which must be detected");
            let race = Race {
                payments: 160,
                kills: 3,
                removed_guard: Some(guard),
                wallet,
            };
            let detected = race::run(&race, &chain, postgres::fresh_schema(), &mut random);
            println!("  detected: {detected:?}");
            if detected.is_empty() {
                violations.push(format!("the missing guard `{guard}` was not detected"));
            }
        }
    }
    if is_run("binary") {
        println!("{through_binary} payments through the binary");
        violations.extend(binary::run(through_binary, &chain, &mut random));
    }
    for violation in violations.iter().take(20) {
        println!("FAILED: {violation}");
    }
    if violations.is_empty() {
        println!("success");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
