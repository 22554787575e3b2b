//! The person who is asked what became of calls, and answers by chance through the real `lango approvals`, which is killed
//! now and then as well.

use super::place::Place;
use super::random::Random;
use super::script::job_in;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What was asked and what was said.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The words that were said to each question. One can be asked again, if the process ended again.
    pub said: BTreeMap<String, Vec<String>>,
    /// How many of the calls that were asked about had happened when they were first asked about.
    pub had_happened: u64,
    /// Questions of another kind, which nobody should have been asked.
    pub strange: Vec<String>,
    /// Answering processes that were killed.
    pub kills: u64,
}

/// Somebody who looks for questions and answers them.
pub struct Person {
    random: Random,
    /// How many times in a hundred the process that takes the answer is killed.
    kills: u64,
    pub answers: Answers,
}

impl Person {
    pub fn new(random: Random, kills: u64) -> Self {
        Self {
            random,
            kills,
            answers: Answers::default(),
        }
    }

    /// Answers until it is over.
    pub fn work(mut self, place: &Place, is_over: &AtomicBool) -> Self {
        while !is_over.load(Ordering::Relaxed) {
            self.answer_all(place);
            thread::sleep(Duration::from_millis(200));
        }
        self
    }

    /// Answers no longer by being killed.
    pub fn calmly(mut self) -> Self {
        self.kills = 0;
        self
    }

    /// Answers everything that is asked now; gives how many questions there were.
    pub fn answer_all(&mut self, place: &Place) -> usize {
        let Some(listed) = place.json(&["approvals", "list", "--json"]) else {
            return 0;
        };
        let waiting = listed["waiting"].as_array().expect("a list");
        for question in waiting {
            self.answer(place, question);
        }
        waiting.len()
    }

    fn answer(&mut self, place: &Place, question: &Value) {
        let id = question["id"].as_str().expect("an id");
        if question["asks"] != "fate" || question["tool"] != "exec" {
            self.answers.strange.push(question.to_string());
            return;
        }
        let number = question["arguments"]["command"].as_str().and_then(job_in);
        let number = number.expect("the job");
        let has_happened = place.effects().iter().any(|line| line.number == number);
        let is_first = !self.answers.said.contains_key(id);
        self.answers.had_happened += u64::from(is_first && has_happened);
        let word = *self.random.pick(&["retry", "skip", "happened"]);
        let said = self.answers.said.entry(id.to_owned()).or_default();
        said.push(word.to_owned());
        let because: &[&str] = match word {
            "happened" => &["--because", "by chance"],
            _ => &[],
        };
        let mut answering = place
            .lango()
            .args(["approvals", "answer", id, word, "-q"])
            .args(because)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("lango starts");
        if self.random.chance(self.kills) {
            thread::sleep(self.random.within(Duration::from_millis(150)));
            self.answers.kills +=
                u64::from(answering.try_wait().is_ok_and(|ended| ended.is_none()));
            let _ = answering.kill();
        }
        // Somebody else may have been first, or the session is busy: then it is asked again.
        let _ = answering.wait();
    }
}
