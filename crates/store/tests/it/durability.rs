//! Tests that acknowledged writes are stored: after a restart, with another process on the same file, and if the caller stops
//! waiting.

use super::{ROOT, append, create, log, open};
use lango_core::{SessionStore, StoreError};
use lango_store::Store;
use lango_testkit::session_store_contract::{LogBuilder, every_kind_of_event};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[tokio::test]
async fn a05_a_restart_preserves_the_author_of_every_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    append(&store, every_kind_of_event(&session)).await;
    let before = log(&store, &session).await;
    let head = store.read_head(&session).await.unwrap();
    drop(store);
    let store = open(&path);
    assert_eq!(log(&store, &session).await, before);
    assert_eq!(store.read_head(&session).await.unwrap(), head);
}

#[tokio::test]
async fn a07_another_root_agent_changes_no_stored_author() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    let mut builder = LogBuilder::new(&session)
        .ask("go")
        .say("removed-remote", "c_1", "half")
        .say(ROOT, "", "done")
        .finish();
    append(&store, builder.batch()).await;
    drop(store);
    let store = Store::open_sqlite(&path, "another-root".into()).unwrap();
    let authors: Vec<_> = log(&store, &session)
        .await
        .into_iter()
        .map(|event| event.author)
        .collect();
    assert_eq!(authors, ["user", "removed-remote", ROOT, "test-root"]);
    let head = store.read_head(&session).await.unwrap();
    assert_eq!(head.exchanges[0].answer.as_ref().unwrap().author, ROOT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn acknowledged_writes_are_visible_to_the_next_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = Arc::new(open(&path));
    let stored = Arc::new(AtomicU64::new(0));
    let writers = (0..8).map(|number| {
        let (store, stored) = (Arc::clone(&store), Arc::clone(&stored));
        tokio::spawn(async move {
            let session = create(&*store, &format!("s_{number}")).await;
            let mut builder = LogBuilder::new(&session);
            for turn in 1..=20 {
                builder = builder.exchange("one", "1");
                append(&*store, builder.batch()).await;
                let head = store.read_head(&session).await.unwrap();
                assert_eq!((head.turns, head.next_seq), (turn, 3 * turn + 1));
                stored.fetch_add(3, Ordering::Relaxed);
            }
            store.verify(&session).await.unwrap()
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        assert_eq!(writer.await.unwrap(), 60);
    }
    assert_eq!(stored.load(Ordering::Relaxed), 480);
}

#[tokio::test]
async fn two_processes_on_one_file_never_write_the_same_event() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let (left, right) = (open(&path), open(&path));
    let session = create(&left, "s_1").await;
    let mut builder = LogBuilder::new(&session).exchange("one", "1");
    let batch = builder.batch();
    append(&left, batch.clone()).await;
    let error = right.append(batch).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
    assert_eq!(log(&right, &session).await.len(), 3);
    append(&right, builder.exchange("two", "2").batch()).await;
    drop(left);
    assert_eq!(right.verify(&session).await.unwrap(), 6);
}

#[tokio::test]
async fn queued_writes_are_stored_even_if_no_caller_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    let mut builder = LogBuilder::new(&session);
    for _ in 0..30 {
        builder = builder.exchange("one", "1");
        // One poll queues the batch. Then the future is dropped.
        tokio::select! {
            biased;
            _ = store.append(builder.batch()) => {}
            () = std::future::ready(()) => {}
        }
    }
    drop(store);
    let store = open(&path);
    assert_eq!(store.verify(&session).await.unwrap(), 90);
}
