//! All remote agents of a configuration: those that are there, those that are not, and another try for the latter.

use super::agent::A2aAgent;
use super::connect::{Connected, Means, connect_all};
use super::fault::{CardFault, SkippedRemote};
use super::settings::{Patience, RemoteSettings};
use super::slow_cards::SlowCards;
use lango_net::Egress;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// What is connected and what is not yet. Ends its background task when it is dropped.
pub struct Remotes {
    shared: Arc<Shared>,
    retrying: Option<AbortHandle>,
    /// Reads the cards of agents in the background that did not answer in time.
    late: Option<AbortHandle>,
}

struct Shared {
    settings: Vec<RemoteSettings>,
    patience: Patience,
    means: Means,
    slow_cards: SlowCards,
    slots: Mutex<Vec<Connected>>,
    generation: AtomicU64,
}

impl Remotes {
    /// Reads all cards at once; what fails is kept with its reason. Takes no longer than `patience.card`. A card that timed out
    /// lately is not waited for, but read in the background. Files that agents name by URL are fetched through the guard. Must be
    /// called inside a runtime.
    pub async fn connect(
        settings: Vec<RemoteSettings>,
        patience: Patience,
        egress: Egress,
        slow_cards: SlowCards,
    ) -> Self {
        let means = Means {
            egress,
            ..Means::default()
        };
        let not_read = |settings: &RemoteSettings| {
            let age = slow_cards.age(&settings.card_url);
            let reason = CardFault::SlowBefore {
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
        let (is_late, slots): (Vec<bool>, Vec<Connected>) = settings.iter().map(not_read).unzip();
        let (late, now): (Vec<usize>, Vec<usize>) =
            (0..settings.len()).partition(|&place| is_late[place]);
        let shared = Arc::new(Shared {
            settings,
            patience,
            means,
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

    /// The agents that can be called, in the order of the configuration.
    pub fn connected(&self) -> Vec<Arc<A2aAgent>> {
        let slots = self.shared.slots();
        slots
            .iter()
            .filter_map(|slot| slot.as_ref().ok().cloned())
            .collect()
    }

    /// The agents that cannot be called, each with the last reason.
    pub fn skipped(&self) -> Vec<SkippedRemote> {
        let slots = self.shared.slots();
        slots
            .iter()
            .filter_map(|slot| slot.as_ref().err().cloned())
            .collect()
    }

    /// Grows whenever what is connected has changed.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }

    /// From now on reads again the cards of those that are not connected, and of those whose interface seems to have
    /// moved: after `patience.retry`, then after twice as long each time, at most sixty times as long. Ends when this is
    /// dropped. Must be called inside a runtime; for processes that live long.
    pub fn retry_in_background(&mut self) {
        if self.retrying.is_none() && !self.shared.settings.is_empty() {
            let task = tokio::spawn(Arc::clone(&self.shared).retry());
            self.retrying = Some(task.abort_handle());
        }
    }
}

impl Drop for Remotes {
    fn drop(&mut self) {
        for task in self.retrying.iter().chain(&self.late) {
            task.abort();
        }
    }
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, Vec<Connected>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn retry(self: Arc<Self>) {
        let first = self.patience.retry;
        let mut wait = first;
        loop {
            if self.open().is_empty() {
                self.means.doubts.notified().await;
                wait = first;
            }
            tokio::select! {
                () = sleep(wait) => wait = longer(wait, first),
                () = self.means.doubts.notified() => {
                    sleep(first).await;
                    wait = first;
                }
            }
            let open = self.open();
            // Before the look: a doubt that comes up during it is about what it may have missed.
            self.clear_doubts(&open);
            self.read(open).await;
        }
    }

    /// Reads the cards of these places at once, and takes the results.
    async fn read(&self, places: Vec<usize>) {
        let settings = places.iter().map(|&place| self.settings[place].clone());
        let settings: Vec<_> = settings.collect();
        let results = connect_all(&settings, &self.patience, &self.means).await;
        for (settings, result) in settings.iter().zip(&results) {
            self.slow_cards.note(&settings.card_url, result);
        }
        self.take(places.into_iter().zip(results));
    }

    /// The places whose cards are worth another look.
    fn open(&self) -> Vec<usize> {
        let slots = self.slots();
        let is_open = |slot: &Connected| slot.as_ref().map_or(true, |agent| agent.is_doubtful());
        (0..slots.len())
            .filter(|&place| is_open(&slots[place]))
            .collect()
    }

    fn clear_doubts(&self, places: &[usize]) {
        let slots = self.slots();
        for agent in places
            .iter()
            .filter_map(|&place| slots[place].as_ref().ok())
        {
            agent.set_doubt(false);
        }
    }

    /// Takes new results.
    fn take(&self, results: impl Iterator<Item = (usize, Connected)>) {
        let mut slots = self.slots();
        for (place, result) in results {
            match (&slots[place], &result) {
                // It stays, and is looked after again: its calls say for themselves what is wrong.
                (Ok(old), Err(_)) => old.set_doubt(true),
                (Ok(old), Ok(new)) if old.is_like(new) => {}
                (Err(_), Err(_)) => slots[place] = result,
                (_, Ok(_)) => {
                    slots[place] = result;
                    self.generation.fetch_add(1, Ordering::Release);
                }
            }
        }
    }
}

fn longer(wait: Duration, first: Duration) -> Duration {
    (wait * 2).min(first * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_five_seconds_to_five_minutes() {
        let first = Patience::default().retry;
        let mut wait = first;
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(wait.as_secs());
            wait = longer(wait, first);
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
    }
}
