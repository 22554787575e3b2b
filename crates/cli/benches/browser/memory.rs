//! Many pages in a row in one session of one process: the memory and the open files of lango stay where they were once it is
//! warm.

use crate::census::{Below, open_files, resident_kib};
use crate::lango::{Served, World};
use crate::script::Task;
use crate::site::PageKind;
use std::time::Instant;

/// How many pages, and how much may be added.
pub struct MemoryPlan {
    pub pages: usize,
    /// After so many pages everything was used once.
    pub warm_up: usize,
    /// The most kibibytes that the end may have more than the page after the warm-up.
    pub growth_kib: u64,
}

/// The most files that lango may have open at the end and not after the warm-up.
const MORE_FILES: usize = 4;
/// A mean is taken over so many pages.
const WINDOW: usize = 4;

struct Sample {
    kib: u64,
    files: usize,
}

/// Opens the pages, prints the memory over time, and says what is wrong.
pub fn run(world: &World, plan: &MemoryPlan) -> Vec<String> {
    let place = world.place("");
    let mut served = Served::start(&place);
    let id = served.serving.id();
    let mut samples = Vec::new();
    let mut problems = Vec::new();
    println!("pages in a row, one session of one `lango serve`");
    println!("  page  lango MiB  files  browser MiB  processes  seconds");
    let started = Instant::now();
    for number in 0..plan.pages {
        let answer = served.client.ask("pages", &Task::Page(number));
        problems.extend(judge(number, answer));
        let sample = Sample {
            kib: resident_kib(id),
            files: open_files(id),
        };
        let every = if plan.pages > 100 { 20 } else { 8 };
        if number.is_multiple_of(every) || number + 1 == plan.pages {
            served.census.take();
            print_row(number, &sample, served.census.below(), started);
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
    if most_files(after) > most_files(before).map(|files| files + MORE_FILES) {
        problems.push("lango has more files open than at the beginning".to_owned());
    }
    let gone = served.end();
    println!("  after SIGTERM: {gone:?}");
    problems.extend(gone.err());
    problems
}

fn judge(number: usize, answer: Result<String, String>) -> Option<String> {
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

fn print_row(number: usize, sample: &Sample, below: Below, started: Instant) {
    println!(
        "  {number:>4}  {:>9.1}  {:>5}  {:>11.1}  {:>9}  {:>7.0}",
        mib(sample.kib),
        sample.files,
        mib(below.kib),
        below.processes,
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
