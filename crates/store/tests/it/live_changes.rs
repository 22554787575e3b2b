//! Notifications of changes by this process and by others.

use crate::archive::{postgresql, session, sqlite};
use futures_util::StreamExt as _;
use lango_core::{Change, Changes, SessionId, SessionStore};
use lango_store::{LiveChanges, Store};
use lango_testkit::session_store_contract::Sketch;
use std::sync::Arc;
use std::time::Duration;

async fn append(store: &Arc<Store>, session: &SessionId) {
    let mut sketch = Sketch::of(session).exchange("hello", "hi");
    store.append(sketch.batch()).await.unwrap();
}

/// Waits for a change that may concern the session.
async fn hear(changes: &mut (impl futures_util::Stream<Item = Change> + Unpin), id: &SessionId) {
    let concerns = |change: &Change| match change {
        Change::Session(session) => session == id,
        Change::Anything => true,
        Change::Task(_) => false,
    };
    let heard = async { while !changes.next().await.as_ref().is_some_and(concerns) {} };
    let heard = tokio::time::timeout(Duration::from_secs(5), heard).await;
    heard.expect("a change is notified");
}

#[tokio::test]
async fn a_change_of_this_process_is_notified() {
    let folder = tempfile::tempdir().unwrap();
    for store in [sqlite(&folder, "lango.db"), postgresql()] {
        let id = session(&store, "s_1", 1000).await;
        let mut changes = LiveChanges(Arc::clone(&store)).changes();
        append(&store, &id).await;
        hear(&mut changes, &id).await;
    }
}

#[tokio::test]
async fn a_change_of_another_process_is_notified() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (sqlite(&folder, "lango.db"), sqlite(&folder, "lango.db"));
    let id = session(&here, "s_1", 1000).await;
    let mut changes = LiveChanges(here).changes();
    tokio::time::sleep(Duration::from_millis(300)).await;
    append(&there, &id).await;
    hear(&mut changes, &id).await;
}
