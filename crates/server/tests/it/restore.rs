//! Tasks in a restored database whose turn had not started when the backup was made.

use crate::support::TestServer;
use lango_core::{BusyPolicy, SessionStore as _, Timestamp, UserId};
use lango_server::{InFlight, RestoredStore, TaskRunner};
use lango_store::Store;
use lango_testkit::model::{ScriptedModel, say};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;

#[test]
fn the_server_asks_about_a_task_whose_turn_had_not_started_at_the_backup() {
    let folder = tempfile::tempdir().unwrap();
    let first = Runtime::new().unwrap();
    let id = first.block_on(async {
        let server = TestServer::start(folder.path(), ScriptedModel::replies([]), vec![]).await;
        // The session is busy, so the turn waits and is not in the log.
        let session = TaskRunner::session_of(&UserId::from("a2a"), "c-1");
        let lease = server.store.acquire(&session, BusyPolicy::Refuse).await;
        let lease = lease.unwrap();
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
        let root = "lango-orchestrator".into();
        let store = Store::open_sqlite(folder.path().join("lango.db"), "root".into()).unwrap();
        let restored = RestoredStore {
            sessions: &store,
            catalog: &store,
            tasks: &store,
            root: &root,
        };
        let expected = InFlight { turns: 0, tasks: 1 };
        for _ in 0..2 {
            let marked = restored.mark_in_flight(Timestamp(1000)).await.unwrap();
            assert_eq!(marked, expected);
        }
        drop(store);
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let model = ScriptedModel::from_fn(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            say("done")
        });
        let server = TestServer::start(folder.path(), model, vec![]).await;
        let task = server.wait_for_state(&id, "TASK_STATE_AUTH_REQUIRED").await;
        let text = task.to_string();
        assert!(text.contains("restored from a backup"), "{text}");
        assert_eq!(calls.load(Ordering::SeqCst), 0, "the model was called");
        // A message after the restore is not affected.
        let other = server.start_task("m-2", "hello", Some("c-2")).await["id"].clone();
        server.wait_for_state(&other, "TASK_STATE_COMPLETED").await;
    });
}
