//! After the last fault: everything is given time to come to its end, and every question is answered.

use super::caller::{Caller, is_over, state};
use super::client::Ledger;
use super::evidence::TaskEnd;
use super::person::Person;
use super::place::Place;
use super::script::job_in;
use serde_json::Value;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// How each task stands when all have ended, or when that took longer than `patience`.
pub fn settle(
    place: &Place,
    servers: &[Caller],
    ledger: &Ledger,
    person: &mut Person,
    patience: Duration,
) -> BTreeMap<u64, TaskEnd> {
    let give_up = Instant::now() + patience;
    let mut ends = BTreeMap::new();
    let mut open: Vec<(u64, &String)> = ledger.acknowledged.iter().map(|(n, t)| (*n, t)).collect();
    loop {
        let questions = person.answer_all(place);
        for (at, (number, task)) in open.iter().enumerate() {
            if let Some(seen) = servers[at % servers.len()].task(task) {
                ends.insert(*number, end_of(task, &seen));
            }
        }
        open.retain(|(number, _)| !ends.get(number).is_some_and(|end| end.is_over));
        if open.is_empty() && questions == 0 || Instant::now() > give_up {
            return ends;
        }
        thread::sleep(Duration::from_millis(300));
    }
}

fn end_of(id: &str, task: &Value) -> TaskEnd {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let parts = artifacts.flat_map(|artifact| artifact["parts"].as_array().into_iter().flatten());
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    TaskEnd {
        task: id.to_owned(),
        state: state(task).to_owned(),
        is_over: is_over(task),
        words: task["status"]["message"].to_string(),
        answered_job: job_in(&texts.concat()),
    }
}
