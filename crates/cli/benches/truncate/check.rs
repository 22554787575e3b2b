//! What must hold of a database whose write-ahead log was cut.

use super::cuts::Cut;
use super::random::Random;
use super::world::{ROOT, Stored, Truth, USER, answer_all, run_turn, runner, wal};
use lango_core::{
    Event, EventBody, Page, SessionCatalog, SessionId, SessionStore, StoreError, UserId,
};
use lango_engine::Stop;
use lango_store::Store;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::mpsc;

/// More than there is of anything.
const ALL: usize = 100_000;

/// What was found over all cuts.
#[derive(Debug, Default)]
pub struct Found {
    pub sessions: u64,
    pub events: u64,
    pub gone_on: u64,
    pub cut_off: u64,
    pub wrong: Vec<String>,
}

/// Opens what the cut leaves and holds it against the truth.
pub async fn check(truth: &Truth, cut: &Cut, random: &mut Random, found: &mut Found) {
    let folder = working_folder();
    let path = folder.path().join("lango.db");
    let copy = &truth.copies[cut.copy];
    fs::write(&path, &copy.database).unwrap();
    fs::write(wal(&path), &copy.wal[..cut.length]).unwrap();
    let before = found.wrong.len();
    let acknowledged = truth.batches.iter().take(copy.acknowledged);
    let kept = acknowledged.filter(|batch| batch.wal_length <= cut.length);
    let kept: Vec<&Stored> = kept.collect();
    match Store::open_sqlite(&path, ROOT.into()) {
        Ok(store) => {
            let store = Arc::new(store);
            check_file(&path, found);
            check_sessions(truth, &kept, &store, found).await;
            if found.wrong.len() == before {
                go_on(&store, random, found).await;
            }
        }
        Err(error) => found.wrong.push(format!("it does not open: {error}")),
    }
    for what in &mut found.wrong[before..] {
        *what = format!("{cut:?}: {what}");
    }
}

/// In memory, where that is possible: nothing here has to outlive the machine.
fn working_folder() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).unwrap()
}

fn check_file(path: &Path, found: &mut Found) {
    let database = Connection::open(path).unwrap();
    let integrity = database.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    let integrity: String = integrity.unwrap();
    if integrity != "ok" {
        found.wrong.push(integrity);
    }
    let mut foreign = database.prepare("PRAGMA foreign_key_check").unwrap();
    if foreign.exists([]).unwrap() {
        found
            .wrong
            .push("a row refers to one that is not there".to_owned());
    }
}

async fn check_sessions(truth: &Truth, kept: &[&Stored], store: &Store, found: &mut Found) {
    let unfinished = store.unfinished(None, ALL).await.unwrap();
    let unfinished: BTreeSet<String> = unfinished
        .iter()
        .map(|turn| turn.turn.to_string())
        .collect();
    let waiting = store.approvals(&UserId::from(USER)).await.unwrap().waiting;
    let waiting: BTreeSet<String> = waiting
        .iter()
        .map(|one| one.request.id.to_string())
        .collect();
    let (mut cut_off, mut asked) = (BTreeSet::new(), BTreeSet::new());
    for session in truth.sessions() {
        let events = match log(store, &session).await {
            Ok(events) => events,
            Err(error) => return found.wrong.push(error.to_string()),
        };
        found.sessions += 1;
        found.events += events.len() as u64;
        if let Some(what) = not_a_beginning(truth, kept, &session, &events) {
            found.wrong.push(format!("{session}: {what}"));
        }
        if events.is_empty() {
            continue;
        }
        match store.verify(&session).await {
            Ok(count) if count == events.len() as u64 => {}
            other => found
                .wrong
                .push(format!("{session}: {other:?} of {}", events.len())),
        }
        let last = last_turn(&events);
        let begins = |event: &&Event| matches!(event.body, EventBody::UserMessage { .. });
        let expected = (
            events.len() as u64 + 1,
            events.iter().filter(begins).count() as u64,
            last.map(|first| first.seq),
        );
        let head = store.open(&session).await.unwrap();
        if (head.next_seq, head.turns, head.unfinished) != expected {
            found.wrong.push(format!(
                "{session}: {head:?} is not in step with {expected:?}"
            ));
        }
        cut_off.extend(last.map(|first| first.turn.to_string()));
        asked.extend(open_questions(&events));
    }
    if cut_off != unfinished {
        found
            .wrong
            .push(format!("unfinished {unfinished:?}, by the log {cut_off:?}"));
    }
    if asked != waiting {
        found
            .wrong
            .push(format!("waiting {waiting:?}, by the log {asked:?}"));
    }
}

async fn log(store: &Store, session: &SessionId) -> Result<Vec<Event>, StoreError> {
    let all = Page {
        from: 1,
        limit: ALL,
    };
    match store.read(session, all).await {
        Err(StoreError::NotFound { .. }) => Ok(Vec::new()),
        read => read,
    }
}

/// Whether a session's log is not made of whole batches from the first one on, or lacks one that must be there.
fn not_a_beginning(
    truth: &Truth,
    kept: &[&Stored],
    session: &SessionId,
    events: &[Event],
) -> Option<String> {
    let is_its = |batch: &&Stored| batch.events[0].session == *session;
    let mut rest = events;
    let mut batches = 0;
    for batch in truth.batches.iter().filter(is_its) {
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(&*batch.events) else {
            return Some(format!("batch {batches} is not whole, or another"));
        };
        rest = after;
        batches += 1;
    }
    let due = kept.iter().copied().filter(is_its).count();
    match rest.is_empty() {
        false => Some(format!("{} events that nobody wrote", rest.len())),
        true if batches < due => Some(format!("{batches} batches of {due} that were acknowledged")),
        true => None,
    }
}

/// The first event of the last turn, if that has no outcome.
fn last_turn(events: &[Event]) -> Option<&Event> {
    let is_over = matches!(events.last()?.body, EventBody::TurnFinished { .. });
    let turn = &events.last()?.turn;
    (!is_over).then(|| events.iter().find(|event| event.turn == *turn))?
}

fn open_questions(events: &[Event]) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for event in events {
        match &event.body {
            EventBody::ApprovalRequested(request) => drop(open.insert(request.id.to_string())),
            EventBody::ApprovalAnswered { request, .. } => drop(open.remove(request.as_str())),
            _ => {}
        }
    }
    open
}

/// Goes on with every turn that was cut off, and has one more in a session.
async fn go_on(store: &Arc<Store>, random: &mut Random, found: &mut Found) {
    let runner = runner(Arc::clone(store) as Arc<dyn SessionStore>);
    let (nobody, _) = mpsc::channel(1);
    let sessions = store
        .list(&UserId::from(USER), lango_core::SessionQuery::recent(ALL))
        .await
        .unwrap();
    let picked = random.below(sessions.len().max(1) as u64);
    for (at, session) in sessions.iter().enumerate() {
        let mut talk = runner.open(session.id.clone()).await.unwrap();
        let end = talk.resume(&Stop::new(), &nobody).await.unwrap();
        if let Some(end) = end {
            found.cut_off += 1;
            answer_all(&mut talk, end, &nobody, random).await;
        }
        if at as u64 == picked {
            run_turn(&mut talk, "and now this", &nobody, random).await;
            found.gone_on += 1;
        }
        if let Err(error) = store.verify(&session.id).await {
            found.wrong.push(format!("after going on: {error}"));
        }
    }
    if !store.unfinished(None, ALL).await.unwrap().is_empty() {
        found
            .wrong
            .push("a turn did not come to its end".to_owned());
    }
}
