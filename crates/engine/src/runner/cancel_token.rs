//! Cancels a turn from outside.

use std::sync::Arc;
use tokio::sync::watch;

/// Cancels the turn that it was passed to. Clones cancel the same turn.
#[derive(Debug, Clone)]
pub struct CancelToken {
    sender: Arc<watch::Sender<bool>>,
}

impl CancelToken {
    pub fn new() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }

    pub fn cancel(&self) {
        self.sender.send_replace(true);
    }

    /// Whether the turn was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        *self.sender.borrow()
    }

    /// Waits until the turn is cancelled.
    pub async fn cancelled(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self
            .sender
            .subscribe()
            .wait_for(|cancelled| *cancelled)
            .await;
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}
