//! The state that all tasks of a server share, and the registry of their actors. The actor of a task starts with the
//! first request for that task.

use super::actor::{Command, Reply, TaskActor, TaskSource};
use super::card::ServedCard;
use super::recovery::ScanState;
use super::refusal::{Refusal, RefusalKind};
use super::slots::Slots;
use super::task::{Request, Task};
use super::{AgentBackend, ServerSettings, render};
use lango_core::{Clock, TaskStore, UserId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};

/// The phase of the server's shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// No new runs start; current ones may finish.
    Closing,
    /// Runs are signalled to stop, and streams close.
    Stopping,
}

/// The user and the id of a task. The user is part of the key, so no user can reach another user's tasks.
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
    /// The progress of the scans for interrupted tasks.
    pub scan: Mutex<ScanState>,
    /// Notified when a resumed task has ended: its slot is free, and the next task of its conversation can run.
    pub recovered: Arc<Notify>,
    /// Notified when another replica may have been asked to cancel a run on this one.
    pub cancel_hint: Arc<Notify>,
    run_ended: Notify,
    pub streams: Arc<Semaphore>,
    pub phase: watch::Sender<Phase>,
    /// The number of actors that exist.
    pub actors: watch::Sender<usize>,
    live: Mutex<HashMap<Key, mpsc::Sender<Command>>>,
    /// The tasks that run here, and the conversation of each.
    active: Mutex<HashMap<Key, String>>,
}

impl Shared {
    /// How many commands an actor's channel can hold. Further senders wait.
    const QUEUE: usize = 32;
    /// How many times to send a command to a task whose actors keep stopping.
    const ATTEMPTS: usize = 8;

    pub(super) fn new(
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

    /// Sends a request to the actor of a task and waits for the answer. If the actor stops before it has seen the
    /// request, sends the request to a new one.
    pub(super) async fn ask<T>(
        self: &Arc<Self>,
        key: &Key,
        request: Request,
        reply: fn(oneshot::Sender<Result<T, Refusal>>) -> Reply,
    ) -> Result<T, Refusal> {
        for _ in 0..Self::ATTEMPTS {
            let (command, answer) = command(request.clone(), reply);
            let actor = match lock(&self.live).entry(key.clone()) {
                Entry::Occupied(actor) => actor.get().clone(),
                Entry::Vacant(entry) => {
                    let (sender, commands) = mpsc::channel(Self::QUEUE);
                    self.start(key, commands, sender.clone(), TaskSource::Store);
                    entry.insert(sender).clone()
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
            RefusalKind::Internal,
            "the task is loaded and unloaded too fast; retry in a moment",
        ))
    }

    /// Starts the actor of a new task with its first request, and waits for the answer.
    pub(super) async fn open<T>(
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
        self.start(key, commands, sender, TaskSource::New(Box::new(task)));
        let message = "the task could not be opened; send the message again";
        let answer = answer.await;
        answer.unwrap_or_else(|_| Err(Refusal::new(RefusalKind::Internal, message)))
    }

    fn start(
        self: &Arc<Self>,
        key: &Key,
        commands: mpsc::Receiver<Command>,
        sender: mpsc::Sender<Command>,
        source: TaskSource,
    ) {
        let actor = TaskActor::new(Arc::clone(self), key.clone(), commands, sender.downgrade());
        self.actors.send_modify(|count| *count += 1);
        let count = ActorCount(Arc::clone(self));
        tokio::spawn(async move {
            actor.run(source).await;
            drop(count);
        });
    }

    /// Removes an actor from the registry, unless a newer one has replaced it.
    pub(super) fn forget(&self, key: &Key, actor: &mpsc::Sender<Command>) {
        if let Entry::Occupied(known) = lock(&self.live).entry(key.clone())
            && known.get().same_channel(actor)
        {
            known.remove();
        }
    }

    /// Registers a task as running here, until the returned guard is dropped.
    pub(super) fn register_run(
        self: &Arc<Self>,
        key: &Key,
        context: &str,
        is_resumed: bool,
    ) -> ActiveTask {
        lock(&self.active).insert(key.clone(), context.to_owned());
        ActiveTask {
            shared: Arc::clone(self),
            key: key.clone(),
            is_resumed,
        }
    }

    /// Returns the tasks that run here, and the conversation of each.
    pub(super) fn active_tasks(&self) -> HashMap<Key, String> {
        lock(&self.active).clone()
    }

    pub(super) fn is_idle(&self) -> bool {
        lock(&self.active).is_empty()
    }

    /// Waits until no task runs here.
    pub(super) async fn all_runs_ended(&self) {
        loop {
            let ended = self.run_ended.notified();
            if self.is_idle() {
                return;
            }
            ended.await;
        }
    }

    /// Sends a command to the actor of a task, if there is one. Drops the command if the channel is full: the next scan
    /// sends it again.
    pub(super) fn notify(&self, key: &Key, command: Command) {
        let actor = lock(&self.live).get(key).cloned();
        if let Some(actor) = actor {
            let _ = actor.try_send(command);
        }
    }

    /// Notifies the actors of the matching tasks that the store may have changed.
    pub(super) fn hint(&self, is_affected: impl Fn(&Key) -> bool) {
        let keys: Vec<Key> = {
            let live = lock(&self.live);
            live.keys()
                .filter(|key| is_affected(key))
                .cloned()
                .collect()
        };
        if lock(&self.active).keys().any(&is_affected) {
            self.cancel_hint.notify_one();
        }
        for key in keys {
            self.notify(&key, Command::StoreChanged);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        *self.phase.borrow() == Phase::Open
    }
}

/// Creates the command for a request, and the channel for its answer.
fn command<T>(
    request: Request,
    reply: fn(oneshot::Sender<T>) -> Reply,
) -> (Command, oneshot::Receiver<T>) {
    let (sender, answer) = oneshot::channel();
    let reply = reply(sender);
    (Command::Request { request, reply }, answer)
}

/// Waits for the answer of an actor. Returns `None` if the actor stopped without having seen the command. A command
/// that enters the channel while the actor stops stays there as long as the channel has a sender, so this waits for the
/// actor to close the channel, not for the command to be dropped.
pub(super) async fn answer_of<T>(
    actor: &mpsc::Sender<Command>,
    mut answer: oneshot::Receiver<T>,
) -> Option<T> {
    tokio::select! {
        biased;
        answer = &mut answer => answer.ok(),
        // An actor answers every command that it has seen before it stops.
        () = actor.closed() => answer.try_recv().ok(),
    }
}

/// A guard that registers a task as running here.
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

/// A guard that counts an actor, even if the actor panics.
struct ActorCount(Arc<Shared>);

impl Drop for ActorCount {
    fn drop(&mut self) {
        self.0.actors.send_modify(|count| *count -= 1);
    }
}

/// Locks a map. Ignores poisoning, because no code can panic in the middle of a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::actor::Subscription;

    #[tokio::test]
    async fn a_command_that_arrives_while_its_actor_stops_gets_no_answer() {
        let (sender, commands) = mpsc::channel(1);
        // Reserve capacity before the actor stops, and use it afterwards.
        let permit = sender.reserve().await.unwrap();
        drop(commands);
        let (reply, answer) = oneshot::channel::<Result<Subscription, Refusal>>();
        permit.send(Command::Request {
            request: Request::Cancel,
            reply: Reply::Snapshot(reply),
        });
        let timeout = std::time::Duration::from_secs(10);
        let result = tokio::time::timeout(timeout, answer_of(&sender, answer)).await;
        assert!(result.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_answer_sent_before_the_actor_stopped_is_received() {
        let (sender, commands) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel();
        reply.send(5).unwrap();
        drop(commands);
        assert_eq!(answer_of(&sender, answer).await, Some(5));
    }
}
