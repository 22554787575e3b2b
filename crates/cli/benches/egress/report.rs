//! Runs the drivers, prints how many URLs got through, and decides whether the run succeeded.

use crate::cases::{Case, Expected};
use crate::drivers::Driver;
use crate::test_network::{Hit, HitKind, TestNetwork};
use crate::vectors::Arrivals;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Maximum number of failures to print.
const MAX_PRINTED: usize = 50;
/// How long to wait for late hits after the last URL.
const LATE_TIME: Duration = Duration::from_millis(100);
/// Interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The failures of all runs, and the vectors that arrived.
#[derive(Default)]
pub(crate) struct Report {
    failures: Vec<String>,
    arrivals: Arrivals,
}

/// The result of one driver.
#[derive(Default)]
struct Tally {
    through: BTreeSet<String>,
    not_fetched: Vec<String>,
}

impl Report {
    /// Opens all cases with all checks: nothing may get through, and allowed URLs must be fetched.
    pub(crate) fn run(&mut self, driver: &mut dyn Driver, cases: &[Case], network: &TestNetwork) {
        let started = Instant::now();
        let tally = open_all(driver, cases, network);
        let (name, count) = (driver.name(), cases.len());
        let controls = cases.iter().filter(|case| case.must_be_fetched()).count();
        println!(
            "{name:<28} {count:>5} URLs, {:>4} got through, {} of {controls} allowed ones fetched, {:.1} s",
            tally.through.len(),
            controls - tally.not_fetched.len(),
            started.elapsed().as_secs_f32()
        );
        self.arrivals.guarded.extend(network.take_vectors());
        for url in &tally.through {
            self.failures.push(format!("{name}: got through: {url}"));
        }
        for url in &tally.not_fetched {
            self.failures
                .push(format!("{name}: was not fetched: {url}"));
        }
    }

    /// Opens cases with one check off: some must get through, or the check is not tested. Returns the vectors that
    /// arrived.
    pub(crate) fn run_without(
        &mut self,
        check: &str,
        driver: &mut dyn Driver,
        cases: &[Case],
        network: &TestNetwork,
    ) -> BTreeSet<String> {
        let started = Instant::now();
        let tally = open_all(driver, cases, network);
        let (name, count, through) = (driver.name(), cases.len(), tally.through.len());
        let label = format!("without {check}, {name}");
        println!(
            "{label:<54} {count:>4} URLs, {through:>4} got through, {:.1} s",
            started.elapsed().as_secs_f32()
        );
        if through == 0 {
            self.failures.push(format!(
                "{label}: nothing got through, so this check is not tested"
            ));
        }
        network.take_vectors()
    }

    /// Opens attack pages in lango's browser without the checks of addresses: what the guard blocks must arrive.
    pub(crate) fn run_without_guard(
        &mut self,
        driver: &mut dyn Driver,
        cases: &[Case],
        network: &TestNetwork,
    ) {
        let vectors = self.run_without("checks of addresses", driver, cases, network);
        self.arrivals.without_guard.extend(vectors);
    }

    /// Opens attack pages in a browser outside of the sandbox: datagrams and lookups, which only the sandbox's network
    /// blocks, must arrive.
    pub(crate) fn run_without_sandbox(
        &mut self,
        driver: &mut dyn Driver,
        cases: &[Case],
        network: &TestNetwork,
    ) {
        let label = "the sandbox's network";
        let vectors = self.run_without(label, driver, cases, network);
        self.arrivals.without_sandbox.extend(vectors);
        let kinds = network.take_kinds();
        for kind in [HitKind::Datagram, HitKind::Lookup] {
            let count = kinds.iter().filter(|hit| **hit == kind).count();
            println!("  {count} as {kind:?}, which only the sandbox's network blocks");
            if count == 0 {
                self.failures.push(format!(
                    "without {label}: no {kind:?} arrived, so blocking them in the sandbox is not tested"
                ));
            }
        }
    }

    /// Adds a failure.
    pub(crate) fn fail(&mut self, failure: String) {
        self.failures.push(failure);
    }

    /// Prints which vectors arrived, and adds a failure for each one that got past the guard or is not tested.
    pub(crate) fn report_vectors(&mut self) {
        self.failures.extend(self.arrivals.report());
    }

    /// Prints the failures and returns the exit code.
    pub(crate) fn finish(self) -> ExitCode {
        if self.failures.is_empty() {
            println!("success: nothing got through, and each check is needed");
            return ExitCode::SUCCESS;
        }
        for failure in self.failures.iter().take(MAX_PRINTED) {
            println!("FAILED {failure}");
        }
        println!("{} failures", self.failures.len());
        ExitCode::FAILURE
    }
}

fn open_all(driver: &mut dyn Driver, cases: &[Case], network: &TestNetwork) -> Tally {
    let mut tally = Tally::default();
    // Discard late hits of an earlier driver.
    network.hits(0, Duration::from_millis(20));
    network.take_vectors();
    network.take_kinds();
    // URLs that must be fetched are opened one by one, the others in batches with the same expectation: so every hit
    // can be checked.
    let (controls, attempts): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.must_be_fetched());
    for case in controls {
        tally.open(driver, &[case], network);
    }
    let (mut done, mut last_progress) = (0, Instant::now());
    for expected in [Expected::Refused, Expected::PublicOnly, Expected::OwnPage] {
        let alike = attempts.iter().filter(|case| case.expected == expected);
        let alike: Vec<&Case> = alike.copied().collect();
        for batch in alike.chunks(driver.batch()) {
            tally.open(driver, batch, network);
            done += batch.len();
            if last_progress.elapsed() > PROGRESS_INTERVAL {
                eprintln!("  {}: {done} of {}", driver.name(), attempts.len());
                last_progress = Instant::now();
            }
        }
    }
    // Late hits come from one of the last URLs, or from a page that is still open.
    let late = network.hits(usize::MAX, LATE_TIME.max(driver.delay()));
    if let Some(last) = attempts.last() {
        tally.check(last, " or one before it", &late, usize::MAX);
    }
    tally
}

impl Tally {
    /// Opens cases with the same expectation and checks their hits.
    fn open(&mut self, driver: &mut dyn Driver, cases: &[&Case], network: &TestNetwork) {
        let urls: Vec<String> = cases.iter().map(|case| case.fresh_url()).collect();
        driver.open_batch(&urls);
        let (case, others) = (cases[0], cases.len() - 1);
        let (expected, within) = if case.must_be_fetched() {
            (1, Duration::from_secs(2))
        } else {
            (usize::MAX, driver.delay())
        };
        let hits = network.hits(expected, within);
        let others = if others == 0 {
            String::new()
        } else {
            format!(" or one of {others} others")
        };
        let is_one = driver.batch() == 1 && !driver.counts_targets();
        let max = if is_one { 1 } else { usize::MAX };
        self.check(case, &others, &hits, max);
        if case.must_be_fetched() && hits.is_empty() {
            self.not_fetched.push(case.url.clone());
        }
    }

    /// Records up to `max` hits that should not have arrived.
    fn check(&mut self, case: &Case, others: &str, hits: &[Hit], max: usize) {
        let violations = hits.iter().filter(|hit| case.is_violated_by(hit));
        for hit in violations.take(max) {
            self.through.insert(format!(
                "{}{others} reached {}:{} ({:?})",
                case.url, hit.address, hit.port, hit.kind
            ));
        }
    }
}
