//! The evidence at the end of a run: the log, the tasks, the effects, and what the clients and the simulated user
//! recorded.

use super::client::Ledger;
use super::simulated_user::Answers;
use super::test_env::{EffectLine, TestEnv};
use lango_core::{Event, EventRange, SessionCatalog, SessionStore, UserId};
use std::collections::{BTreeMap, BTreeSet};

/// The user that A2A clients act as.
const A2A_USER: &str = "a2a";

/// A limit that no run reaches.
const ALL: usize = 1_000_000;

/// The input of the oracle.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub ledger: Ledger,
    pub tasks: BTreeMap<u64, FinalTask>,
    pub effects: Vec<EffectLine>,
    /// The jobs whose file was written.
    pub written: BTreeSet<u64>,
    pub answers: Answers,
    pub log: Log,
    /// The names that may author events.
    pub authors: BTreeSet<String>,
    /// Servers that panicked or exited by themselves.
    pub crashes: Vec<String>,
}

/// The final state of a task.
#[derive(Debug, Clone)]
pub(crate) struct FinalTask {
    pub task: String,
    pub state: String,
    pub is_over: bool,
    /// The message of its status.
    pub message: String,
    /// The job that the answer mentions.
    pub answered_job: Option<u64>,
}

/// The content of the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    pub sessions: BTreeMap<String, Vec<Event>>,
    /// Turns without an outcome.
    pub unfinished: Vec<String>,
    /// Corruption that the store or `lango sessions verify` reports.
    pub damage: Vec<String>,
}

impl Log {
    /// Reads all sessions of the A2A user.
    pub(crate) async fn read<S: SessionStore + SessionCatalog>(store: &S) -> Self {
        let mut log = Self::default();
        let user = UserId::from(A2A_USER);
        for session in store
            .list(&user, lango_core::SessionQuery::recent(ALL))
            .await
            .expect("the sessions")
        {
            let all = EventRange {
                from: 1,
                limit: ALL,
            };
            match store.read(&session.id, all).await {
                Ok(events) => drop(log.sessions.insert(session.id.to_string(), events)),
                Err(error) => log.damage.push(error.to_string()),
            }
        }
        let unfinished = store.unfinished(None, ALL).await.expect("unfinished turns");
        log.unfinished = unfinished
            .iter()
            .map(|turn| turn.turn.to_string())
            .collect();
        log
    }

    /// Runs `lango sessions verify` and compares its result with the events that were read.
    pub(crate) fn verify_with(mut self, test_env: &TestEnv) -> Self {
        let mut command = test_env.lango();
        let output = command.args(["sessions", "verify", "--all"]).output();
        let output = output.expect("lango starts");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut checked = BTreeMap::new();
        for line in printed.lines() {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [id, events, "events" | "event"] => drop(checked.insert(id, events.to_owned())),
                _ => self.damage.push(line.to_owned()),
            }
        }
        for (id, events) in &self.sessions {
            if checked.get(&**id) != Some(&events.len().to_string()) {
                let difference = format!(
                    "{id}: {} events, {:?} verified",
                    events.len(),
                    checked.get(&**id)
                );
                self.damage.push(difference);
            }
        }
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            self.damage.push(error);
        }
        self
    }
}
