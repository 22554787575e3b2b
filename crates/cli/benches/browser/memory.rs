//! Opens many pages in one session of one process, and checks that lango's memory and open files stop growing after a
//! warm-up.

use crate::lango::{Harness, RunningServer};
use crate::processes::{ChildStats, open_files, resident_kib};
use crate::script::Task;
use crate::site::PageKind;
use std::time::Instant;

/// The number of pages and the allowed growth.
pub(crate) struct MemoryPlan {
    pub pages: usize,
    /// Number of pages after which every feature has been used once.
    pub warm_up: usize,
    /// Maximum growth from the end of the warm-up to the last page, in kibibytes.
    pub growth_kib: u64,
}

/// Maximum number of open files added after the warm-up.
const MAX_MORE_FILES: usize = 4;
/// Number of pages over which a mean is taken.
const WINDOW: usize = 4;

struct Sample {
    kib: u64,
    files: usize,
}

/// Opens the pages, prints the memory over time, and returns the problems.
pub(crate) fn run(harness: &Harness, plan: &MemoryPlan) -> Vec<String> {
    let test_env = harness.test_env("");
    let mut server = RunningServer::start(&test_env);
    let id = server.process.id();
    let mut samples = Vec::new();
    let mut problems = Vec::new();
    println!("pages in a row, one session of one `lango serve`");
    println!("  page  lango MiB  files  browser MiB  processes  seconds");
    let started = Instant::now();
    for number in 0..plan.pages {
        let answer = server.client.ask("pages", &Task::Page(number));
        problems.extend(check(number, answer));
        let sample = Sample {
            kib: resident_kib(id),
            files: open_files(id),
        };
        let every = if plan.pages > 100 { 20 } else { 8 };
        if number.is_multiple_of(every) || number + 1 == plan.pages {
            server.processes.record();
            print_row(number, &sample, server.processes.stats(), started);
        }
        samples.push(sample);
    }
    let (before, after) = (
        &samples[plan.warm_up..plan.warm_up + WINDOW],
        &samples[samples.len() - WINDOW..],
    );
    let (before_kib, after_kib) = (mean_kib(before), mean_kib(after));
    println!(
        "  lango after page {}: {:.1} MiB, at the end: {:.1} MiB, at most {:.1} MiB more is allowed",
        plan.warm_up,
        mib(before_kib),
        mib(after_kib),
        mib(plan.growth_kib)
    );
    if after_kib > before_kib + plan.growth_kib {
        problems.push(format!(
            "lango's memory grew by {:.1} MiB",
            mib(after_kib - before_kib)
        ));
    }
    let most_files = |samples: &[Sample]| samples.iter().map(|sample| sample.files).max();
    if most_files(after) > most_files(before).map(|files| files + MAX_MORE_FILES) {
        problems.push("lango has more open files than after the warm-up".to_owned());
    }
    let exited = server.end();
    println!("  after SIGTERM: {exited:?}");
    problems.extend(exited.err());
    problems
}

fn check(number: usize, answer: Result<String, String>) -> Option<String> {
    let expected = match PageKind::of(number) {
        PageKind::Small => "a few words",
        PageKind::Table => "name 1",
        PageKind::Large => "Part 1",
        PageKind::Popup => "Closed t",
        PageKind::Download => "[downloaded `downloads/report",
        PageKind::Dialog => "Agreed",
        PageKind::Form => "A picture of",
        PageKind::Frames => "Back at",
    };
    match answer {
        Ok(answer) if answer.contains(expected) => None,
        Ok(answer) => Some(format!("page {number}: no `{expected}` in {answer:?}")),
        Err(error) => Some(format!("page {number}: {error}")),
    }
}

fn print_row(number: usize, sample: &Sample, stats: ChildStats, started: Instant) {
    println!(
        "  {number:>4}  {:>9.1}  {:>5}  {:>11.1}  {:>9}  {:>7.0}",
        mib(sample.kib),
        sample.files,
        mib(stats.kib),
        stats.processes,
        started.elapsed().as_secs_f64()
    );
}

fn mean_kib(samples: &[Sample]) -> u64 {
    let sum: u64 = samples.iter().map(|sample| sample.kib).sum();
    sum / samples.len() as u64
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
