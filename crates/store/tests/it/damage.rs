//! Tests that the hashes detect where a log was tampered with.

use super::{append, create, log, open};
use lango_core::{EventRange, SessionCatalog, SessionId, SessionQuery, SessionStore, StoreError};
use lango_testkit::session_store_contract::{LogBuilder, every_kind_of_event};
use rusqlite::Connection;

/// Stores a log of 35 events and another session, tampers with the file, and verifies the log. The error is the `seq` of the
/// damaged event.
async fn damage_after(tampering: &str) -> Result<u64, u64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    let other = create(&store, "s_2").await;
    append(&store, every_kind_of_event(&session)).await;
    append(&store, LogBuilder::new(&other).exchange("one", "1").batch()).await;
    let count = log(&store, &session).await.len();
    assert_eq!((store.verify(&session).await.unwrap(), count), (35, 35));
    let changed = Connection::open(&path)
        .unwrap()
        .execute(tampering, [])
        .unwrap();
    assert!(changed > 0, "nothing was changed");
    assert_eq!(store.verify(&other).await.unwrap(), 3);
    match store.verify(&session).await {
        Err(StoreError::Damaged { id, seq, .. }) => {
            assert_eq!(id, "s_1");
            Err(seq)
        }
        other => Ok(other.unwrap()),
    }
}

#[tokio::test]
async fn a_change_to_any_column_is_found_at_its_event() {
    for change in [
        "body = replace(body, 'let me see', 'let me not see')",
        "body = body || ' '",
        "author = 'user'",
        "turn = 't_9'",
        "frame = 'c_9'",
        "time = time + 1",
        "hash = zeroblob(32)",
        "hash = x''",
    ] {
        let tampering = format!("UPDATE events SET {change} WHERE session = 's_1' AND seq = 3");
        assert_eq!(damage_after(&tampering).await, Err(3), "{change}");
    }
}

#[tokio::test]
async fn deleted_added_and_moved_rows_are_found() {
    let deleted = "DELETE FROM events WHERE session = 's_1' AND seq = 5";
    assert_eq!(damage_after(deleted).await, Err(6));
    let first_deleted = "DELETE FROM events WHERE session = 's_1' AND seq = 1";
    assert_eq!(damage_after(first_deleted).await, Err(2));
    let added = "INSERT INTO events (session, seq, turn, frame, time, body, author)
                 VALUES ('s_1', 36, 't_1', '', 1, '{\"type\":\"agent.rejected\",\"reason\":\"x\"}', 'operator')";
    assert_eq!(damage_after(added).await, Err(36));
    let moved = "UPDATE events SET seq = 36 WHERE session = 's_1' AND seq = 35";
    assert_eq!(damage_after(moved).await, Err(36));
    let blanked = "UPDATE events SET hash = x'' WHERE session = 's_1' AND seq <= 5";
    assert_eq!(damage_after(blanked).await, Err(6));
}

#[tokio::test]
async fn an_invalid_body_is_reported_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    append(
        &store,
        LogBuilder::new(&session).exchange("one", "1").batch(),
    )
    .await;
    Connection::open(&path)
        .unwrap()
        .execute("UPDATE events SET body = '{' WHERE seq = 2", [])
        .unwrap();
    let read = store
        .read(&session, EventRange { from: 1, limit: 9 })
        .await
        .unwrap_err();
    let opened = store.read_head(&session).await.unwrap_err();
    for error in [read, opened] {
        assert!(
            matches!(&error, StoreError::Damaged { id, seq: 2, .. } if *id == "s_1"),
            "{error}"
        );
    }
    assert_eq!(
        store
            .read(&session, EventRange { from: 3, limit: 9 })
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_missing_session_cannot_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("lango.db"));
    let error = store.verify(&SessionId::from("s_1")).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }));
}

#[tokio::test]
async fn invalid_utf8_damages_only_its_own_session() {
    for change in [
        "UPDATE events SET body = CAST(x'7bff7d' AS TEXT) WHERE session = 's_1' AND seq = 2",
        "UPDATE events SET turn = CAST(x'74ff' AS TEXT) WHERE session = 's_1' AND seq = 2",
        "UPDATE sessions SET title = CAST(x'41ff' AS TEXT) WHERE id = 's_1'",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lango.db");
        let store = open(&path);
        for id in ["s_1", "s_2"] {
            let session = create(&store, id).await;
            append(
                &store,
                LogBuilder::new(&session).exchange("one", "1").batch(),
            )
            .await;
        }
        let database = Connection::open(&path).unwrap();
        assert_eq!(database.execute(change, []).unwrap(), 1);
        let listed = store
            .list(&"local".into(), SessionQuery::recent(9))
            .await
            .unwrap();
        assert_eq!(listed.len(), 2, "{change}");
        let error = store.verify(&"s_1".into()).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Damaged { id, .. } if *id == "s_1"),
            "{change}: {error}"
        );
        assert_eq!(store.verify(&"s_2".into()).await.unwrap(), 3);
        if change.contains("body") {
            let error = store.read_head(&"s_1".into()).await.unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn an_id_with_invalid_utf8_does_not_hide_the_ids_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    for id in ["s_1", "s_2", "s_3"] {
        create(&store, id).await;
    }
    let database = Connection::open(&path).unwrap();
    let tampering = "UPDATE sessions SET id = CAST(x'735f32ff' AS TEXT) WHERE id = 's_2'";
    assert_eq!(database.execute(tampering, []).unwrap(), 1);
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store
            .session_ids(&"local".into(), after.as_ref(), 2)
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        seen.extend(page);
        assert!(seen.len() < 9, "the pages repeat: {seen:?}");
    }
    assert_eq!(seen, ["s_1", "s_2\u{fffd}", "s_3"]);
    assert_eq!(
        store
            .list(&"local".into(), SessionQuery::recent(9))
            .await
            .unwrap()
            .len(),
        3
    );
}
