//! How long the id of a message is remembered, and when the same message runs anew.

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
        TestServer::over_any(tasks.clone(), tasks, Arc::clone(&clock) as _, settings()).await;
    (server, clock)
}

async fn sent(server: &TestServer, params: &Value) -> Value {
    server.result("SendMessage", params.clone()).await["task"].take()
}

fn runs(server: &TestServer) -> usize {
    server.agent.runs.lock().unwrap().len()
}

#[tokio::test]
async fn a_message_is_the_known_task_for_24_hours_after_its_end_and_then_a_new_one() {
    let (server, clock) = started().await;
    let params = json!({ "message": message("work") });
    let first = sent(&server, &params).await;
    assert_eq!(first["status"]["state"], "TASK_STATE_COMPLETED");
    clock.0.fetch_add(24 * HOUR_MS, Ordering::SeqCst);
    assert_eq!(sent(&server, &params).await["id"], first["id"]);
    clock.0.fetch_add(1, Ordering::SeqCst);
    let second = sent(&server, &params).await;
    assert_ne!(second["id"], first["id"]);
    // The new one is remembered as long.
    clock.0.fetch_add(23 * HOUR_MS, Ordering::SeqCst);
    assert_eq!(sent(&server, &params).await["id"], second["id"]);
    assert_eq!(runs(&server), 2);
}

#[tokio::test]
async fn a_task_that_has_not_ended_is_known_however_old_it_is() {
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
async fn a_task_that_failed_before_anything_ran_is_run_anew_by_the_same_message() {
    let (server, _) = started().await;
    let params = json!({ "message": message("fail-first") });
    let first = sent(&server, &params).await;
    assert_eq!(first["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(first["status"]["message"]["metadata"]["started"], false);
    // Two retries at once are one message.
    let mut params = params;
    params["configuration"] = json!({ "returnImmediately": true });
    let (one, other) = tokio::join!(sent(&server, &params), sent(&server, &params));
    assert_ne!(one["id"], first["id"]);
    assert_eq!(one["id"], other["id"]);
    let work = |task: &Value| first_attempt(task["id"].as_str().unwrap()).to_owned();
    assert_eq!(work(&one), work(&first));
    assert_eq!(one["contextId"], first["contextId"]);
    server.agent.gate.add_permits(1);
    let done = server.until(&one["id"], "TASK_STATE_COMPLETED").await;
    assert_eq!(sent(&server, &params).await, done);
    assert_eq!(runs(&server), 2);
}

#[tokio::test]
async fn a_task_that_failed_at_work_is_the_answer_to_the_same_message() {
    let (server, _) = started().await;
    let params = json!({ "message": message("fail at work") });
    let first = sent(&server, &params).await;
    assert_eq!(first["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(sent(&server, &params).await, first);
    assert_eq!(runs(&server), 1);
}

#[tokio::test]
async fn a_message_that_never_gets_to_run_is_refused_in_the_end() {
    let (server, _) = started().await;
    let params = json!({ "message": message("fail-before-start") });
    for _ in 0..65 {
        sent(&server, &params).await;
    }
    let refused = server.error("SendMessage", params).await.to_string();
    assert!(refused.contains("use a new id"), "{refused}");
}
