//! Processes that die while turns run, and several processes over one database: each task is completed exactly once.

use crate::support::{TestServer, message};
use lango_core::{
    BoxStream, BusyPolicy, Effect, EventBody, EventRange, Model, ModelError, ModelEvent, ModelInfo,
    ModelRequest, SessionStore, Tool, UserId,
};
use lango_server::TaskRunner;
use lango_store::{PostgresOptions, Store};
use lango_testkit::model::{ScriptedModel, call, delegate_and_finish, say};
use lango_testkit::postgres;
use lango_testkit::tool::CountingTool;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

fn answer(task: &Value) -> &str {
    let text = task["artifacts"][0]["parts"][0]["text"].as_str();
    text.unwrap_or_default()
}

/// A model that never answers. Clones share the count of calls.
#[derive(Default, Clone)]
struct SilentModel {
    calls: Arc<AtomicUsize>,
}

impl SilentModel {
    async fn wait_for_call(&self) {
        wait_until(|| self.calls.load(Ordering::SeqCst) == 1).await;
    }
}

impl Model for SilentModel {
    fn name(&self) -> &str {
        "silent"
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    fn call<'a>(&'a self, _: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(futures_util::stream::pending())
    }
}

async fn wait_until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let timeout = Duration::from_secs(30);
    tokio::time::timeout(timeout, waiting)
        .await
        .expect("the condition is true in time");
}

/// Returns the kinds of all events of a conversation's session.
async fn kinds(server: &TestServer, context: &str) -> Vec<&'static str> {
    let session = TaskRunner::session_of(&UserId::from("a2a"), context);
    let all = EventRange {
        from: 1,
        limit: 1000,
    };
    let events = SessionStore::read(&*server.store, &session, all)
        .await
        .unwrap();
    events.iter().map(|event| event.body.kind()).collect()
}

fn count(kinds: &[&str], kind: &str) -> usize {
    kinds.iter().filter(|other| **other == kind).count()
}

#[test]
fn the_next_process_answers_an_accepted_message_whose_turn_had_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let first = Runtime::new().unwrap();
    let id = first.block_on(async {
        let server = TestServer::start(folder.path(), ScriptedModel::replies([]), vec![]).await;
        // The session is busy, so the turn is queued and is not in the log.
        let session = TaskRunner::session_of(&UserId::from("a2a"), "c-1");
        let lease = server
            .store
            .acquire(&session, BusyPolicy::Refuse)
            .await
            .unwrap();
        let id = server.start_task("m-1", "hello", Some("c-1")).await["id"].clone();
        server.wait_for_state(&id, "TASK_STATE_WORKING").await;
        // The lease is released when the runtime ends.
        tokio::spawn(async move {
            let _lease = lease;
            std::future::pending::<()>().await;
        });
        id
    });
    drop(first);
    let second = Runtime::new().unwrap();
    second.block_on(async {
        let model = ScriptedModel::replies([say("Here I am.")]);
        let server = TestServer::start(folder.path(), model, vec![]).await;
        let task = server.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
        assert_eq!(answer(&task), "Here I am.");
        // The caller that got no answer retries.
        let mut params = message("m-1", "hello");
        params["message"]["contextId"] = json!("c-1");
        let again = server.rpc("SendMessage", params).await;
        assert_eq!(again["result"]["task"], task);
        assert_eq!(count(&kinds(&server, "c-1").await, "user.message"), 1);
        server.stop().await;
    });
}

#[test]
fn an_interrupted_turn_is_resumed_and_its_task_ends_with_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let first = Runtime::new().unwrap();
    let id = first.block_on(async {
        let model = SilentModel::default();
        let server = TestServer::start(folder.path(), model.clone(), vec![]).await;
        let id = server.start_task("m-1", "hello", Some("c-1")).await["id"].clone();
        model.wait_for_call().await;
        id
    });
    // Like a killed process: nothing is cleaned up.
    drop(first);
    let second = Runtime::new().unwrap();
    second.block_on(async {
        let model = ScriptedModel::replies([say("After all.")]);
        let server = TestServer::start(folder.path(), model, vec![]).await;
        let task = server.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
        assert_eq!(answer(&task), "After all.");
        let kinds = kinds(&server, "c-1").await;
        assert_eq!(count(&kinds, "user.message"), 1, "{kinds:?}");
        assert_eq!(count(&kinds, "turn.finished"), 1, "{kinds:?}");
        server.stop().await;
    });
}

#[test]
fn a_pure_call_is_repeated_and_a_call_with_effect_waits_for_a_person() {
    for effect in [Effect::Pure, Effect::NonIdempotent] {
        let folder = tempfile::tempdir().unwrap();
        let first = Runtime::new().unwrap();
        let id = first.block_on(async {
            let stuck = CountingTool::new("fs_do")
                .with_effect(effect)
                .never_returning();
            let stuck = Arc::new(stuck);
            let model = ScriptedModel::replies([
                delegate_and_finish("operator", "do it"),
                call("fs_do", json!({})),
            ]);
            let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&stuck) as _];
            let server = TestServer::start(folder.path(), model, tools).await;
            let id = server.start_task("m-1", "do it", Some("c-1")).await["id"].clone();
            wait_until(|| stuck.runs() == 1).await;
            // The call of a pure tool is stored up to 20 ms later.
            while count(&kinds(&server, "c-1").await, "tool.called") == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            id
        });
        drop(first);
        let second = Runtime::new().unwrap();
        second.block_on(async {
            let tool = Arc::new(CountingTool::new("fs_do").with_effect(effect));
            let model = ScriptedModel::replies([say("Done.")]);
            let tools: Vec<Arc<dyn Tool>> = vec![Arc::clone(&tool) as _];
            let server = TestServer::start(folder.path(), model, tools).await;
            if effect == Effect::Pure {
                let task = server.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
                assert_eq!((answer(&task), tool.runs()), ("Done.", 1));
            } else {
                let task = server.wait_for_state(&id, "TASK_STATE_AUTH_REQUIRED").await;
                let text = task["status"]["message"]["parts"][0]["text"]
                    .as_str()
                    .unwrap();
                assert!(text.contains("is unknown"), "{text}");
                assert_eq!(tool.runs(), 0);
                // The task can be cancelled.
                let cancelled = server.rpc("CancelTask", json!({ "id": id })).await;
                assert_eq!(
                    cancelled["result"]["status"]["state"],
                    "TASK_STATE_CANCELED"
                );
            }
            server.stop().await;
        });
    }
}

#[test]
fn the_tasks_of_a_conversation_are_resumed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let first = Runtime::new().unwrap();
    let ids: Vec<Value> = first.block_on(async {
        let model = SilentModel::default();
        let server = TestServer::start(folder.path(), model.clone(), vec![]).await;
        let mut ids = Vec::new();
        for number in 1..=4 {
            let text = format!("question {number}");
            let id = format!("m-{number}");
            ids.push(server.start_task(&id, &text, Some("c-1")).await["id"].clone());
            model.wait_for_call().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        ids
    });
    drop(first);
    let second = Runtime::new().unwrap();
    second.block_on(async {
        let model = ScriptedModel::replies((1..=4).map(|number| say(&format!("answer {number}"))));
        let server = TestServer::start(folder.path(), model, vec![]).await;
        for (index, id) in ids.iter().enumerate() {
            let task = server.wait_for_state(id, "TASK_STATE_COMPLETED").await;
            assert_eq!(answer(&task), format!("answer {}", index + 1));
        }
        let kinds = kinds(&server, "c-1").await;
        assert_eq!(count(&kinds, "user.message"), 4, "{kinds:?}");
        server.stop().await;
    });
}

#[tokio::test]
async fn the_next_server_resumes_the_turns_of_a_server_that_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let model = SilentModel::default();
    let server = TestServer::start(folder.path(), model.clone(), vec![]).await;
    let running = server.start_task("m-1", "one", Some("c-1")).await["id"].clone();
    model.wait_for_call().await;
    let queued = server.start_task("m-2", "two", Some("c-1")).await["id"].clone();
    server.stop_within(Duration::ZERO).await;

    let model = ScriptedModel::replies([say("One."), say("Two.")]);
    let server = TestServer::start(folder.path(), model, vec![]).await;
    let task = server
        .wait_for_state(&running, "TASK_STATE_COMPLETED")
        .await;
    assert_eq!(answer(&task), "One.");
    let task = server.wait_for_state(&queued, "TASK_STATE_COMPLETED").await;
    assert_eq!(answer(&task), "Two.");
    server.stop().await;
}

#[tokio::test]
async fn a_turn_of_one_server_can_be_followed_and_cancelled_through_another() {
    let folder = tempfile::tempdir().unwrap();
    let model = SilentModel::default();
    let one = TestServer::start(folder.path(), model.clone(), vec![]).await;
    let other = TestServer::start(folder.path(), ScriptedModel::replies([]), vec![]).await;
    let id = one.start_task("m-1", "hello", Some("c-1")).await["id"].clone();
    model.wait_for_call().await;
    let listed = other.rpc("ListTasks", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["id"], id);
    let params = json!({ "id": id });
    let (events, cancelled) = tokio::join!(
        other.stream("SubscribeToTask", params.clone()),
        other.rpc("CancelTask", params.clone()),
    );
    assert_eq!(
        cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED",
        "{cancelled}"
    );
    let last = events.last().unwrap();
    assert_eq!(
        last["statusUpdate"]["status"],
        cancelled["result"]["status"]
    );
    let session = TaskRunner::session_of(&UserId::from("a2a"), "c-1");
    let all = EventRange {
        from: 1,
        limit: 100,
    };
    let events = SessionStore::read(&*one.store, &session, all)
        .await
        .unwrap();
    let is_end = |body: &EventBody| matches!(body, EventBody::TurnFinished { .. });
    assert_eq!(events.iter().filter(|event| is_end(&event.body)).count(), 1);
    one.stop().await;
    other.stop().await;
}

#[test]
fn another_server_completes_the_task_of_a_dead_one() {
    let folder = tempfile::tempdir().unwrap();
    let survivor = Runtime::new().unwrap();
    let model = ScriptedModel::replies([say("Taken over.")]);
    let server = survivor.block_on(TestServer::start(folder.path(), model, vec![]));
    let dying = Runtime::new().unwrap();
    let id = dying.block_on(async {
        let model = SilentModel::default();
        let server = TestServer::start(folder.path(), model.clone(), vec![]).await;
        let id = server.start_task("m-1", "hello", Some("c-1")).await["id"].clone();
        model.wait_for_call().await;
        id
    });
    survivor.block_on(async {
        let params = json!({ "id": id });
        let (events, ()) = tokio::join!(server.stream("SubscribeToTask", params), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let died = tokio::task::spawn_blocking(move || drop(dying));
            died.await.unwrap();
        });
        let last = &events.last().unwrap()["statusUpdate"]["status"]["state"];
        assert_eq!(last, "TASK_STATE_COMPLETED", "{events:?}");
        let task = server.wait_for_state(&id, "TASK_STATE_COMPLETED").await;
        assert_eq!(answer(&task), "Taken over.");
        server.stop().await;
    });
}

/// Opens the store of a replica, on a PostgreSQL database that it shares with others.
fn shared_store(address: &str) -> Arc<Store> {
    let options = PostgresOptions {
        lease: Duration::from_secs(3),
        ..PostgresOptions::default()
    };
    Arc::new(Store::postgres_with(address, "lango-orchestrator".into(), options).unwrap())
}

#[test]
fn a_replica_cancels_and_takes_over_the_tasks_of_another() {
    let address = postgres::fresh_schema();
    let dying = Runtime::new().unwrap();
    let silent = SilentModel::default();
    let ids: Vec<Value> = dying.block_on(async {
        let server = TestServer::over(shared_store(&address), silent.clone(), vec![]).await;
        let mut ids = Vec::new();
        for number in 1..=3 {
            let (id, text) = (format!("m-{number}"), format!("question {number}"));
            ids.push(server.start_task(&id, &text, Some("c-1")).await["id"].clone());
            silent.wait_for_call().await;
        }
        ids
    });
    let survivor = Runtime::new().unwrap();
    survivor.block_on(async {
        let replies = (1..=3).map(|number| say(&format!("answer {number}")));
        let model = ScriptedModel::replies(replies);
        let server = TestServer::over(shared_store(&address), model, vec![]).await;
        // While the other replica is alive, it runs its tasks, and performs cancels that this replica accepts.
        let taken = server.rpc("GetTask", json!({ "id": ids[0] })).await;
        assert_eq!(answer(&taken["result"]), "");
        let cancelled = server.rpc("CancelTask", json!({ "id": ids[2] })).await;
        let state = &cancelled["result"]["status"]["state"];
        assert_eq!(state, "TASK_STATE_CANCELED", "{cancelled}");
        let died = tokio::task::spawn_blocking(move || drop(dying));
        died.await.unwrap();
        for (index, id) in ids[..2].iter().enumerate() {
            let task = server.wait_for_state(id, "TASK_STATE_COMPLETED").await;
            assert_eq!(answer(&task), format!("answer {}", index + 1));
        }
        let kinds = kinds(&server, "c-1").await;
        assert_eq!(count(&kinds, "user.message"), 2, "{kinds:?}");
        server.stop().await;
    });
}
