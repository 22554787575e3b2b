//! What other copies changed, as a hint to look.

use super::PostgresStore;
use super::leases::Changed;
use lango_core::{BoxStream, Change};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// What other copies of lango changed in the same database, from now on.
///
/// These are hints: one can come late, twice, or for nothing, and when any may have been missed
/// [`Changed::Anything`] says so. What is so is in the database.
pub struct Changes(pub(super) Receiver<Changed>);

impl Changes {
    /// The next hint; none when the store is gone.
    pub async fn next(&mut self) -> Option<Changed> {
        match self.0.recv().await {
            Ok(changed) => Some(changed),
            Err(RecvError::Lagged(_)) => Some(Changed::Anything),
            Err(RecvError::Closed) => None,
        }
    }
}

impl lango_core::Changes for PostgresStore {
    fn changes(&self) -> BoxStream<'static, Change> {
        let changes = Changes(self.leases().changed.subscribe());
        // If it cannot be started now, whoever holds a session next starts it; until then there are no hints.
        let _ = self.holds.keeper.start();
        self.leases().wake.notify_one();
        Box::pin(futures_util::stream::unfold(changes, |mut changes| async {
            loop {
                match changes.next().await? {
                    Changed::Task(id) => return Some((Change::Task(id), changes)),
                    Changed::Anything => return Some((Change::Anything, changes)),
                    Changed::Session(_) => {}
                }
            }
        }))
    }
}
