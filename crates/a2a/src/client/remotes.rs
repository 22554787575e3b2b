//! All remote agents of a configuration: those that are there, those that are not, and another try for the latter.

use super::agent::A2aAgent;
use super::card::Card;
use super::fault::{CardFault, SkippedRemote};
use super::fetch;
use super::http::{Clients, Token};
use super::settings::{Patience, RemoteSettings};
use futures_util::future::join_all;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Reads one card, within `patience.card`.
pub async fn connect(
    settings: &RemoteSettings,
    patience: &Patience,
) -> Result<Arc<A2aAgent>, SkippedRemote> {
    connect_with(settings, patience, &Clients::default()).await
}

/// Reads all cards at once. The results are in the order of the settings, and all are there after `patience.card`.
pub async fn connect_all(
    settings: &[RemoteSettings],
    patience: &Patience,
) -> Vec<Result<Arc<A2aAgent>, SkippedRemote>> {
    connect_all_with(settings, patience, &Clients::default()).await
}

async fn connect_all_with(
    settings: &[RemoteSettings],
    patience: &Patience,
    clients: &Clients,
) -> Vec<Result<Arc<A2aAgent>, SkippedRemote>> {
    let all = settings.iter();
    join_all(all.map(|one| connect_with(one, patience, clients))).await
}

async fn connect_with(
    settings: &RemoteSettings,
    patience: &Patience,
    clients: &Clients,
) -> Result<Arc<A2aAgent>, SkippedRemote> {
    let agent = tokio::time::timeout(patience.card, agent(settings, patience, clients)).await;
    let agent = agent.unwrap_or_else(|_elapsed| {
        Err(CardFault::Slow {
            after_ms: u64::try_from(patience.card.as_millis()).unwrap_or(u64::MAX),
        })
    });
    agent.map(Arc::new).map_err(|reason| SkippedRemote {
        name: settings.name.clone(),
        reason,
    })
}

async fn agent(
    settings: &RemoteSettings,
    patience: &Patience,
    clients: &Clients,
) -> Result<A2aAgent, CardFault> {
    let home = fetch::card_url(&settings.card_url)?;
    let token = Token::new(settings, home).map_err(|_| CardFault::BadToken {
        source_of_token: settings.token_source.clone(),
    })?;
    let fetched = fetch::fetch(settings, &token, clients, patience).await?;
    let card = Card::read(&fetched)?;
    A2aAgent::new(settings.name.clone(), card, token, clients, *patience)
        .map_err(|detail| CardFault::NoClient { detail })
}

/// What is connected and what is not yet. Ends its background task when it is dropped.
pub struct Remotes {
    shared: Arc<Shared>,
    retrying: Option<AbortHandle>,
}

struct Shared {
    settings: Vec<RemoteSettings>,
    patience: Patience,
    clients: Clients,
    slots: Mutex<Vec<Result<Arc<A2aAgent>, SkippedRemote>>>,
    generation: watch::Sender<u64>,
}

impl Remotes {
    /// Reads all cards at once; what fails is kept with its reason. Takes no longer than `patience.card`.
    pub async fn connect(settings: Vec<RemoteSettings>, patience: Patience) -> Self {
        let clients = Clients::default();
        let slots = connect_all_with(&settings, &patience, &clients).await;
        let shared = Shared {
            settings,
            patience,
            clients,
            slots: Mutex::new(slots),
            generation: watch::Sender::new(0),
        };
        Self {
            shared: Arc::new(shared),
            retrying: None,
        }
    }

    /// The agents that can be called, in the order of the configuration.
    pub fn connected(&self) -> Vec<Arc<A2aAgent>> {
        let agents = self.shared.slots();
        agents
            .iter()
            .filter_map(|slot| slot.as_ref().ok().cloned())
            .collect()
    }

    /// The agents that cannot be called, each with the last reason.
    pub fn skipped(&self) -> Vec<SkippedRemote> {
        let agents = self.shared.slots();
        agents
            .iter()
            .filter_map(|slot| slot.as_ref().err().cloned())
            .collect()
    }

    /// Grows whenever what is connected has changed. Costs one atomic load.
    pub fn generation(&self) -> u64 {
        *self.shared.generation.borrow()
    }

    /// The same, to wait for.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.generation.subscribe()
    }

    /// From now on tries again to connect what is not connected: after `patience.retry`, then after twice as long each
    /// time, at most sixty times as long. Ends when all are connected or this is dropped. Must be called inside a runtime; for processes
    /// that live long.
    pub fn retry_in_background(&mut self) {
        if self.retrying.is_none() && !self.skipped().is_empty() {
            let task = tokio::spawn(Arc::clone(&self.shared).retry());
            self.retrying = Some(task.abort_handle());
        }
    }
}

impl Drop for Remotes {
    fn drop(&mut self) {
        if let Some(task) = &self.retrying {
            task.abort();
        }
    }
}

impl Shared {
    fn slots(&self) -> std::sync::MutexGuard<'_, Vec<Result<Arc<A2aAgent>, SkippedRemote>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn retry(self: Arc<Self>) {
        let mut wait = self.patience.retry;
        loop {
            tokio::time::sleep(wait).await;
            wait = longer(wait, self.patience.retry);
            let open: Vec<usize> = {
                let slots = self.slots();
                (0..slots.len())
                    .filter(|&place| slots[place].is_err())
                    .collect()
            };
            let settings: Vec<_> = open
                .iter()
                .map(|&place| self.settings[place].clone())
                .collect();
            let results = connect_all_with(&settings, &self.patience, &self.clients).await;
            let any_new = results.iter().any(Result::is_ok);
            let all_there = results.iter().all(Result::is_ok);
            {
                let mut slots = self.slots();
                for (place, result) in open.into_iter().zip(results) {
                    slots[place] = result;
                }
            }
            if any_new {
                self.generation.send_modify(|generation| *generation += 1);
            }
            if all_there {
                return;
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
