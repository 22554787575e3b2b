//! A simulated user who answers approval requests at random with the real `lango approvals`. Some of these processes
//! are killed too.

use super::random::Random;
use super::script::job_in;
use super::test_env::TestEnv;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The answers that the simulated user gave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    /// The answers to each request, by its id. A request is asked again if the answering process was killed.
    pub given: BTreeMap<String, Vec<String>>,
    /// How many calls of unknown outcome had happened when the user was first asked about them.
    pub had_happened: u64,
    /// Requests that should not have been made: those of any other kind.
    pub unexpected: Vec<String>,
    /// How many answering processes were killed.
    pub kills: u64,
}

/// A user who finds approval requests and answers them.
pub(crate) struct SimulatedUser {
    random: Random,
    /// The percentage of answering processes to kill.
    kill_percent: u64,
    pub answers: Answers,
}

impl SimulatedUser {
    pub(crate) fn new(random: Random, kill_percent: u64) -> Self {
        Self {
            random,
            kill_percent,
            answers: Answers::default(),
        }
    }

    /// Answers requests until `is_over` is set.
    pub(crate) fn work(mut self, test_env: &TestEnv, is_over: &AtomicBool) -> Self {
        while !is_over.load(Ordering::Relaxed) {
            self.answer_all(test_env);
            thread::sleep(Duration::from_millis(200));
        }
        self
    }

    /// Stops killing the answering processes.
    pub(crate) fn without_kills(mut self) -> Self {
        self.kill_percent = 0;
        self
    }

    /// Answers all waiting requests and returns how many there were.
    pub(crate) fn answer_all(&mut self, test_env: &TestEnv) -> usize {
        let Some(listed) = test_env.json(&["approvals", "list", "--json"]) else {
            return 0;
        };
        let waiting = listed["waiting"].as_array().expect("a list");
        for question in waiting {
            self.answer(test_env, question);
        }
        waiting.len()
    }

    fn answer(&mut self, test_env: &TestEnv, question: &Value) {
        let id = question["id"].as_str().expect("an id");
        if question["asks"] != "fate" || question["tool"] != "exec" {
            self.answers.unexpected.push(question.to_string());
            return;
        }
        let number = question["arguments"]["command"].as_str().and_then(job_in);
        let number = number.expect("the job");
        let has_happened = test_env.effects().iter().any(|line| line.number == number);
        let is_first = !self.answers.given.contains_key(id);
        self.answers.had_happened += u64::from(is_first && has_happened);
        let word = *self.random.pick(&["retry", "skip", "happened"]);
        let given = self.answers.given.entry(id.to_owned()).or_default();
        given.push(word.to_owned());
        let reason: &[&str] = match word {
            "happened" => &["--because", "by chance"],
            _ => &[],
        };
        let mut answering = test_env
            .lango()
            .args(["approvals", "answer", id, word, "-q"])
            .args(reason)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("lango starts");
        if self.random.chance(self.kill_percent) {
            thread::sleep(self.random.within(Duration::from_millis(150)));
            self.answers.kills +=
                u64::from(answering.try_wait().is_ok_and(|ended| ended.is_none()));
            let _ = answering.kill();
        }
        // The answer may be rejected because the session is busy. Then the request is still waiting in the next round.
        let _ = answering.wait();
    }
}
