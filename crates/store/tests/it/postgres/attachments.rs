//! Tests of attachments in a shared database: concurrent puts and deletions, and writes that are sent twice.

use super::proxy::Proxy;
use super::{at, count, create, execute};
use lango_core::{AttachmentStore, BusyPolicy, SessionStore, UserId};
use lango_store::archive::remove_hidden;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::{LogBuilder, attachment};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_postgres::NoTls;

/// The statements of a put of `hello`.
const PUT: &str = r#"
    INSERT INTO attachments SELECT "user", digest, bytes FROM attachments
        ON CONFLICT ("user", digest) DO UPDATE SET digest = excluded.digest;
    INSERT INTO attachment_puts SELECT "user", digest, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM attachments"#;

async fn counts(address: &str) -> [i64; 3] {
    [
        count(address, "attachments").await,
        count(address, "attachment_references").await,
        count(address, "attachment_puts").await,
    ]
}

#[tokio::test]
async fn a_deletion_waits_for_a_put_of_the_same_bytes_and_keeps_them() {
    let address = postgres::fresh_schema();
    let store = at(&address);
    let (user, session) = (UserId::from("local"), create(&store, "s_1").await);
    let digest = store.put(&user, Arc::from(*b"hello")).await.unwrap();
    let file = attachment("hello.txt", &digest, 5);
    let batch = LogBuilder::new(&session).ask("see").attach(&file).batch();
    store.append(batch).await.unwrap();
    assert!(store.hide_session(&session, None).await.unwrap());

    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute(&format!("BEGIN; {PUT}"))
        .await
        .unwrap();
    let deletion = remove_hidden(&store, &session);
    let put = async {
        // This waits until the deletion waits for the lock.
        let waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while client.query(waiting, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        client.batch_execute("COMMIT").await.unwrap();
    };
    let (deleted, ()) = tokio::join!(deletion, put);
    deleted.unwrap();
    assert_eq!(counts(&address).await, [1, 0, 1]);
    let read = AttachmentStore::read(&store, &user, &digest).await.unwrap();
    assert_eq!(read.as_deref(), Some(&b"hello"[..]));
}

#[tokio::test]
async fn an_append_whose_reply_was_lost_refers_to_its_attachments_once() {
    let address = postgres::fresh_schema();
    let proxy = Proxy::to(&address).await;
    let store = at(&proxy.address);
    let user = UserId::from("local");
    let session = create(&store, "s_1").await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let _lease = lease.unwrap_or_else(|error| panic!("{error}"));
    for number in 0..2 {
        proxy.lose("bytes that are put");
        let bytes = Arc::from(*b"bytes that are put");
        let digest = store.put(&user, bytes).await.unwrap();
        assert_eq!(proxy.lost.load(Ordering::Relaxed), 2 * number + 1);
        let file = attachment("file.txt", &digest, 18);
        proxy.lose("see and never come back");
        let batch = LogBuilder::new(&session).at(number + 1);
        let batch = batch.ask("see and never come back").attach(&file).batch();
        store.append(batch).await.unwrap();
        assert_eq!(proxy.lost.load(Ordering::Relaxed), 2 * number + 2);
        let [bytes, references, _] = counts(&address).await;
        assert_eq!([bytes, references], [1, 1]);
    }
    assert_eq!(store.verify(&session).await.unwrap(), 2);
    // The duplicate puts are not consumed, and expire.
    execute(
        &address,
        "UPDATE attachment_puts SET time = time - 86400001",
    )
    .await;
    assert!(store.hide_session(&session, None).await.unwrap());
    remove_hidden(&store, &session).await.unwrap();
    assert_eq!(counts(&address).await, [0; 3]);
}
