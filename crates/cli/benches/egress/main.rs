//! Tries to reach addresses that the egress guard refuses, for real: in a network namespace of its own, next to a second one
//! that answers on every address there is, with a name server that changes its mind.
//!
//! `long` sends every hostile URL through every driver, `short` a part of them through the slow ones. Then each check of the
//! guard is switched off in turn, and the run fails unless that lets connections through: so it is shown that the battery
//! would notice. The exit code is 0 only if nothing got through with all checks on and something with each one off.

#![allow(clippy::unwrap_used, reason = "in a bench, a panic is the report")]

mod cases;
mod drivers;
mod names;
mod namespaces;
mod report;
mod world;

use cases::Case;
use drivers::{InProcess, ProxiedCurl, Served};
use lango_net::Check;
use report::Report;
use std::process::ExitCode;
use world::World;

/// Which stage of the set-up this process is; the first one has none.
pub const STAGE: &str = "LANGO_EGRESS_STAGE";

fn main() -> ExitCode {
    match std::env::var(STAGE).as_deref() {
        Err(_) => namespaces::enter(),
        Ok("world") => world::serve(),
        Ok(_) => run(),
    }
}

fn run() -> ExitCode {
    let is_long = std::env::args().any(|argument| argument == "long");
    let world = World::start();
    names::serve();
    let mut report = Report::default();
    let all = cases::all();
    // What must be reached is always among them.
    let is_chosen =
        |at: usize, case: &Case| is_long || at.is_multiple_of(7) || case.must_be_fetched();
    let some = all.iter().enumerate();
    let some = some.filter(|(at, case)| is_chosen(*at, case));
    let some: Vec<Case> = some.map(|(_, case)| case.clone()).collect();
    report.run(&mut InProcess::new(&[]), &all, &world);
    report.run(
        &mut ProxiedCurl::new(&[], drivers::Form::Plain),
        &some,
        &world,
    );
    report.run(
        &mut ProxiedCurl::new(&[], drivers::Form::Tunnel),
        &some,
        &world,
    );
    report.run(&mut Served::start(), &some, &world);
    for check in [
        Check::Literals,
        Check::ResolvedAddresses,
        Check::SingleLookup,
        Check::Redirects,
        Check::LocalNames,
        Check::Ports,
        Check::OwnAddresses,
    ] {
        report.run_without(
            check,
            &mut InProcess::new(&[check]),
            &cases::for_check(check),
            &world,
        );
    }
    for check in [
        Check::Literals,
        Check::ResolvedAddresses,
        Check::SingleLookup,
        Check::Ports,
    ] {
        let mut driver = ProxiedCurl::new(&[check], drivers::Form::Tunnel);
        report.run_without(check, &mut driver, &cases::for_check(check), &world);
    }
    let listed = ["http://unlisted.public.example/"].map(Case::refused);
    report.run(&mut ProxiedCurl::listed(&[]), &listed, &world);
    report.run_without(
        Check::OnlyHosts,
        &mut ProxiedCurl::listed(&[Check::OnlyHosts]),
        &listed,
        &world,
    );
    report.finish()
}
