//! What got through, in numbers, and whether the run is good.

use crate::cases::{Case, Expected};
use crate::drivers::Driver;
use crate::ways::Arrivals;
use crate::world::{Hit, HitKind, World};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Failures that are named; of more, only the number is told.
const MOST_NAMED: usize = 50;
/// How long something may arrive after the last URL.
const LATE_TIME: Duration = Duration::from_millis(100);
/// The pause between two notes of how far a driver is.
const NOTE_TIME: Duration = Duration::from_secs(5);

/// How the runs went.
#[derive(Default)]
pub struct Report {
    failures: Vec<String>,
    arrivals: Arrivals,
}

/// What one driver did with its cases.
#[derive(Default)]
struct Tally {
    through: BTreeSet<String>,
    not_fetched: Vec<String>,
}

impl Report {
    /// Opens all cases with all checks on: nothing may get through, and what must work must work.
    pub fn run(&mut self, driver: &mut dyn Driver, cases: &[Case], world: &World) {
        let started = Instant::now();
        let tally = open_all(driver, cases, world);
        let (name, count) = (driver.name(), cases.len());
        let controls = cases.iter().filter(|case| case.must_be_fetched()).count();
        println!(
            "{name:<28} {count:>5} URLs, {:>4} got through, {} of {controls} allowed ones fetched, {:.1} s",
            tally.through.len(),
            controls - tally.not_fetched.len(),
            started.elapsed().as_secs_f32()
        );
        self.arrivals.guarded.extend(world.take_ways());
        for url in &tally.through {
            self.failures.push(format!("{name}: got through: {url}"));
        }
        for url in &tally.not_fetched {
            self.failures
                .push(format!("{name}: was not fetched: {url}"));
        }
    }

    /// Opens cases with one check off: some must get through, or the check is not tested.
    pub fn run_without(
        &mut self,
        check: &str,
        driver: &mut dyn Driver,
        cases: &[Case],
        world: &World,
    ) -> BTreeSet<String> {
        let started = Instant::now();
        let tally = open_all(driver, cases, world);
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
        world.take_ways()
    }

    /// Opens attack pages in lango's browser with the checks of addresses off: what the guard holds must arrive.
    pub fn run_without_guard(&mut self, driver: &mut dyn Driver, cases: &[Case], world: &World) {
        let ways = self.run_without("checks of addresses", driver, cases, world);
        self.arrivals.without_guard.extend(ways);
    }

    /// Opens pages in a browser with the network of the run: datagrams and lookups must arrive, which nothing but the network
    /// of the sandbox holds back.
    pub fn run_without_sandbox(&mut self, driver: &mut dyn Driver, cases: &[Case], world: &World) {
        let label = "the sandbox's network";
        let ways = self.run_without(label, driver, cases, world);
        self.arrivals.without_sandbox.extend(ways);
        let places = world.take_places();
        for kind in [HitKind::Datagram, HitKind::Lookup] {
            let count = places.iter().filter(|hit| **hit == kind).count();
            println!("  {count} as {kind:?}, held by the network of the sandbox alone");
            if count == 0 {
                self.failures.push(format!(
                    "without {label}: no {kind:?} arrived, so it is not tested that the sandbox holds them"
                ));
            }
        }
    }

    /// Notes a failure of another kind.
    pub fn fail(&mut self, failure: String) {
        self.failures.push(failure);
    }

    /// Prints which ways of pages arrived, and notes those that are not tested.
    pub fn report_ways(&mut self) {
        self.failures.extend(self.arrivals.report());
    }

    /// Says what went wrong.
    pub fn finish(self) -> ExitCode {
        if self.failures.is_empty() {
            println!("good: nothing got through, and each check is needed");
            return ExitCode::SUCCESS;
        }
        for failure in self.failures.iter().take(MOST_NAMED) {
            println!("FAILED {failure}");
        }
        println!("{} failures", self.failures.len());
        ExitCode::FAILURE
    }
}

fn open_all(driver: &mut dyn Driver, cases: &[Case], world: &World) -> Tally {
    let mut tally = Tally::default();
    // What an earlier driver left behind does not count.
    world.hits(0, Duration::from_millis(20));
    world.take_ways();
    world.take_places();
    // What must be fetched is opened alone, and the rest with its like: so each hit can be judged.
    let (controls, attempts): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.must_be_fetched());
    for case in controls {
        tally.open(driver, &[case], world);
    }
    let (mut done, mut noted) = (0, Instant::now());
    for expected in [Expected::Refused, Expected::PublicOnly, Expected::OwnPage] {
        let alike = attempts.iter().filter(|case| case.expected == expected);
        let alike: Vec<&Case> = alike.copied().collect();
        for batch in alike.chunks(driver.batch()) {
            tally.open(driver, batch, world);
            done += batch.len();
            if noted.elapsed() > NOTE_TIME {
                eprintln!("  {}: {done} of {}", driver.name(), attempts.len());
                noted = Instant::now();
            }
        }
    }
    // What comes late was caused by one of the last, or by a page that is still open.
    let late = world.hits(usize::MAX, LATE_TIME.max(driver.delay()));
    if let Some(last) = attempts.last() {
        tally.judge(last, " or one before it", &late, usize::MAX);
    }
    tally
}

impl Tally {
    /// Opens cases of one kind.
    fn open(&mut self, driver: &mut dyn Driver, cases: &[&Case], world: &World) {
        let urls: Vec<String> = cases.iter().map(|case| case.fresh_url()).collect();
        driver.open_batch(&urls);
        let (case, others) = (cases[0], cases.len() - 1);
        let (expected, within) = if case.must_be_fetched() {
            (1, Duration::from_secs(2))
        } else {
            (usize::MAX, driver.delay())
        };
        let hits = world.hits(expected, within);
        let others = if others == 0 {
            String::new()
        } else {
            format!(" or one of {others} others")
        };
        let is_one = driver.batch() == 1 && !driver.counts_targets();
        let most = if is_one { 1 } else { usize::MAX };
        self.judge(case, &others, &hits, most);
        if case.must_be_fetched() && hits.is_empty() {
            self.not_fetched.push(case.url.clone());
        }
    }

    /// Notes what should not have arrived; of one URL alone, only the first.
    fn judge(&mut self, case: &Case, others: &str, hits: &[Hit], most: usize) {
        let violations = hits.iter().filter(|hit| case.is_violated_by(hit));
        for hit in violations.take(most) {
            self.through.insert(format!(
                "{}{others} reached {}:{} ({:?})",
                case.url, hit.address, hit.port, hit.kind
            ));
        }
    }
}
