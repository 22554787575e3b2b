//! Whether a server stands: let go when it breaks, and tried again after a pause that grows.

use super::Server;
use crate::connection::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a server that failed is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// After its first failure; it doubles with each one that follows.
    pub first: Duration,
    /// At most.
    pub longest: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}

/// A server that failed.
#[derive(Clone)]
pub(super) struct Down {
    since: Instant,
    again: Instant,
    pub(super) why: String,
}

impl Server {
    /// The connection, if it stands. One that broke off meanwhile is let go.
    pub(super) async fn live(&self) -> Option<Arc<Connection>> {
        let connection = self.state().connection.clone()?;
        if !connection.is_over() {
            return Some(connection);
        }
        let why = connection.end().await.line();
        self.lose(&connection, why).await;
        None
    }

    /// Lets a connection go that broke.
    pub(super) async fn lose(&self, connection: &Arc<Connection>, why: String) {
        let was_current = {
            let mut state = self.state();
            let current = state
                .connection
                .take_if(|current| Arc::ptr_eq(current, connection));
            current.is_some()
        };
        if was_current {
            self.note_down(why);
            connection.close().await;
        }
    }

    pub(super) fn note_down(&self, why: String) {
        let mut state = self.state();
        let now = Instant::now();
        state.failures = state.failures.saturating_add(1);
        let since = state.down.as_ref().map_or(now, |down| down.since);
        let again = now + self.surroundings.pauses.after(state.failures);
        state.down = Some(Down { since, again, why });
    }

    /// That it is down, since when and until when, if it is not to be tried yet.
    pub(super) fn down(&self) -> Option<String> {
        let down = self.state().down.clone()?;
        let now = Instant::now();
        let left = down
            .again
            .checked_duration_since(now)
            .filter(|left| !left.is_zero())?;
        let text = format!(
            "{}; it went down {} s ago and is tried again at the next call after {:.1} s",
            down.why,
            (now - down.since).as_secs(),
            left.as_secs_f32()
        );
        Some(self.is_down(&text))
    }

    pub(super) fn is_down(&self, why: &str) -> String {
        format!("the MCP server `{}` is down: {why}", self.id())
    }
}

impl Pauses {
    /// After so many failures.
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
    fn the_pause_doubles_with_every_failure_and_has_an_end() {
        let pauses = [1, 2, 3, 6, 7, 8, u32::MAX].map(|n| Pauses::default().after(n).as_millis());
        assert_eq!(pauses, [500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
    }
}
