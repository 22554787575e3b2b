//! The connections to all configured remote agents. Agents that were skipped can be retried.

use super::agent::A2aAgent;
use super::card_error::{CardError, SkippedRemote};
use super::connect::{ClientContext, ConnectResult, connect_all};
use super::settings::{RemoteSettings, RemoteTimeouts};
use super::slow_cards::SlowCards;
use lango_net::Egress;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// The connected and the skipped remote agents. Dropping it ends its background tasks.
pub struct RemoteConnections {
    shared: Arc<Shared>,
    retrying: Option<AbortHandle>,
    /// Handle of the background task that reads the cards that timed out recently.
    late: Option<AbortHandle>,
}

struct Shared {
    settings: Vec<RemoteSettings>,
    timeouts: RemoteTimeouts,
    context: ClientContext,
    slow_cards: SlowCards,
    slots: Mutex<Vec<ConnectResult>>,
    generation: AtomicU64,
}

impl RemoteConnections {
    /// Reads all cards concurrently, within `timeouts.card`, and remembers why a card failed. Does not wait for cards
    /// that timed out recently, but reads them in the background. `egress` is the guard for URLs in cards and for files
    /// that agents send by URL. Must be called within a runtime.
    pub async fn connect(
        settings: Vec<RemoteSettings>,
        timeouts: RemoteTimeouts,
        egress: Egress,
        slow_cards: SlowCards,
    ) -> Self {
        let context = ClientContext {
            egress,
            ..ClientContext::default()
        };
        let skip = |settings: &RemoteSettings| {
            let age = slow_cards.age(&settings.card_url);
            let reason = CardError::RecentTimeout {
                seconds: age.unwrap_or_default().as_secs(),
            };
            (
                age.is_some(),
                Err(SkippedRemote {
                    name: settings.name.clone(),
                    reason,
                }),
            )
        };
        let (is_late, slots): (Vec<bool>, Vec<ConnectResult>) = settings.iter().map(skip).unzip();
        let (late, now): (Vec<usize>, Vec<usize>) =
            (0..settings.len()).partition(|&index| is_late[index]);
        let shared = Arc::new(Shared {
            settings,
            timeouts,
            context,
            slow_cards,
            slots: Mutex::new(slots),
            generation: AtomicU64::new(0),
        });
        let late = (!late.is_empty()).then(|| {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move { shared.read(late).await }).abort_handle()
        });
        shared.read(now).await;
        Self {
            shared,
            retrying: None,
            late,
        }
    }

    /// Returns the agents that can be called, in the order of the configuration.
    pub fn connected(&self) -> Vec<Arc<A2aAgent>> {
        let slots = self.shared.slots();
        slots
            .iter()
            .filter_map(|slot| slot.as_ref().ok().cloned())
            .collect()
    }

    /// Returns the agents that cannot be called, each with the latest reason.
    pub fn skipped(&self) -> Vec<SkippedRemote> {
        let slots = self.shared.slots();
        slots
            .iter()
            .filter_map(|slot| slot.as_ref().err().cloned())
            .collect()
    }

    /// Returns a number that increases whenever the connected agents change.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// Starts a background task, for long-running processes, that retries agents that are not connected, and rereads
    /// the cards of agents whose interface seems to have moved. It first waits for `timeouts.retry_interval`, then
    /// twice as long each time, up to sixty times that interval. Must be called within a runtime.
    pub fn retry_in_background(&mut self) {
        if self.retrying.is_none() && !self.shared.settings.is_empty() {
            let task = tokio::spawn(Arc::clone(&self.shared).retry());
            self.retrying = Some(task.abort_handle());
        }
    }
}

impl Drop for RemoteConnections {
    fn drop(&mut self) {
        for task in self.retrying.iter().chain(&self.late) {
            task.abort();
        }
    }
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, Vec<ConnectResult>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn retry(self: Arc<Self>) {
        let first = self.timeouts.retry_interval;
        let mut wait = first;
        loop {
            if self.outdated().is_empty() {
                self.context.card_stale.notified().await;
                wait = first;
            }
            tokio::select! {
                () = sleep(wait) => wait = next_wait(wait, first),
                () = self.context.card_stale.notified() => {
                    sleep(first).await;
                    wait = first;
                }
            }
            let outdated = self.outdated();
            // Reset the marks before reading. If a call marks a card as stale during the read, the read may have missed
            // the change.
            self.clear_stale(&outdated);
            self.read(outdated).await;
        }
    }

    /// Reads the cards with these indexes concurrently, and applies the results.
    async fn read(&self, indexes: Vec<usize>) {
        let settings = indexes.iter().map(|&index| self.settings[index].clone());
        let settings: Vec<_> = settings.collect();
        let results = connect_all(&settings, &self.timeouts, &self.context).await;
        for (settings, result) in settings.iter().zip(&results) {
            self.slow_cards.record(&settings.card_url, result);
        }
        self.apply(indexes.into_iter().zip(results));
    }

    /// Returns the indexes of the cards to read again: stale cards, and the cards of agents that are not connected.
    fn outdated(&self) -> Vec<usize> {
        let slots = self.slots();
        let is_outdated =
            |slot: &ConnectResult| slot.as_ref().map_or(true, |agent| agent.is_stale());
        (0..slots.len())
            .filter(|&index| is_outdated(&slots[index]))
            .collect()
    }

    fn clear_stale(&self, indexes: &[usize]) {
        let slots = self.slots();
        for agent in indexes
            .iter()
            .filter_map(|&index| slots[index].as_ref().ok())
        {
            agent.set_stale(false);
        }
    }

    /// Applies new results.
    fn apply(&self, results: impl Iterator<Item = (usize, ConnectResult)>) {
        let mut slots = self.slots();
        for (index, result) in results {
            match (&slots[index], &result) {
                // Keep the agent, and try again later. If it is broken, its calls report that themselves.
                (Ok(old), Err(_)) => old.set_stale(true),
                (Ok(old), Ok(new)) if old.has_same_card(new) => {}
                (Err(_), Err(_)) => slots[index] = result,
                (_, Ok(_)) => {
                    slots[index] = result;
                    self.generation.fetch_add(1, Ordering::Release);
                }
            }
        }
    }
}

fn next_wait(wait: Duration, first: Duration) -> Duration {
    (wait * 2).min(first * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_five_seconds_to_five_minutes() {
        let first = RemoteTimeouts::default().retry_interval;
        let mut wait = first;
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(wait.as_secs());
            wait = next_wait(wait, first);
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
    }
}
