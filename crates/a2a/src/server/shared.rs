//! What all tasks of a server share, and the way to a task: whoever wants something of one asks its keeper, which is started
//! when there is none.

use super::card::ServedCard;
use super::keeper::{Command, Keeper, Origin};
use super::ledger::Ledger;
use super::recovery::Known;
use super::refusal::{Kind, Refusal};
use super::{AgentBehind, ServerSettings, shown};
use lango_core::{Clock, TaskStore, UserId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};

/// How far the server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// No new work; what runs may end.
    Closing,
    /// What runs is told to stop; streams close.
    Stopping,
}

/// A task is found by its user and its id, so that nobody reaches another's.
pub(super) type Key = (UserId, String);

pub(super) struct Shared {
    pub behind: Arc<dyn AgentBehind>,
    pub tasks: Arc<dyn TaskStore>,
    pub clock: Arc<dyn Clock>,
    pub card: ServedCard,
    pub settings: ServerSettings,
    pub running: Arc<Semaphore>,
    /// Places for large bodies.
    pub large_bodies: Arc<Semaphore>,
    /// Places for tasks that are taken up again.
    pub recovering: Arc<Semaphore>,
    /// What was seen when tasks were looked for that nobody is at work on.
    pub known: Mutex<Known>,
    /// Told when such a task has come to its end: there is room for the next, or the next of its conversation can go on.
    pub recovered: Arc<Notify>,
    /// Told when it is worth looking which tasks are to be cancelled.
    pub cancelling: Arc<Notify>,
    pub streams: Arc<Semaphore>,
    pub phase: watch::Sender<Phase>,
    /// How many keepers there are, for whoever waits until there is none.
    pub keepers: watch::Sender<usize>,
    live: Mutex<HashMap<Key, mpsc::Sender<Command>>>,
    /// The tasks with a job here, and the conversation of each.
    at_work: Mutex<HashMap<Key, String>>,
}

impl Shared {
    /// How many commands may wait for a keeper. Those who bring more wait themselves.
    const QUEUE: usize = 32;
    /// How often a keeper that just left is looked for again.
    const ATTEMPTS: usize = 8;

    pub fn new(
        behind: Arc<dyn AgentBehind>,
        tasks: Arc<dyn TaskStore>,
        clock: Arc<dyn Clock>,
        settings: ServerSettings,
    ) -> Self {
        Self {
            behind,
            tasks,
            card: ServedCard::new(&settings, shown::moment(clock.now())),
            clock,
            running: Arc::new(Semaphore::new(settings.limits.running)),
            large_bodies: Arc::new(Semaphore::new(settings.limits.large_bodies)),
            recovering: Arc::new(Semaphore::new(settings.limits.recovering)),
            known: Mutex::default(),
            recovered: Arc::default(),
            cancelling: Arc::default(),
            streams: Arc::new(Semaphore::new(settings.limits.streams)),
            settings,
            phase: watch::Sender::new(Phase::Open),
            keepers: watch::Sender::new(0),
            live: Mutex::default(),
            at_work: Mutex::default(),
        }
    }

    /// Asks the keeper of a task. One that leaves in this moment has not seen the command, so it is asked again.
    pub async fn ask<T>(
        self: &Arc<Self>,
        key: &Key,
        command: impl Fn(oneshot::Sender<Result<T, Refusal>>) -> Command,
    ) -> Result<T, Refusal> {
        for _ in 0..Self::ATTEMPTS {
            let (reply, answer) = oneshot::channel();
            let keeper = match lock(&self.live).entry(key.clone()) {
                Entry::Occupied(keeper) => keeper.get().clone(),
                Entry::Vacant(place) => {
                    let (sender, commands) = mpsc::channel(Self::QUEUE);
                    self.start(key, commands, sender.clone(), Origin::Store);
                    place.insert(sender).clone()
                }
            };
            if keeper.send(command(reply)).await.is_err() {
                self.forget(key, &keeper);
                continue;
            }
            if let Some(answer) = answer_of(&keeper, answer).await {
                return answer;
            }
        }
        Err(Refusal::new(
            Kind::Internal,
            "the task is changing too fast; try again",
        ))
    }

    /// Opens a task with the command to begin its first job.
    pub fn open(self: &Arc<Self>, key: &Key, ledger: Ledger, first: Command) {
        let (sender, commands) = mpsc::channel(Self::QUEUE);
        // The channel is new and empty: there is room.
        let _ = sender.try_send(first);
        lock(&self.live).insert(key.clone(), sender.clone());
        self.start(key, commands, sender, Origin::New(Box::new(ledger)));
    }

    fn start(
        self: &Arc<Self>,
        key: &Key,
        commands: mpsc::Receiver<Command>,
        sender: mpsc::Sender<Command>,
        origin: Origin,
    ) {
        let keeper = Keeper::new(Arc::clone(self), key.clone(), commands, sender.downgrade());
        self.keepers.send_modify(|count| *count += 1);
        let counted = Counted(Arc::clone(self));
        tokio::spawn(async move {
            keeper.run(origin).await;
            drop(counted);
        });
    }

    /// Takes a keeper off the list, unless another has its place.
    pub fn forget(&self, key: &Key, keeper: &mpsc::Sender<Command>) {
        if let Entry::Occupied(known) = lock(&self.live).entry(key.clone())
            && known.get().same_channel(keeper)
        {
            known.remove();
        }
    }

    /// Notes that there is a job of a task here, for as long as what is given back lives.
    pub fn note_work(self: &Arc<Self>, key: &Key, context: &str, is_recovery: bool) -> AtWork {
        lock(&self.at_work).insert(key.clone(), context.to_owned());
        AtWork {
            shared: Arc::clone(self),
            key: key.clone(),
            is_recovery,
        }
    }

    /// The tasks with a job here, and the conversation of each.
    pub fn at_work(&self) -> HashMap<Key, String> {
        lock(&self.at_work).clone()
    }

    pub fn is_idle(&self) -> bool {
        lock(&self.at_work).is_empty()
    }

    /// Tells the keeper of a task, if there is one, and if it has time: whoever tells looks again anyway.
    pub fn tell(&self, key: &Key, command: Command) {
        let keeper = lock(&self.live).get(key).cloned();
        if let Some(keeper) = keeper {
            let _ = keeper.try_send(command);
        }
    }

    /// Has the keepers of some tasks look at the store: there may be something new.
    pub fn hint(&self, is_meant: impl Fn(&Key) -> bool) {
        let keys: Vec<Key> = {
            let live = lock(&self.live);
            live.keys().filter(|key| is_meant(key)).cloned().collect()
        };
        if lock(&self.at_work).keys().any(&is_meant) {
            self.cancelling.notify_one();
        }
        for key in keys {
            self.tell(&key, Command::LookAgain);
        }
    }

    pub fn is_open(&self) -> bool {
        *self.phase.borrow() == Phase::Open
    }
}

/// What a keeper answers; nothing if it left without having seen the command. A command can come into the channel in the
/// very moment in which the keeper leaves, and then stays there as long as anybody holds an end of it: so it is the keeper's
/// leaving that has to be waited for, not the end of the command.
pub(super) async fn answer_of<T>(
    keeper: &mpsc::Sender<Command>,
    mut answer: oneshot::Receiver<T>,
) -> Option<T> {
    tokio::select! {
        biased;
        answer = &mut answer => answer.ok(),
        // A keeper answers what it has seen before it leaves.
        () = keeper.closed() => answer.try_recv().ok(),
    }
}

/// A job of a task here.
pub(super) struct AtWork {
    shared: Arc<Shared>,
    key: Key,
    is_recovery: bool,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        lock(&self.shared.at_work).remove(&self.key);
        if self.is_recovery {
            self.shared.recovered.notify_one();
        }
    }
}

/// Counts a keeper for as long as it is there, however it ends.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.keepers.send_modify(|count| *count -= 1);
    }
}

/// The maps are never left half changed, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::keeper::Watching;

    #[tokio::test]
    async fn a_command_that_comes_as_its_keeper_leaves_is_given_up() {
        let (sender, commands) = mpsc::channel(1);
        // A place in the channel is taken before the keeper leaves, and filled after it has.
        let place = sender.reserve().await.unwrap();
        drop(commands);
        let (reply, answer) = oneshot::channel::<Result<Watching, Refusal>>();
        place.send(Command::Cancel { reply });
        let patience = std::time::Duration::from_secs(10);
        let given_up = tokio::time::timeout(patience, answer_of(&sender, answer)).await;
        assert!(given_up.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_answer_that_was_given_before_the_keeper_left_is_heard() {
        let (sender, commands) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel();
        reply.send(5).unwrap();
        drop(commands);
        assert_eq!(answer_of(&sender, answer).await, Some(5));
    }
}
