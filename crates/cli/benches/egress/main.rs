//! Tries to reach addresses that the egress guard refuses, for real: in a network namespace of its own, next to a second one
//! that answers on every address there is, with a name server that changes its mind.
//!
//! `long` sends every hostile URL through every driver, `short` a part of them through the slow ones. Then each check of the
//! guard is switched off in turn, and the run fails unless that lets connections through: so it is shown that the battery
//! would notice. Pages attack in every way that a page has, and each way must arrive where nothing holds it. At last, servers
//! give too much. The exit code is 0 only if nothing got through with all checks on, something with each one off, and every
//! flood ended within its limits. `browser` or `rest` runs only what needs a browser, or what needs none.

#![allow(clippy::unwrap_used, reason = "in a bench, a panic is the report")]

mod cases;
mod drivers;
mod floods;
mod kinds;
mod limits;
mod names;
mod namespaces;
mod pages;
mod plain_browser;
mod report;
mod tools;
mod turn;
mod ways;
mod world;

use cases::Case;
use drivers::{Driver, InProcess, ProxiedCurl, Served};
use lango_net::Check;
use plain_browser::PlainBrowser;
use report::Report;
use std::process::ExitCode;
use std::time::Instant;
use tools::{CommandLine, Fetcher, Navigator, Program};
use turn::{InProcessTools, Turn};
use world::World;

/// Which stage of the set-up this process is; the first one has none.
pub const STAGE: &str = "LANGO_EGRESS_STAGE";

/// The parts of a run: what needs no browser, and what needs one.
pub const PARTS: [&str; 2] = ["rest", "browser"];

fn main() -> ExitCode {
    match std::env::var(STAGE).as_deref() {
        Err(_) => namespaces::enter(),
        Ok("world") => world::serve(),
        Ok(_) => run(),
    }
}

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Every URL through every driver.
    pub is_long: bool,
    /// The drivers with a browser.
    pub has_browser: bool,
    /// The drivers without one.
    pub has_rest: bool,
}

impl Extent {
    fn from_arguments() -> Self {
        let has = |word: &str| std::env::args().any(|argument| argument == word);
        Self {
            is_long: has("long"),
            has_browser: !has(PARTS[0]),
            has_rest: !has(PARTS[1]),
        }
    }
}

fn run() -> ExitCode {
    let started = Instant::now();
    let extent = Extent::from_arguments();
    let world = World::start();
    names::serve(world.log());
    let mut report = Report::default();
    let all = cases::all();
    let some = sample(&all, extent);
    println!(
        "{} URLs of {} kinds; the slow drivers open {} of {} kinds",
        all.len(),
        kinds::count(&all),
        some.len(),
        kinds::count(&some)
    );
    if extent.has_rest {
        run_guarded(&mut report, &all, &some, extent, &world);
        run_without_checks(&mut report, extent, &world);
    }
    if extent.has_browser {
        report.run(&mut Navigator::new(Turn::new()), &some, &world);
        run_guarded_pages(&mut report, extent, &world);
        run_browser_without_checks(&mut report, extent, &world);
        report.report_ways();
    }
    limits::run(&mut report, extent, &world);
    println!("{:.0} s in all", started.elapsed().as_secs_f32());
    report.finish()
}

/// All cases, or some of each kind.
fn sample(cases: &[Case], extent: Extent) -> Vec<Case> {
    if extent.is_long {
        cases.to_vec()
    } else {
        kinds::cover(cases)
    }
}

/// The drivers without a browser, with all checks on.
fn run_guarded(report: &mut Report, all: &[Case], some: &[Case], extent: Extent, world: &World) {
    report.run(&mut InProcess::new(&[]), all, world);
    for form in [drivers::Form::Plain, drivers::Form::Tunnel] {
        report.run(&mut ProxiedCurl::new(&[], form), some, world);
    }
    report.run(&mut Served::start(), some, world);
    report.run(&mut Fetcher(Turn::new()), some, world);
    let programs = [Program::Curl, Program::Urllib, Program::Tunnel];
    for program in programs
        .into_iter()
        .take(if extent.is_long { 3 } else { 2 })
    {
        report.run(&mut CommandLine::new(Turn::new(), program), some, world);
    }
    // Without the proxy there is nothing that a command may reach.
    let mut direct: Vec<Case> = some.iter().map(|case| Case::refused(&case.url)).collect();
    direct.push(cases::sockets());
    let mut driver = CommandLine::new(Turn::new(), Program::Direct);
    report.run(&mut driver, &direct, world);
    let listed = ["http://unlisted.public.example/"].map(Case::refused);
    report.run(&mut ProxiedCurl::listed(&[]), &listed, world);
}

/// Pages that attack from inside, with all checks on.
fn run_guarded_pages(report: &mut Report, extent: Extent, world: &World) {
    let mut attacks = vec![cases::secure_page()];
    if extent.is_long {
        attacks.push(cases::workspace_page());
        attacks.extend(cases::attack_pages(false));
        attacks.extend(cases::attack_pages(true));
    }
    // The secure page alone is allowed; what it attacks is not.
    let caller =
        Turn::with_settings("[egress]\nmaxRequests = 10000000\nallow = [\"localhost:80\"]");
    let mut driver = Navigator::new(caller).for_pages();
    report.run(&mut driver, &attacks, world);
}

/// What gets through without each check.
fn run_without_checks(report: &mut Report, extent: Extent, world: &World) {
    let cases_of = |check| sample(&cases::for_check(check), extent);
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
        let mut driver = Fetcher(InProcessTools::new(&[check]));
        run(check, &mut driver, &cases_of(check));
    }
    for check in CHECKS_OF_PROXIES {
        let mut driver = ProxiedCurl::new(&[check], drivers::Form::Tunnel);
        run(check, &mut driver, &cases_of(check));
        let mut driver = CommandLine::new(InProcessTools::new(&[check]), Program::Curl);
        run(check, &mut driver, &cases_of(check));
    }
    let listed = ["http://unlisted.public.example/"].map(Case::refused);
    let mut driver = ProxiedCurl::listed(&[Check::OnlyHosts]);
    run(Check::OnlyHosts, &mut driver, &listed);
}

/// The checks that a proxy depends on; redirects are followed by its clients.
const CHECKS_OF_PROXIES: [Check; 6] = [
    Check::Literals,
    Check::ResolvedAddresses,
    Check::SingleLookup,
    Check::LocalNames,
    Check::Ports,
    Check::OwnAddresses,
];

/// What gets through the browser without each check, and from pages without the guard and without the sandbox.
fn run_browser_without_checks(report: &mut Report, extent: Extent, world: &World) {
    let checks = [Check::Literals, Check::LocalNames, Check::ResolvedAddresses];
    let mut pages = vec![cases::secure_page()];
    if extent.is_long {
        for check in CHECKS_OF_PROXIES {
            let cases = kinds::cover(&cases::for_check(check));
            let mut driver = Navigator::new(InProcessTools::new(&[check]));
            report.run_without(&format!("{check:?}"), &mut driver, &cases, world);
        }
        pages.push(cases::attack_page(false));
        pages.push(cases::attack_page(true));
    }
    let mut driver = Navigator::new(InProcessTools::new(&checks)).for_pages();
    report.run_without_guard(&mut driver, &pages, world);
    // Datagrams and lookups are not held by the guard, but by the network of the sandbox.
    let pages = [cases::secure_page()];
    report.run_without_sandbox(&mut PlainBrowser, &pages, world);
}
