//! A way to stop a turn from outside.

use std::sync::Arc;
use tokio::sync::watch;

/// Stops the turn it was given to. Clones stop the same turn.
#[derive(Debug, Clone)]
pub struct Stop {
    sender: Arc<watch::Sender<bool>>,
}

impl Stop {
    /// Not stopped yet.
    pub fn new() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Stops.
    pub fn stop(&self) {
        self.sender.send_replace(true);
    }

    /// Whether somebody has stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        *self.sender.borrow()
    }

    /// Waits until somebody stops.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.sender.subscribe().wait_for(|stopped| *stopped).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
