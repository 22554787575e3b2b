//! What is left when everything has settled: the log, the tasks, the effects, and what the clients and the person know.

use super::client::Ledger;
use super::person::Answers;
use super::place::{EffectLine, Place};
use lango_core::{Event, Page, SessionCatalog, SessionStore, UserId};
use std::collections::{BTreeMap, BTreeSet};

/// The user that callers are.
const CALLERS: &str = "a2a";

/// More than there is of anything.
const ALL: usize = 1_000_000;

/// Everything that the oracle is given.
#[derive(Debug, Clone)]
pub struct Evidence {
    pub ledger: Ledger,
    pub tasks: BTreeMap<u64, TaskEnd>,
    pub effects: Vec<EffectLine>,
    /// The jobs whose file was written.
    pub written: BTreeSet<u64>,
    pub answers: Answers,
    pub log: Log,
    /// The names that may stand in the log.
    pub authors: BTreeSet<String>,
    /// Servers that panicked, or ended although nobody ended them.
    pub crashes: Vec<String>,
}

/// How a task stands at the end.
#[derive(Debug, Clone)]
pub struct TaskEnd {
    pub task: String,
    pub state: String,
    pub is_over: bool,
    /// The words of its status.
    pub words: String,
    /// The job that the answer speaks of.
    pub answered_job: Option<u64>,
}

/// What is stored.
#[derive(Debug, Clone, Default)]
pub struct Log {
    pub sessions: BTreeMap<String, Vec<Event>>,
    /// Turns without an outcome.
    pub unfinished: Vec<String>,
    /// What the database itself finds wrong.
    pub damage: Vec<String>,
}

impl Log {
    /// Reads all sessions of callers.
    pub async fn read<S: SessionStore + SessionCatalog>(store: &S) -> Self {
        let mut log = Self::default();
        let callers = UserId::from(CALLERS);
        for session in store
            .list(&callers, lango_core::SessionQuery::recent(ALL))
            .await
            .expect("the sessions")
        {
            let all = Page {
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

    /// Has the program check all logs, and holds what it says against what was read.
    pub fn verified_by(mut self, place: &Place) -> Self {
        let mut command = place.lango();
        let output = command.args(["sessions", "verify", "--all"]).output();
        let output = output.expect("lango starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut checked = BTreeMap::new();
        for line in said.lines() {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [id, events, "events" | "event"] => drop(checked.insert(id, events.to_owned())),
                _ => self.damage.push(line.to_owned()),
            }
        }
        for (id, events) in &self.sessions {
            if checked.get(&**id) != Some(&events.len().to_string()) {
                let what = format!(
                    "{id}: {} events, {:?} verified",
                    events.len(),
                    checked.get(&**id)
                );
                self.damage.push(what);
            }
        }
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            self.damage.push(why);
        }
        self
    }
}
