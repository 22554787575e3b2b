//! What all tasks of a server share, and the registry of their actors. The actor of a task is started when it is first
//! needed.

use super::actor::{Command, Origin, Reply, TaskActor};
use super::card::ServedCard;
use super::recovery::ScanState;
use super::refusal::{Kind, Refusal};
use super::slots::Slots;
use super::task::{Request, Task};
use super::{AgentBackend, ServerSettings, render};
use lango_core::{Clock, TaskStore, UserId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};

/// How far the server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// No new runs; those that are under way may finish.
    Closing,
    /// Runs are told to stop; streams close.
    Stopping,
}

/// The user and the id of a task, so that no user reaches another's.
pub(super) type Key = (UserId, String);

pub(super) struct Shared {
    pub backend: Arc<dyn AgentBackend>,
    pub tasks: Arc<dyn TaskStore>,
    pub clock: Arc<dyn Clock>,
    pub card: ServedCard,
    pub settings: ServerSettings,
    pub slots: Arc<Slots>,
    /// Slots for large bodies.
    pub large_bodies: Arc<Semaphore>,
    /// Slots for resumed tasks.
    pub recovering: Arc<Semaphore>,
    /// What scans for interrupted tasks have seen.
    pub scan: Mutex<ScanState>,
    /// Notified when a resumed task is over: there is a slot for the next, or the next of its conversation can run.
    pub recovered: Arc<Notify>,
    /// Notified when another replica may have been asked to cancel what runs here.
    pub cancel_hint: Arc<Notify>,
    run_ended: Notify,
    pub streams: Arc<Semaphore>,
    pub phase: watch::Sender<Phase>,
    /// The number of actors.
    pub actors: watch::Sender<usize>,
    live: Mutex<HashMap<Key, mpsc::Sender<Command>>>,
    /// The tasks that run here, and the conversation of each.
    active: Mutex<HashMap<Key, String>>,
}

impl Shared {
    /// Commands that may wait for an actor. Senders of more wait themselves.
    const QUEUE: usize = 32;
    /// How often a command is sent again to a task whose actor just left.
    const ATTEMPTS: usize = 8;

    pub fn new(
        backend: Arc<dyn AgentBackend>,
        tasks: Arc<dyn TaskStore>,
        clock: Arc<dyn Clock>,
        settings: ServerSettings,
    ) -> Self {
        Self {
            backend,
            tasks,
            card: ServedCard::new(&settings, render::time(clock.now())),
            clock,
            slots: Arc::new(Slots::new(settings.limits.running, settings.limits.queue)),
            large_bodies: Arc::new(Semaphore::new(settings.limits.large_bodies)),
            recovering: Arc::new(Semaphore::new(settings.limits.recovering)),
            scan: Mutex::default(),
            recovered: Arc::default(),
            cancel_hint: Arc::default(),
            run_ended: Notify::new(),
            streams: Arc::new(Semaphore::new(settings.limits.streams)),
            settings,
            phase: watch::Sender::new(Phase::Open),
            actors: watch::Sender::new(0),
            live: Mutex::default(),
            active: Mutex::default(),
        }
    }

    /// Sends a request to the actor of a task and waits for the answer. An actor that leaves in this moment has not seen the
    /// request, so another one is asked.
    pub async fn ask<T>(
        self: &Arc<Self>,
        key: &Key,
        request: Request,
        reply: fn(oneshot::Sender<Result<T, Refusal>>) -> Reply,
    ) -> Result<T, Refusal> {
        for _ in 0..Self::ATTEMPTS {
            let (command, answer) = command(request.clone(), reply);
            let actor = match lock(&self.live).entry(key.clone()) {
                Entry::Occupied(actor) => actor.get().clone(),
                Entry::Vacant(place) => {
                    let (sender, commands) = mpsc::channel(Self::QUEUE);
                    self.start(key, commands, sender.clone(), Origin::Store);
                    place.insert(sender).clone()
                }
            };
            if actor.send(command).await.is_err() {
                self.forget(key, &actor);
                continue;
            }
            if let Some(answer) = answer_of(&actor, answer).await {
                return answer;
            }
        }
        Err(Refusal::new(
            Kind::Internal,
            "the task is loaded and unloaded too fast; retry in a moment",
        ))
    }

    /// Starts the actor of a new task with its first request, and waits for the answer.
    pub async fn open<T>(
        self: &Arc<Self>,
        key: &Key,
        task: Task,
        request: Request,
        reply: fn(oneshot::Sender<Result<T, Refusal>>) -> Reply,
    ) -> Result<T, Refusal> {
        let (command, answer) = command(request, reply);
        let (sender, commands) = mpsc::channel(Self::QUEUE);
        // The channel is new and empty.
        let _ = sender.try_send(command);
        lock(&self.live).insert(key.clone(), sender.clone());
        self.start(key, commands, sender, Origin::New(Box::new(task)));
        let message = "the task could not be opened; send the message again";
        let answer = answer.await;
        answer.unwrap_or_else(|_| Err(Refusal::new(Kind::Internal, message)))
    }

    fn start(
        self: &Arc<Self>,
        key: &Key,
        commands: mpsc::Receiver<Command>,
        sender: mpsc::Sender<Command>,
        origin: Origin,
    ) {
        let actor = TaskActor::new(Arc::clone(self), key.clone(), commands, sender.downgrade());
        self.actors.send_modify(|count| *count += 1);
        let counted = Counted(Arc::clone(self));
        tokio::spawn(async move {
            actor.run(origin).await;
            drop(counted);
        });
    }

    /// Removes an actor from the registry, unless another has its place.
    pub fn forget(&self, key: &Key, actor: &mpsc::Sender<Command>) {
        if let Entry::Occupied(known) = lock(&self.live).entry(key.clone())
            && known.get().same_channel(actor)
        {
            known.remove();
        }
    }

    /// Notes that a task runs here, for as long as the returned value lives.
    pub fn note_run(self: &Arc<Self>, key: &Key, context: &str, is_resumed: bool) -> ActiveTask {
        lock(&self.active).insert(key.clone(), context.to_owned());
        ActiveTask {
            shared: Arc::clone(self),
            key: key.clone(),
            is_resumed,
        }
    }

    /// Returns the tasks that run here, and the conversation of each.
    pub fn active_tasks(&self) -> HashMap<Key, String> {
        lock(&self.active).clone()
    }

    pub fn is_idle(&self) -> bool {
        lock(&self.active).is_empty()
    }

    /// Waits until no task runs here.
    pub async fn all_runs_ended(&self) {
        loop {
            let ended = self.run_ended.notified();
            if self.is_idle() {
                return;
            }
            ended.await;
        }
    }

    /// Notifies the actor of a task, if there is one and its queue is not full: the next scan repeats it.
    pub fn notify(&self, key: &Key, command: Command) {
        let actor = lock(&self.live).get(key).cloned();
        if let Some(actor) = actor {
            let _ = actor.try_send(command);
        }
    }

    /// Has the actors of some tasks read the store.
    pub fn hint(&self, is_meant: impl Fn(&Key) -> bool) {
        let keys: Vec<Key> = {
            let live = lock(&self.live);
            live.keys().filter(|key| is_meant(key)).cloned().collect()
        };
        if lock(&self.active).keys().any(&is_meant) {
            self.cancel_hint.notify_one();
        }
        for key in keys {
            self.notify(&key, Command::StoreChanged);
        }
    }

    pub fn is_open(&self) -> bool {
        *self.phase.borrow() == Phase::Open
    }
}

/// Creates the command for a request, and the channel of its answer.
fn command<T>(
    request: Request,
    reply: fn(oneshot::Sender<T>) -> Reply,
) -> (Command, oneshot::Receiver<T>) {
    let (sender, answer) = oneshot::channel();
    let reply = reply(sender);
    (Command::Request { request, reply }, answer)
}

/// Returns the answer of an actor; nothing if it left without having seen the command. A command can enter the channel in the
/// moment in which the actor leaves, and then stays there as long as the channel has a sender: so this waits for the actor to
/// leave, not for the command to be dropped.
pub(super) async fn answer_of<T>(
    actor: &mpsc::Sender<Command>,
    mut answer: oneshot::Receiver<T>,
) -> Option<T> {
    tokio::select! {
        biased;
        answer = &mut answer => answer.ok(),
        // An actor answers what it has seen before it leaves.
        () = actor.closed() => answer.try_recv().ok(),
    }
}

/// A task that runs here.
pub(super) struct ActiveTask {
    shared: Arc<Shared>,
    key: Key,
    is_resumed: bool,
}

impl Drop for ActiveTask {
    fn drop(&mut self) {
        lock(&self.shared.active).remove(&self.key);
        self.shared.run_ended.notify_waiters();
        if self.is_resumed {
            self.shared.recovered.notify_one();
        }
    }
}

/// Counts an actor for as long as it lives, however it ends.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.actors.send_modify(|count| *count -= 1);
    }
}

/// Locks a map. None is left half changed, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::actor::Subscription;

    #[tokio::test]
    async fn a_command_that_comes_as_its_actor_leaves_is_given_up() {
        let (sender, commands) = mpsc::channel(1);
        // A place in the channel is reserved before the actor leaves, and filled after it has.
        let place = sender.reserve().await.unwrap();
        drop(commands);
        let (reply, answer) = oneshot::channel::<Result<Subscription, Refusal>>();
        place.send(Command::Request {
            request: Request::Cancel,
            reply: Reply::Snapshot(reply),
        });
        let timeout = std::time::Duration::from_secs(10);
        let given_up = tokio::time::timeout(timeout, answer_of(&sender, answer)).await;
        assert!(given_up.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_answer_that_was_given_before_the_actor_left_is_received() {
        let (sender, commands) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel();
        reply.send(5).unwrap();
        drop(commands);
        assert_eq!(answer_of(&sender, answer).await, Some(5));
    }
}
