//! Attacks the egress guard over a real network: in a network namespace, connected to a second one that answers on
//! every address, with a name server whose answers change.
//!
//! `long` opens every hostile URL with every driver, `short` a subset with the slow drivers. Then each check of the
//! guard is switched off in turn, and the run fails unless that lets connections through: this shows that the battery
//! detects a missing check. Pages attack by every vector that a page has, and each vector must arrive when nothing
//! blocks it. Finally, servers send floods. The exit code is 0 only if nothing got through with all checks, something
//! got through without each check, and every flood ended within its limits. `browser` runs only the parts that need a
//! browser, `rest` the others.

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
mod test_network;
mod tools;
mod turn;
mod vectors;

use cases::Case;
use drivers::{Driver, InProcess, ProxiedCurl, ServeDriver};
use lango_net::Check;
use plain_browser::PlainBrowser;
use report::Report;
use std::process::ExitCode;
use std::time::Instant;
use test_network::TestNetwork;
use tools::{CommandLine, Fetcher, Navigator, Program};
use turn::{InProcessTools, ScriptedTurn};

/// Environment variable with the set-up stage of this process. It is not set in the first stage.
pub const STAGE: &str = "LANGO_EGRESS_STAGE";

/// The parts of a run: without a browser, and with one.
pub const PARTS: [&str; 2] = ["rest", "browser"];

fn main() -> ExitCode {
    match std::env::var(STAGE).as_deref() {
        Err(_) => namespaces::enter(),
        Ok("network") => test_network::serve(),
        Ok(_) => run(),
    }
}

/// The size and the parts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Opens every URL with every driver.
    pub is_long: bool,
    /// Runs the drivers with a browser.
    pub has_browser: bool,
    /// Runs the drivers without a browser.
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
    let network = TestNetwork::start();
    names::serve(network.log());
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
        run_guarded(&mut report, &all, &some, extent, &network);
        run_without_checks(&mut report, extent, &network);
    }
    if extent.has_browser {
        report.run(&mut Navigator::new(ScriptedTurn::new()), &some, &network);
        run_guarded_pages(&mut report, extent, &network);
        run_browser_without_checks(&mut report, extent, &network);
        report.report_vectors();
    }
    limits::run(&mut report, extent, &network);
    println!("{:.0} s in total", started.elapsed().as_secs_f32());
    report.finish()
}

/// Returns all cases, or some of each kind for a short run.
fn sample(cases: &[Case], extent: Extent) -> Vec<Case> {
    if extent.is_long {
        cases.to_vec()
    } else {
        kinds::cover(cases)
    }
}

/// Runs the drivers without a browser, with all checks.
fn run_guarded(
    report: &mut Report,
    all: &[Case],
    some: &[Case],
    extent: Extent,
    network: &TestNetwork,
) {
    report.run(&mut InProcess::new(&[]), all, network);
    for form in [drivers::Form::Plain, drivers::Form::Tunnel] {
        report.run(&mut ProxiedCurl::new(&[], form), some, network);
    }
    report.run(&mut ServeDriver::start(), some, network);
    report.run(&mut Fetcher(ScriptedTurn::new()), some, network);
    let programs = [Program::Curl, Program::Urllib, Program::Tunnel];
    for program in programs
        .into_iter()
        .take(if extent.is_long { 3 } else { 2 })
    {
        report.run(
            &mut CommandLine::new(ScriptedTurn::new(), program),
            some,
            network,
        );
    }
    // Without the proxy a command must not reach anything.
    let mut direct: Vec<Case> = some.iter().map(|case| Case::refused(&case.url)).collect();
    direct.push(cases::sockets());
    let mut driver = CommandLine::new(ScriptedTurn::new(), Program::Direct);
    report.run(&mut driver, &direct, network);
    let listed = ["http://unlisted.public.example/"].map(Case::refused);
    report.run(&mut ProxiedCurl::listed(&[]), &listed, network);
}

/// Opens attack pages in the browser, with all checks.
fn run_guarded_pages(report: &mut Report, extent: Extent, network: &TestNetwork) {
    let mut attacks = vec![cases::secure_page()];
    if extent.is_long {
        attacks.push(cases::workspace_page());
        attacks.extend(cases::attack_pages(false));
        attacks.extend(cases::attack_pages(true));
    }
    // Only the secure page itself is allowed, not the hosts that it attacks.
    let caller =
        ScriptedTurn::with_settings("[egress]\nmaxRequests = 10000000\nallow = [\"localhost:80\"]");
    let mut driver = Navigator::new(caller).for_pages();
    report.run(&mut driver, &attacks, network);
}

/// Runs the drivers without a browser, with one check off at a time.
fn run_without_checks(report: &mut Report, extent: Extent, network: &TestNetwork) {
    let cases_of = |check| sample(&cases::for_check(check), extent);
    let mut run = |check: Check, driver: &mut dyn Driver, cases: &[Case]| {
        report.run_without(&format!("{check:?}"), driver, cases, network);
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

/// The checks that a proxy makes. Redirects are not among them, because its clients follow them.
const CHECKS_OF_PROXIES: [Check; 6] = [
    Check::Literals,
    Check::ResolvedAddresses,
    Check::SingleLookup,
    Check::LocalNames,
    Check::Ports,
    Check::OwnAddresses,
];

/// Runs the browser with one check off at a time, and attack pages without the guard and without the sandbox.
fn run_browser_without_checks(report: &mut Report, extent: Extent, network: &TestNetwork) {
    let checks = [Check::Literals, Check::LocalNames, Check::ResolvedAddresses];
    let mut pages = vec![cases::secure_page()];
    if extent.is_long {
        for check in CHECKS_OF_PROXIES {
            let cases = kinds::cover(&cases::for_check(check));
            let mut driver = Navigator::new(InProcessTools::new(&[check]));
            report.run_without(&format!("{check:?}"), &mut driver, &cases, network);
        }
        pages.push(cases::attack_page(false));
        pages.push(cases::attack_page(true));
    }
    let mut driver = Navigator::new(InProcessTools::new(&checks)).for_pages();
    report.run_without_guard(&mut driver, &pages, network);
    // Datagrams and lookups are blocked by the sandbox's network, not by the guard.
    let pages = [cases::secure_page()];
    report.run_without_sandbox(&mut PlainBrowser, &pages, network);
}
