//! What other copies changed, as a hint to look.

use super::PostgresEngine;
use futures_util::stream::{self, StreamExt};
use lango_core::{BoxStream, Change, Changes};
use tokio::sync::broadcast::error::RecvError;

impl Changes for PostgresEngine {
    fn changes(&self) -> BoxStream<'static, Change> {
        let leases = self.table();
        let received = leases.changed.subscribe();
        // Where nobody can listen there are no hints; whoever waits for one looks at the store all the same.
        if self.start().is_ok() {
            leases.wake.notify_one();
        }
        let hints = stream::unfold(received, |mut received| async move {
            match received.recv().await {
                Ok(change) => Some((change, received)),
                Err(RecvError::Lagged(_)) => Some((Change::Anything, received)),
                Err(RecvError::Closed) => None,
            }
        });
        hints.boxed()
    }
}
