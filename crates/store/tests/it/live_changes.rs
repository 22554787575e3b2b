//! Tests of notifications about changes by this process and by others.

use crate::archive::{postgresql, session, sqlite};
use futures_util::StreamExt as _;
use lango_core::{ChangeFeed, SessionId, SessionStore, StoreChange};
use lango_store::{LiveChanges, Store};
use lango_testkit::session_store_contract::LogBuilder;
use std::sync::Arc;
use std::time::Duration;

async fn append(store: &Arc<Store>, session: &SessionId) {
    let mut builder = LogBuilder::new(session).exchange("hello", "hi");
    store.append(builder.batch()).await.unwrap();
}

/// Waits for a change that may concern the session.
async fn wait_for_change(
    changes: &mut (impl futures_util::Stream<Item = StoreChange> + Unpin),
    id: &SessionId,
) {
    let concerns = |change: &StoreChange| match change {
        StoreChange::Session(session) => session == id,
        StoreChange::Anything => true,
        StoreChange::Task(_) => false,
    };
    let received = async { while !changes.next().await.as_ref().is_some_and(concerns) {} };
    let received = tokio::time::timeout(Duration::from_secs(5), received).await;
    received.expect("a change is notified");
}

#[tokio::test]
async fn a_change_of_this_process_is_notified() {
    let folder = tempfile::tempdir().unwrap();
    for store in [sqlite(&folder, "lango.db"), postgresql()] {
        let id = session(&store, "s_1", 1000).await;
        let mut changes = LiveChanges(Arc::clone(&store)).subscribe();
        append(&store, &id).await;
        wait_for_change(&mut changes, &id).await;
    }
}

#[tokio::test]
async fn a_change_of_another_process_is_notified() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (sqlite(&folder, "lango.db"), sqlite(&folder, "lango.db"));
    let id = session(&own, "s_1", 1000).await;
    let mut changes = LiveChanges(own).subscribe();
    tokio::time::sleep(Duration::from_millis(300)).await;
    append(&other, &id).await;
    wait_for_change(&mut changes, &id).await;
}
