//! Several conversations at once in one `lango serve`, each with a browser: none sees the tabs of another.

use crate::lango::{Served, World};
use crate::script::Task;
use std::thread;

const NAMES: [&str; 4] = ["ada", "barbara", "grace", "hedy"];

/// Opens a page for each, twice and at once, and says what is wrong.
pub fn run(world: &World, rounds: usize) -> Vec<String> {
    let place = world.place("");
    let mut served = Served::start(&place);
    let client = &served.client;
    let visit = |name: &str| -> Option<String> {
        for round in 0..rounds {
            let page = format!("{name}-{round}");
            let opened = client.ask(name, &Task::Open(page.clone()));
            let tabs = client.ask(name, &Task::Tabs);
            let (opened, tabs) = match (opened, tabs) {
                (Ok(opened), Ok(tabs)) => (opened, tabs),
                (Err(error), _) | (_, Err(error)) => return Some(error),
            };
            let is_own = opened.contains(&page) && tabs.contains(&page);
            let others = NAMES.iter().filter(|other| **other != name);
            let sees_others = others.into_iter().any(|other| tabs.contains(*other));
            if !is_own || sees_others || tabs.lines().count() != 1 {
                return Some(format!("{name} sees: {opened} / {tabs}"));
            }
        }
        None
    };
    let mut problems: Vec<String> = thread::scope(|scope| {
        let threads = NAMES.map(|name| scope.spawn(|| visit(name)));
        let ended = threads
            .into_iter()
            .filter_map(|thread| thread.join().unwrap());
        ended.collect()
    });
    served.census.take();
    let browsers = place.browsers();
    if browsers != NAMES.len() {
        problems.push(format!("{browsers} browsers for {} sessions", NAMES.len()));
    }
    let below = served.census.below();
    println!(
        "{} sessions at once: {browsers} browsers, {} processes, {} MiB",
        NAMES.len(),
        below.processes,
        below.kib / 1024
    );
    problems.extend(served.end().err());
    problems
}
