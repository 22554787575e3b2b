//! What other copies changed, as a hint to look.

use super::PostgresEngine;
use futures_util::stream::{self, StreamExt};
use lango_core::{BoxStream, Change, Changes};
use tokio::sync::broadcast::error::RecvError;

impl Changes for PostgresEngine {
    fn changes(&self) -> BoxStream<'static, Change> {
        let leases = self.leases();
        let heard = leases.changed.subscribe();
        // Where nobody can listen there are no hints; whoever waits for one looks at the store all the same.
        if self.holds.keeper.start().is_ok() {
            leases.wake.notify_one();
        }
        let hints = stream::unfold(heard, |mut heard| async move {
            match heard.recv().await {
                Ok(change) => Some((change, heard)),
                Err(RecvError::Lagged(_)) => Some((Change::Anything, heard)),
                Err(RecvError::Closed) => None,
            }
        });
        hints.boxed()
    }
}
