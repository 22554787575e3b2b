//! How long the id of a message is remembered, and when the same message opens a new task.

use super::memory::MemoryTasks;
use super::support::{TestServer, message, settings};
use lango_a2a::server::first_attempt;
use lango_core::{Clock, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const HOUR_MS: u64 = 60 * 60 * 1000;

/// A clock that a test moves.
struct MovedClock(AtomicU64);

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

async fn started() -> (TestServer, Arc<MovedClock>) {
    let clock = Arc::new(MovedClock(AtomicU64::new(1_800_000_000_000)));
    let tasks: Arc<MemoryTasks> = Arc::default();
    let server =
        TestServer::with_store(tasks.clone(), tasks, Arc::clone(&clock) as _, settings()).await;
    (server, clock)
}

async fn sent(server: &TestServer, params: &Value) -> Value {
    server.result("SendMessage", params.clone()).await["task"].take()
}

fn runs(server: &TestServer) -> usize {
    server.agent.runs.lock().unwrap().len()
}

#[tokio::test]
async fn a_repeated_message_returns_its_task_for_24_hours_after_the_end_and_then_opens_a_new_one() {
    let (server, clock) = started().await;
    let params = json!({ "message": message("work") });
    let first = sent(&server, &params).await;
    assert_eq!(first["status"]["state"], "TASK_STATE_COMPLETED");
    clock.0.fetch_add(24 * HOUR_MS, Ordering::SeqCst);
    assert_eq!(sent(&server, &params).await["id"], first["id"]);
    clock.0.fetch_add(1, Ordering::SeqCst);
    let second = sent(&server, &params).await;
    assert_ne!(second["id"], first["id"]);
    // The new one is remembered for just as long.
    clock.0.fetch_add(23 * HOUR_MS, Ordering::SeqCst);
    assert_eq!(sent(&server, &params).await["id"], second["id"]);
    assert_eq!(runs(&server), 2);
}

#[tokio::test]
async fn a_repeated_message_returns_its_unfinished_task_at_any_age() {
    let (server, clock) = started().await;
    for text in ["authorise", "hold"] {
        let mut params = json!({ "message": message(text) });
        params["configuration"] = json!({ "returnImmediately": true });
        let first = sent(&server, &params).await;
        clock.0.fetch_add(1000 * HOUR_MS, Ordering::SeqCst);
        assert_eq!(sent(&server, &params).await["id"], first["id"], "{text}");
    }
    assert_eq!(runs(&server), 2);
    server.agent.gate.add_permits(1);
}

#[tokio::test]
async fn a_repeated_message_starts_another_attempt_if_its_task_failed_before_the_start() {
    let (server, _) = started().await;
    let params = json!({ "message": message("fail-first") });
    let first = sent(&server, &params).await;
    assert_eq!(first["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(first["status"]["message"]["metadata"]["started"], false);
    // Two concurrent retries count as one message.
    let mut params = params;
    params["configuration"] = json!({ "returnImmediately": true });
    let (one, other) = tokio::join!(sent(&server, &params), sent(&server, &params));
    assert_ne!(one["id"], first["id"]);
    assert_eq!(one["id"], other["id"]);
    let work = |task: &Value| first_attempt(task["id"].as_str().unwrap()).to_owned();
    assert_eq!(work(&one), work(&first));
    assert_eq!(one["contextId"], first["contextId"]);
    server.agent.gate.add_permits(1);
    let done = server
        .wait_for_state(&one["id"], "TASK_STATE_COMPLETED")
        .await;
    assert_eq!(sent(&server, &params).await, done);
    assert_eq!(runs(&server), 2);
}

#[tokio::test]
async fn a_repeated_message_returns_a_task_that_failed_after_the_start() {
    let (server, _) = started().await;
    let params = json!({ "message": message("fail at work") });
    let first = sent(&server, &params).await;
    assert_eq!(first["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(sent(&server, &params).await, first);
    assert_eq!(runs(&server), 1);
}

#[tokio::test]
async fn a_message_whose_attempts_never_start_is_finally_refused() {
    let (server, _) = started().await;
    let params = json!({ "message": message("fail-before-start") });
    for _ in 0..65 {
        sent(&server, &params).await;
    }
    let refused = server.error("SendMessage", params).await.to_string();
    assert!(refused.contains("use a new id"), "{refused}");
}
