//! What got through, in numbers, and whether the run is good.

use crate::cases::{Case, Expected};
use crate::drivers::Driver;
use crate::world::{Place, World};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Attempts that are named when they got through.
const NAMED: usize = 5;

/// How the runs went.
#[derive(Default)]
pub struct Report {
    failures: Vec<String>,
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
    ) {
        let tally = open_all(driver, cases, world);
        let (name, count, through) = (driver.name(), cases.len(), tally.through.len());
        let label = format!("without {check}, {name}");
        println!("{label:<46} {count:>4} URLs, {through:>4} got through");
        let ways: Vec<String> = world.take_ways().into_iter().collect();
        if !ways.is_empty() {
            println!("  {} ways: {}", ways.len(), ways.join(" "));
        }
        if through == 0 {
            self.failures.push(format!(
                "{label}: nothing got through, so this check is not tested"
            ));
        }
    }

    /// Opens pages in a browser with the network of the run: datagrams and lookups must arrive, which nothing but the network
    /// of the sandbox holds back.
    pub fn run_without_sandbox(&mut self, driver: &mut dyn Driver, cases: &[Case], world: &World) {
        let label = "the sandbox's network";
        self.run_without(label, driver, cases, world);
        let places = world.take_places();
        for place in [Place::Datagram, Place::Lookup] {
            let count = places.iter().filter(|hit| **hit == place).count();
            println!("  {count} as {place:?}, held by the network of the sandbox alone");
            if count == 0 {
                self.failures.push(format!(
                    "without {label}: no {place:?} arrived, so it is not tested that the sandbox holds them"
                ));
            }
        }
    }

    /// Says what went wrong.
    pub fn finish(self) -> ExitCode {
        if self.failures.is_empty() {
            println!("good: nothing got through, and each check is needed");
            return ExitCode::SUCCESS;
        }
        for failure in self.failures.iter().take(NAMED * 10) {
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
    let (refused, public): (Vec<&Case>, Vec<&Case>) = attempts
        .iter()
        .partition(|case| case.expected == Expected::Refused);
    for cases in [refused, public] {
        for batch in cases.chunks(driver.batch()) {
            tally.open(driver, batch, world);
        }
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
        for hit in hits.iter().filter(|hit| case.is_violated_by(hit)) {
            let others = if others == 0 {
                String::new()
            } else {
                format!(" or one of {others} others")
            };
            self.through.insert(format!(
                "{}{others} reached {}:{} ({:?})",
                case.url, hit.address, hit.port, hit.place
            ));
            // One for each URL, where URLs are opened one by one and are not pages with many targets.
            if driver.batch() == 1 && !driver.counts_targets() {
                break;
            }
        }
        if case.must_be_fetched() && hits.is_empty() {
            self.not_fetched.push(case.url.clone());
        }
    }
}
