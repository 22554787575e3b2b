//! Checks a database whose write-ahead log was truncated.

use super::cuts::Cut;
use super::random::Random;
use super::recording::{ROOT, Recording, StoredBatch, USER, answer_all, run_turn, runner, wal};
use lango_core::{
    Event, EventBody, EventRange, SessionCatalog, SessionId, SessionStore, StoreError, UserId,
};
use lango_engine::{CancelToken, turn_updates};
use lango_store::Store;
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A limit that no run reaches.
const ALL: usize = 100_000;

/// The totals over all cuts.
#[derive(Debug, Default)]
pub(crate) struct CheckResult {
    pub sessions: u64,
    pub events: u64,
    /// Interrupted turns that were resumed.
    pub resumed: u64,
    /// New turns that were run in a session.
    pub added: u64,
    pub violations: Vec<String>,
}

/// Opens the truncated database, compares it with what was stored, and runs turns in it.
pub(crate) async fn check(
    recording: &Recording,
    cut: &Cut,
    random: &mut Random,
    result: &mut CheckResult,
) {
    let folder = working_folder();
    let path = folder.path().join("lango.db");
    let snapshot = &recording.snapshots[cut.snapshot];
    fs::write(&path, &snapshot.database).unwrap();
    fs::write(wal(&path), &snapshot.wal[..cut.length]).unwrap();
    let before = result.violations.len();
    let acknowledged = recording.batches.iter().take(snapshot.acknowledged);
    let kept = acknowledged.filter(|batch| batch.wal_length <= cut.length);
    let kept: Vec<&StoredBatch> = kept.collect();
    match Store::open_sqlite(&path, ROOT.into()) {
        Ok(store) => {
            let store = Arc::new(store);
            check_file(&path, result);
            check_sessions(recording, &kept, &store, result).await;
            if result.violations.len() == before {
                continue_sessions(&store, random, result).await;
            }
        }
        Err(error) => result
            .violations
            .push(format!("the database does not open: {error}")),
    }
    for violation in &mut result.violations[before..] {
        *violation = format!("{cut:?}: {violation}");
    }
}

/// Returns a temporary folder, in memory if possible: the files need not survive a crash of the machine.
fn working_folder() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).unwrap()
}

fn check_file(path: &Path, result: &mut CheckResult) {
    let database = Connection::open(path).unwrap();
    let integrity = database.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    let integrity: String = integrity.unwrap();
    if integrity != "ok" {
        result.violations.push(integrity);
    }
    let mut foreign = database.prepare("PRAGMA foreign_key_check").unwrap();
    if foreign.exists([]).unwrap() {
        result
            .violations
            .push("a foreign key refers to a missing row".to_owned());
    }
}

async fn check_sessions(
    recording: &Recording,
    kept: &[&StoredBatch],
    store: &Store,
    result: &mut CheckResult,
) {
    let unfinished = store.unfinished(None, ALL).await.unwrap();
    let unfinished: BTreeSet<String> = unfinished
        .iter()
        .map(|turn| turn.turn.to_string())
        .collect();
    let waiting = store.approvals(&UserId::from(USER)).await.unwrap().waiting;
    let waiting: BTreeSet<String> = waiting
        .iter()
        .map(|approval| approval.request.id.to_string())
        .collect();
    let (mut interrupted, mut requested) = (BTreeSet::new(), BTreeSet::new());
    for session in recording.sessions() {
        let events = match log(store, &session).await {
            Ok(events) => events,
            Err(error) => return result.violations.push(error.to_string()),
        };
        result.sessions += 1;
        result.events += events.len() as u64;
        if let Some(violation) = find_wrong_batch(recording, kept, &session, &events) {
            result.violations.push(format!("{session}: {violation}"));
        }
        if events.is_empty() {
            continue;
        }
        match store.verify(&session).await {
            Ok(count) if count == events.len() as u64 => {}
            other => result
                .violations
                .push(format!("{session}: {other:?} of {} verified", events.len())),
        }
        let last = last_turn(&events);
        let is_start = |event: &&Event| matches!(event.body, EventBody::UserMessage { .. });
        let expected = (
            events.len() as u64 + 1,
            events.iter().filter(is_start).count() as u64,
            last.map(|first| first.seq),
        );
        let head = store.read_head(&session).await.unwrap();
        if (head.next_seq, head.turns, head.unfinished) != expected {
            result
                .violations
                .push(format!("{session}: {head:?} does not match {expected:?}"));
        }
        interrupted.extend(last.map(|first| first.turn.to_string()));
        requested.extend(open_requests(&events));
    }
    if interrupted != unfinished {
        result.violations.push(format!(
            "unfinished {unfinished:?}, but by the log {interrupted:?}"
        ));
    }
    if requested != waiting {
        result
            .violations
            .push(format!("waiting {waiting:?}, but by the log {requested:?}"));
    }
}

async fn log(store: &Store, session: &SessionId) -> Result<Vec<Event>, StoreError> {
    let all = EventRange {
        from: 1,
        limit: ALL,
    };
    match store.read(session, all).await {
        Err(StoreError::NotFound { .. }) => Ok(Vec::new()),
        read => read,
    }
}

/// Checks that a session's log consists of whole batches from the first one on, and contains all that were
/// acknowledged. Returns a description of the first violation.
fn find_wrong_batch(
    recording: &Recording,
    kept: &[&StoredBatch],
    session: &SessionId,
    events: &[Event],
) -> Option<String> {
    let is_of_session = |batch: &&StoredBatch| batch.events[0].session == *session;
    let mut rest = events;
    let mut batches = 0;
    for batch in recording.batches.iter().filter(is_of_session) {
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(&*batch.events) else {
            return Some(format!("batch {batches} is incomplete or changed"));
        };
        rest = after;
        batches += 1;
    }
    let acknowledged = kept.iter().copied().filter(is_of_session).count();
    if !rest.is_empty() {
        Some(format!("{} events were never written", rest.len()))
    } else if batches < acknowledged {
        Some(format!(
            "only {batches} of {acknowledged} acknowledged batches"
        ))
    } else {
        None
    }
}

/// Returns the first event of the last turn, if that turn has no outcome.
fn last_turn(events: &[Event]) -> Option<&Event> {
    let is_over = matches!(events.last()?.body, EventBody::TurnFinished { .. });
    let turn = &events.last()?.turn;
    (!is_over).then(|| events.iter().find(|event| event.turn == *turn))?
}

fn open_requests(events: &[Event]) -> BTreeSet<String> {
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

/// Resumes every interrupted turn, and runs a new turn in one of the sessions.
async fn continue_sessions(store: &Arc<Store>, random: &mut Random, result: &mut CheckResult) {
    let runner = runner(Arc::clone(store) as Arc<dyn SessionStore>);
    let (unread, _) = turn_updates();
    let sessions = store
        .list(&UserId::from(USER), lango_core::SessionQuery::recent(ALL))
        .await
        .unwrap();
    let picked = random.below(sessions.len().max(1) as u64);
    for (at, session) in sessions.iter().enumerate() {
        let mut conversation = runner.open(session.id.clone()).await.unwrap();
        let end = conversation
            .resume(&CancelToken::new(), &unread)
            .await
            .unwrap();
        if let Some(end) = end {
            result.resumed += 1;
            answer_all(&mut conversation, end, &unread, random).await;
        }
        if at as u64 == picked {
            run_turn(&mut conversation, "and now this", &unread, random).await;
            result.added += 1;
        }
        if let Err(error) = store.verify(&session.id).await {
            result.violations.push(format!("after resuming: {error}"));
        }
    }
    if !store.unfinished(None, ALL).await.unwrap().is_empty() {
        result.violations.push("a turn did not end".to_owned());
    }
}
