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
mod pages;
mod plain_browser;
mod report;
mod tools;
mod turn;
mod world;

use cases::Case;
use drivers::{Driver, InProcess, ProxiedCurl, Served};
use lango_net::Check;
use plain_browser::PlainBrowser;
use report::Report;
use std::process::ExitCode;
use tools::{CommandLine, Fetcher, Navigator, Program};
use turn::{InProcessTools, Turn};
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
    names::serve(world.log());
    let mut report = Report::default();
    run_guarded(&mut report, is_long, &world);
    run_without_checks(&mut report, is_long, &world);
    report.finish()
}

/// Every so many cases, or all of them; what must be reached is always among them.
fn sample(cases: &[Case], every: usize, is_long: bool) -> Vec<Case> {
    let is_chosen =
        |at: usize, case: &Case| is_long || at.is_multiple_of(every) || case.must_be_fetched();
    let chosen = cases.iter().enumerate();
    let chosen = chosen.filter(|(at, case)| is_chosen(*at, case));
    chosen.map(|(_, case)| case.clone()).collect()
}

/// All drivers, with all checks on.
fn run_guarded(report: &mut Report, is_long: bool, world: &World) {
    let all = cases::all();
    let some = sample(&all, 20, is_long);
    report.run(&mut InProcess::new(&[]), &all, world);
    for form in [drivers::Form::Plain, drivers::Form::Tunnel] {
        report.run(&mut ProxiedCurl::new(&[], form), &some, world);
    }
    report.run(&mut Served::start(), &some, world);
    report.run(&mut Fetcher(Turn::new()), &sample(&all, 25, is_long), world);
    let programs = [Program::Curl, Program::Urllib, Program::Tunnel];
    for program in programs.into_iter().take(if is_long { 3 } else { 2 }) {
        report.run(&mut CommandLine::new(Turn::new(), program), &some, world);
    }
    // Without the proxy there is nothing that a command may reach.
    let mut direct: Vec<Case> = some.iter().map(|case| Case::refused(&case.url)).collect();
    direct.push(cases::sockets());
    let mut driver = CommandLine::new(Turn::new(), Program::Direct);
    report.run(&mut driver, &direct, world);
    let listed = ["http://unlisted.public.example/"].map(Case::refused);
    report.run(&mut ProxiedCurl::listed(&[]), &listed, world);
    let some = sample(&all, 150, is_long);
    report.run(&mut Navigator::new(Turn::new()), &some, world);
    let mut attacks = cases::attack_pages(false, is_long);
    if is_long {
        attacks.extend(cases::attack_pages(true, is_long));
    }
    attacks.push(cases::workspace_page());
    let mut driver = Navigator::new(Turn::new()).for_pages();
    report.run(&mut driver, &attacks, world);
}

/// What gets through without each check.
fn run_without_checks(report: &mut Report, is_long: bool, world: &World) {
    let cases_of = |check| sample(&cases::for_check(check), 20, is_long);
    let mut run = |check: Check, driver: &mut dyn Driver, cases: &[Case]| {
        report.run_without(&format!("{check:?}"), driver, cases, world);
    };
    for check in [
        Check::Literals,
        Check::ResolvedAddresses,
        Check::SingleLookup,
        Check::Redirects,
        Check::LocalNames,
        Check::Ports,
        Check::OwnAddresses,
    ] {
        run(check, &mut InProcess::new(&[check]), &cases_of(check));
    }
    for check in [
        Check::Literals,
        Check::ResolvedAddresses,
        Check::SingleLookup,
        Check::Ports,
    ] {
        let mut driver = ProxiedCurl::new(&[check], drivers::Form::Tunnel);
        run(check, &mut driver, &cases_of(check));
        let mut driver = CommandLine::new(InProcessTools::new(&[check]), Program::Curl);
        run(check, &mut driver, &cases_of(check));
    }
    let browsers = [(Check::Literals, false), (Check::ResolvedAddresses, true)];
    for (check, by_name) in &browsers[..if is_long { 2 } else { 1 }] {
        let (check, by_name) = (*check, *by_name);
        let mut driver = Navigator::new(InProcessTools::new(&[check])).for_pages();
        run(check, &mut driver, &cases::attack_pages(by_name, false));
    }
    let listed = ["http://unlisted.public.example/"].map(Case::refused);
    let mut driver = ProxiedCurl::listed(&[Check::OnlyHosts]);
    run(Check::OnlyHosts, &mut driver, &listed);
    // Datagrams and lookups are not held by the guard, but by the network of the sandbox.
    let pages = cases::attack_pages(false, false);
    report.run_without_sandbox(&mut PlainBrowser, &pages, world);
}
