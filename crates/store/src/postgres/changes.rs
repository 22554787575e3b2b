//! What other copies changed, as a hint to look.

use super::leases::Changed;
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
