//! Waits after the last fault until all tasks have ended, and answers all approval requests meanwhile.

use super::client::Ledger;
use super::evidence::FinalTask;
use super::rpc_client::{RpcClient, is_over, state};
use super::script::job_in;
use super::simulated_user::SimulatedUser;
use super::test_env::TestEnv;
use serde_json::Value;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Returns the state of each task once all have ended, or after `timeout`.
pub(crate) fn settle(
    test_env: &TestEnv,
    servers: &[RpcClient],
    ledger: &Ledger,
    user: &mut SimulatedUser,
    timeout: Duration,
) -> BTreeMap<u64, FinalTask> {
    let deadline = Instant::now() + timeout;
    let mut ends = BTreeMap::new();
    let mut open: Vec<(u64, &String)> = ledger.acknowledged.iter().map(|(n, t)| (*n, t)).collect();
    loop {
        let questions = user.answer_all(test_env);
        for (at, (number, task)) in open.iter().enumerate() {
            if let Some(seen) = servers[at % servers.len()].task(task) {
                ends.insert(*number, end_of(task, &seen));
            }
        }
        open.retain(|(number, _)| !ends.get(number).is_some_and(|end| end.is_over));
        if open.is_empty() && questions == 0 || Instant::now() > deadline {
            return ends;
        }
        thread::sleep(Duration::from_millis(300));
    }
}

fn end_of(id: &str, task: &Value) -> FinalTask {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let parts = artifacts.flat_map(|artifact| artifact["parts"].as_array().into_iter().flatten());
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    FinalTask {
        task: id.to_owned(),
        state: state(task).to_owned(),
        is_over: is_over(task),
        message: task["status"]["message"].to_string(),
        answered_job: job_in(&texts.concat()),
    }
}
