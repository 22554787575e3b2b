//! Notifications of every change to sessions: by this process, and by others that use the same database.
//!
//! This process notifies itself after each commit. PostgreSQL passes on what other replicas notify. Other processes that write to
//! a SQLite file notify nobody, so its write-ahead log is watched instead: a commit changes the length or the time of that file.

use crate::engine::Engine;
use crate::store::Store;
use futures_util::stream::{self, StreamExt as _};
use lango_core::{BoxStream, Change, Changes, SessionId};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::broadcast::{self, error::RecvError};

/// Interval between two looks at the write-ahead log.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Changes that a subscriber may be late before it only hears [`Change::Anything`].
const MAX_PENDING: usize = 1024;

/// The sender of what this process changes.
pub(crate) struct OwnChanges(broadcast::Sender<Change>);

impl Default for OwnChanges {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_PENDING))
    }
}

impl OwnChanges {
    pub(crate) fn notify(&self, session: &SessionId) {
        if self.0.receiver_count() > 0 {
            // This fails if there is no subscriber any more.
            let _ = self.0.send(Change::Session(session.clone()));
        }
    }

    fn subscribe(&self) -> BoxStream<'static, Change> {
        let changes = stream::unfold(self.0.subscribe(), |mut received| async move {
            match received.recv().await {
                Ok(change) => Some((change, received)),
                Err(RecvError::Lagged(_)) => Some((Change::Anything, received)),
                Err(RecvError::Closed) => None,
            }
        });
        changes.boxed()
    }
}

/// A store whose [`Changes`] include those of this process.
pub struct LiveChanges(pub Arc<Store>);

impl Changes for LiveChanges {
    fn changes(&self) -> BoxStream<'static, Change> {
        let own = self.0.own_changes.subscribe();
        match &self.0.engine {
            Engine::Sqlite(sqlite) => match sqlite.path() {
                Some(path) => stream::select(own, watch(path)).boxed(),
                None => own,
            },
            Engine::Postgres(postgres) => stream::select(own, postgres.changes()).boxed(),
        }
    }
}

/// Watches the write-ahead log of a SQLite file.
fn watch(path: &Path) -> BoxStream<'static, Change> {
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
                return Some((Change::Anything, (log, seen)));
            }
        }
    });
    changes.boxed()
}

fn state_of(log: &Path) -> Option<(u64, SystemTime)> {
    let metadata = log.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}
