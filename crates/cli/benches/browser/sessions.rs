//! Runs several conversations concurrently in one `lango serve`, each with a browser, and checks that none sees
//! another's tabs.

use crate::lango::{Harness, RunningServer};
use crate::script::Task;
use std::thread;

const NAMES: [&str; 4] = ["ada", "barbara", "grace", "hedy"];

/// Opens pages in all conversations concurrently, and returns the problems.
pub(crate) fn run(harness: &Harness, rounds: usize) -> Vec<String> {
    let test_env = harness.test_env("");
    let mut server = RunningServer::start(&test_env);
    let client = &server.client;
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
    server.processes.record();
    let browsers = test_env.browsers();
    if browsers != NAMES.len() {
        problems.push(format!("{browsers} browsers for {} sessions", NAMES.len()));
    }
    let stats = server.processes.stats();
    println!(
        "{} concurrent sessions: {browsers} browsers, {} processes, {} MiB",
        NAMES.len(),
        stats.processes,
        stats.kib / 1024
    );
    problems.extend(server.end().err());
    problems
}
