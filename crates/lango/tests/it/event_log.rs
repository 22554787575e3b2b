//! Sessions over an event log that a program implements itself.

use lango::{
    ApprovalAnswer, ApprovalDecision, AttachedFile, BoxFuture, Event, EventBatch, EventLog,
    EventRange, JsonSchema, Lango, NewSession, SessionId, Storage, StoreError, UserInput,
    approve_with, tool,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A log as JSON lines in memory, as a program would keep it in files.
#[derive(Default)]
struct JsonLog {
    sessions: Mutex<BTreeMap<SessionId, (NewSession, Vec<String>)>>,
    reads: AtomicUsize,
}

impl EventLog for JsonLog {
    fn create(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut sessions = self.sessions.lock().unwrap();
        let result = if sessions.contains_key(&session.id) {
            Err(StoreError::Exists { id: session.id })
        } else {
            sessions.insert(session.id.clone(), (session, Vec::new()));
            Ok(())
        };
        Box::pin(std::future::ready(result))
    }

    fn session<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<NewSession, StoreError>> {
        let sessions = self.sessions.lock().unwrap();
        let found = sessions.get(id).map(|(session, _)| session.clone());
        let found = found.ok_or_else(|| StoreError::NotFound { id: id.clone() });
        Box::pin(std::future::ready(found))
    }

    fn append(&self, events: EventBatch) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut sessions = self.sessions.lock().unwrap();
        let id = events[0].session.clone();
        let (_, lines) = sessions.get_mut(&id).unwrap();
        let result = if events[0].seq == lines.len() as u64 + 1 {
            let new = events
                .iter()
                .map(|event| serde_json::to_string(event).unwrap());
            lines.extend(new);
            Ok(())
        } else {
            Err(StoreError::Conflict { id })
        };
        Box::pin(std::future::ready(result))
    }

    fn read<'a>(
        &'a self,
        id: &'a SessionId,
        range: EventRange,
    ) -> BoxFuture<'a, Result<Vec<Event>, StoreError>> {
        let sessions = self.sessions.lock().unwrap();
        let lines = sessions.get(id).map_or(&[][..], |(_, lines)| lines);
        let lines = lines.iter().skip(range.from as usize - 1).take(range.limit);
        let events: Vec<Event> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        self.reads.fetch_add(events.len(), Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(events)))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

fn open(log: &Arc<JsonLog>) -> Lango {
    let storage = Storage::Log(Arc::clone(log) as Arc<dyn EventLog>);
    let write = tool("fs_note", "Writes a note", |note: Note| async move {
        Ok(format!("wrote {}", note.text))
    });
    // The first call is granted for the session, every other one would be denied.
    let approver = approve_with(|approval| async move {
        match approval.request.arguments["text"].as_str() {
            Some("first") => ApprovalDecision::Answer(ApprovalAnswer::Session {
                pattern: approval.request.pattern.unwrap_or("*".into()),
            }),
            _ => ApprovalDecision::deny("not asked for"),
        }
    });
    Lango::builder()
        .tool(write.needs_approval())
        .approver(approver)
        .store(storage)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_log_alone_is_enough_for_sessions_across_programs() {
    let log = Arc::new(JsonLog::default());
    let session = open(&log).session();
    for message in ["hello", "make a plan for a picnic"] {
        let report = session.run(message).await.unwrap();
        assert_eq!(report.outcome.name(), "answered");
    }
    // Another program with its own index reads the history from the log.
    let again = open(&log).open(session.id().clone()).await.unwrap();
    again.run("hello again").await.unwrap();
    let events = again.events(1, 100).await.unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<u64>>());
    let questions = events.iter().filter(|event| event.author == "user").count();
    assert_eq!(questions, 3);
    // The first program notices the turn of the other one.
    session.run("hello").await.unwrap();
    assert_eq!(
        session.events(1, 100).await.unwrap().len(),
        events.len() + 3
    );
}

#[tokio::test]
async fn the_grants_of_a_session_are_read_from_the_log() {
    let log = Arc::new(JsonLog::default());
    let session = open(&log).session();
    let report = session
        .run(r#"use fs_note {"text": "first"}"#)
        .await
        .unwrap();
    assert_eq!(report.text(), "wrote first");
    let again = open(&log).open(session.id().clone()).await.unwrap();
    let report = again.run(r#"use fs_note {"text": "first"}"#).await.unwrap();
    assert_eq!(report.text(), "wrote first");
    let report = again.run(r#"use fs_note {"text": "other"}"#).await.unwrap();
    assert!(report.text().contains("not asked for"), "{}", report.text());
}

#[tokio::test]
async fn the_cost_of_a_turn_does_not_grow_with_the_log() {
    let log = Arc::new(JsonLog::default());
    let session = open(&log).session();
    for _ in 0..5 {
        session.run("hello").await.unwrap();
    }
    let before = log.reads.load(Ordering::Relaxed);
    for _ in 0..20 {
        session.run("hello").await.unwrap();
    }
    let read = log.reads.load(Ordering::Relaxed) - before;
    assert!(read <= 20 * 6, "20 turns read {read} events");
}

#[tokio::test]
async fn without_a_store_for_files_a_message_with_a_file_is_refused() {
    let session = open(&Arc::default()).session();
    let mut message = UserInput::from("what is in the file?");
    message.files.push(AttachedFile::text("a.txt", "rum"));
    let error = session.run(message).await.unwrap_err();
    assert!(error.to_string().contains("files"), "{error}");
}

#[tokio::test]
async fn sessions_leave_the_index_and_come_back() {
    let log = Arc::new(JsonLog::default());
    let lango = open(&log);
    let first = lango.session();
    first.run("hello").await.unwrap();
    for _ in 0..300 {
        lango.open(first.id().clone()).await.unwrap();
        let other = lango.session();
        other.run("hello").await.unwrap();
        lango.open(other.id().clone()).await.unwrap();
    }
    let again = lango.open(first.id().clone()).await.unwrap();
    again.run("hello").await.unwrap();
    assert_eq!(again.events(1, 100).await.unwrap().len(), 6);
}
