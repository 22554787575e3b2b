//! Somebody changes the log behind lango's back: the hashes tell where.

use super::{append, create, log, open};
use lango_core::{Page, SessionCatalog, SessionId, SessionQuery, SessionStore, StoreError};
use lango_testkit::session_store_contract::{Sketch, every_kind_of_event};
use rusqlite::Connection;

/// Stores a log of 33 events and a neighbour, does this to the file, and gives the place of the damage that is found.
async fn damage_after(tampering: &str) -> Result<u64, u64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    let neighbour = create(&store, "s_2").await;
    append(&store, every_kind_of_event(&session)).await;
    append(&store, Sketch::of(&neighbour).exchange("one", "1").batch()).await;
    let count = log(&store, &session).await.len();
    assert_eq!((store.verify(&session).await.unwrap(), count), (33, 33));
    let changed = Connection::open(&path)
        .unwrap()
        .execute(tampering, [])
        .unwrap();
    assert!(changed > 0, "nothing was changed");
    assert_eq!(store.verify(&neighbour).await.unwrap(), 3);
    match store.verify(&session).await {
        Err(StoreError::Damaged { id, seq, .. }) => {
            assert_eq!(id, "s_1");
            Err(seq)
        }
        other => Ok(other.unwrap()),
    }
}

#[tokio::test]
async fn a_change_of_any_column_is_found_where_it_was_made() {
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
async fn a_row_that_is_gone_added_or_moved_is_found() {
    let gone = "DELETE FROM events WHERE session = 's_1' AND seq = 5";
    assert_eq!(damage_after(gone).await, Err(6));
    let first_gone = "DELETE FROM events WHERE session = 's_1' AND seq = 1";
    assert_eq!(damage_after(first_gone).await, Err(2));
    let added = "INSERT INTO events (session, seq, turn, frame, time, body, author)
                 VALUES ('s_1', 34, 't_1', '', 1, '{\"type\":\"agent.rejected\",\"reason\":\"x\"}', 'operator')";
    assert_eq!(damage_after(added).await, Err(34));
    let moved = "UPDATE events SET seq = 34 WHERE session = 's_1' AND seq = 33";
    assert_eq!(damage_after(moved).await, Err(34));
    let blanked = "UPDATE events SET hash = x'' WHERE session = 's_1' AND seq <= 5";
    assert_eq!(damage_after(blanked).await, Err(6));
}

#[tokio::test]
async fn a_body_that_is_no_event_is_named_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let store = open(&path);
    let session = create(&store, "s_1").await;
    append(&store, Sketch::of(&session).exchange("one", "1").batch()).await;
    Connection::open(&path)
        .unwrap()
        .execute("UPDATE events SET body = '{' WHERE seq = 2", [])
        .unwrap();
    let read = store
        .read(&session, Page { from: 1, limit: 9 })
        .await
        .unwrap_err();
    let opened = store.open(&session).await.unwrap_err();
    for error in [read, opened] {
        assert!(
            matches!(&error, StoreError::Damaged { id, seq: 2, .. } if *id == "s_1"),
            "{error}"
        );
    }
    assert_eq!(
        store
            .read(&session, Page { from: 3, limit: 9 })
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_session_that_is_not_there_cannot_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("lango.db"));
    let error = store.verify(&SessionId::from("s_1")).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }));
}

#[tokio::test]
async fn bytes_that_are_not_text_are_damage_of_their_session_alone() {
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
            append(&store, Sketch::of(&session).exchange("one", "1").batch()).await;
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
            let error = store.open(&"s_1".into()).await.unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn an_id_that_is_not_text_keeps_nobody_from_the_ids_after_it() {
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
        assert!(seen.len() < 9, "it goes in circles: {seen:?}");
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
