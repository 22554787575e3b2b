//! Notifies subscribers of every change to sessions, by this process and by others that use the same database.
//!
//! This process notifies itself after each commit, and PostgreSQL delivers the notifications of other replicas. Other
//! processes that write to a SQLite file send none, so lango watches the write-ahead log of that file: a commit changes
//! the log's length or time.

use crate::backend::Backend;
use crate::store::Store;
use futures_util::stream::{self, StreamExt as _};
use lango_core::{BoxStream, ChangeFeed, SessionId, StoreChange};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::broadcast::{self, error::RecvError};

/// Interval between checks of the write-ahead log.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Number of changes that a subscriber may lag behind before it only gets [`StoreChange::Anything`].
const MAX_PENDING: usize = 1024;

/// The sender of notifications about this process's own changes.
pub(crate) struct OwnChanges(broadcast::Sender<StoreChange>);

impl Default for OwnChanges {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_PENDING))
    }
}

impl OwnChanges {
    pub(crate) fn notify(&self, session: &SessionId) {
        if self.0.receiver_count() > 0 {
            // This fails if the last subscriber has just left.
            let _ = self.0.send(StoreChange::Session(session.clone()));
        }
    }

    fn subscribe(&self) -> BoxStream<'static, StoreChange> {
        let changes = stream::unfold(self.0.subscribe(), |mut received| async move {
            match received.recv().await {
                Ok(change) => Some((change, received)),
                Err(RecvError::Lagged(_)) => Some((StoreChange::Anything, received)),
                Err(RecvError::Closed) => None,
            }
        });
        changes.boxed()
    }
}

/// A store whose [`ChangeFeed`] also reports the changes made by this process.
pub struct LiveChanges(pub Arc<Store>);

impl ChangeFeed for LiveChanges {
    fn subscribe(&self) -> BoxStream<'static, StoreChange> {
        let own = self.0.own_changes.subscribe();
        match &self.0.backend {
            Backend::Sqlite(sqlite) => match sqlite.path() {
                Some(path) => stream::select(own, watch(path)).boxed(),
                None => own,
            },
            Backend::Postgres(postgres) => stream::select(own, postgres.subscribe()).boxed(),
        }
    }
}

/// Watches the write-ahead log of a SQLite file.
fn watch(path: &Path) -> BoxStream<'static, StoreChange> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    let seen = state_of(&log);
    let changes = stream::unfold((log, seen), |(log, mut seen)| async move {
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let found = state_of(&log);
            if found != seen {
                seen = found;
                return Some((StoreChange::Anything, (log, seen)));
            }
        }
    });
    changes.boxed()
}

fn state_of(log: &Path) -> Option<(u64, SystemTime)> {
    let metadata = log.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}
