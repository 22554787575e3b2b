//! Handles failures of a server: drops a broken connection and reconnects with exponential backoff.

use super::Server;
use crate::connection::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait before reconnecting to a server that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure. It doubles with each further failure.
    pub first: Duration,
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}

/// A period in which a server has failed at least once and has not recovered.
#[derive(Clone)]
pub(super) struct Outage {
    since: Instant,
    /// When to try again.
    retry_at: Instant,
    pub(super) why: String,
}

impl Server {
    /// Returns the connection if it is alive, and drops it if it has broken.
    pub(super) async fn live_connection(&self) -> Option<Arc<Connection>> {
        let connection = self.state().connection.clone()?;
        if !connection.has_ended() {
            return Some(connection);
        }
        let why = connection.end().await.to_line();
        self.drop_connection(&connection, why).await;
        None
    }

    /// Drops a broken connection and records the failure, unless another connection has already replaced it.
    pub(super) async fn drop_connection(&self, connection: &Arc<Connection>, why: String) {
        let was_current = {
            let mut state = self.state();
            let current = state
                .connection
                .take_if(|current| Arc::ptr_eq(current, connection));
            current.is_some()
        };
        if was_current {
            self.record_failure(why);
            connection.close().await;
        }
    }

    pub(super) fn record_failure(&self, why: String) {
        let mut state = self.state();
        let now = Instant::now();
        state.failures = state.failures.saturating_add(1);
        let since = state.outage.as_ref().map_or(now, |down| down.since);
        let retry_at = now + self.context.backoff.after(state.failures);
        state.outage = Some(Outage {
            since,
            retry_at,
            why,
        });
    }

    /// Returns a message that the server is down, since when, and when lango tries again; `None` if lango may try to
    /// connect now.
    pub(super) fn outage_message(&self) -> Option<String> {
        let down = self.state().outage.clone()?;
        let now = Instant::now();
        let left = down
            .retry_at
            .checked_duration_since(now)
            .filter(|left| !left.is_zero())?;
        let text = format!(
            "{}; it went down {} s ago, and lango reconnects on the first call after another {:.1} s",
            down.why,
            (now - down.since).as_secs(),
            left.as_secs_f32()
        );
        Some(self.down_message(&text))
    }

    pub(super) fn down_message(&self, why: &str) -> String {
        format!("the MCP server `{}` is down: {why}", self.id())
    }
}

impl Backoff {
    /// Returns the wait after this number of failures.
    fn after(self, failures: u32) -> Duration {
        let doubled = self
            .first
            .saturating_mul(1 << failures.saturating_sub(1).min(16));
        doubled.min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_with_every_failure_up_to_a_limit() {
        let backoff = [1, 2, 3, 6, 7, 8, u32::MAX].map(|n| Backoff::default().after(n).as_millis());
        assert_eq!(backoff, [500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
    }
}
