//! What got through, in numbers, and whether the run is good.

use crate::cases::{Case, Expected};
use crate::drivers::Driver;
use crate::world::World;
use lango_net::Check;
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
            "{name:<22} {count:>5} URLs, {:>4} got through, {} of {controls} allowed ones fetched, {:.1} s",
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
        check: Check,
        driver: &mut dyn Driver,
        cases: &[Case],
        world: &World,
    ) {
        let tally = open_all(driver, cases, world);
        let (name, count, through) = (driver.name(), cases.len(), tally.through.len());
        let label = format!("without {check:?}, {name}");
        println!("{label:<46} {count:>4} URLs, {through:>4} got through");
        if through == 0 {
            self.failures.push(format!(
                "{label}: nothing got through, so this check is not tested"
            ));
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
    for case in cases {
        driver.open(&case.fresh_url());
        let (expected, within) = match case.expected {
            Expected::Fetched => (1, Duration::from_secs(2)),
            Expected::PublicOnly | Expected::Refused => (0, Duration::from_millis(2)),
        };
        let hits = world.hits(expected, within);
        if let Some(hit) = hits.iter().find(|hit| case.is_violated_by(hit)) {
            let place = if hit.is_here {
                "this machine"
            } else {
                "the network"
            };
            tally.through.insert(format!(
                "{} reached {}:{} on {place}",
                case.url, hit.address, hit.port
            ));
        }
        if case.must_be_fetched() && hits.is_empty() {
            tally.not_fetched.push(case.url.clone());
        }
    }
    tally
}
