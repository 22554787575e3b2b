//! The driver of one task: it feeds what happens into a [`Task`] and performs the effects, one after the other. Clients, the
//! run, other replicas and timers all come through here, so all subscribers see one order, and a snapshot and what follows
//! it have no gap between them.
//!
//! An actor lives while the agent runs or a client waits for the task.

mod effects;
mod reporter;
mod run;

pub use reporter::{Reporter, StoreTask};

use super::refusal::Refusal;
use super::repetition::Repetition;
use super::shared::{Key, Phase, Shared};
use super::task::{
    Answer, CallerId, Effect, Input, LoadError, Recovery, ReportCaller, Request, Residency, RunEnd,
    RunId, Task, Timer, Update,
};
use super::{Report, ReportError};
use a2a::TaskState;
use run::ActiveRun;
use run::RunSlot;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;

/// What an actor can be asked for.
pub(super) enum Command {
    Request {
        request: Request,
        reply: Reply,
    },
    Report {
        run: RunId,
        report: Report,
        /// Stores the task with something of the run's.
        store: Option<StoreTask>,
        reply: oneshot::Sender<Result<(), ReportError>>,
    },
    /// Another replica accepted a cancel of the task.
    CancelRequested,
    /// Another replica may have written the task.
    StoreChanged,
}

/// The result of submitting a message.
pub(super) enum Submitted {
    Task(Subscription),
    /// The message opened the task of this id before.
    Known(String),
    /// The message has opened a task before, and must open another one.
    OpenAgain(Repetition),
}

/// A task as it is, and what follows.
pub(super) struct Subscription {
    pub json: String,
    pub state: TaskState,
    pub updates: broadcast::Receiver<Published>,
}

/// An update as subscribers get it.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub update: Update,
    /// The whole task, if the update settled it. A client that waits for this need not load the task.
    pub settled: Option<Arc<a2a::Task>>,
}

/// Where a task comes from.
pub(super) enum Origin {
    Store,
    New(Box<Task>),
}

/// The channel to a caller.
pub(super) enum Reply {
    Submit(oneshot::Sender<Result<Submitted, Refusal>>),
    Snapshot(oneshot::Sender<Result<Subscription, Refusal>>),
    Recovery(oneshot::Sender<Result<Recovery, Refusal>>),
    Report(oneshot::Sender<Result<(), ReportError>>),
}

pub(super) struct TaskActor {
    shared: Arc<Shared>,
    key: Key,
    commands: mpsc::Receiver<Command>,
    own: mpsc::WeakSender<Command>,
    updates: broadcast::Sender<Published>,
    phase: watch::Receiver<Phase>,
    callers: HashMap<CallerId, Reply>,
    next_caller: u64,
    run: Option<ActiveRun>,
    /// The run of a new task, before the task knows of it.
    early_run: Option<ActiveRun>,
    /// How to store the task while a report of the run is handled.
    store: Option<StoreTask>,
    /// A slot that no run was started in yet.
    slot: RunSlot,
    timers: HashMap<Timer, Instant>,
    has_subscribers: bool,
    seen_phase: Phase,
}

enum Event {
    Command(Option<Command>),
    RunEnded(RunId, RunEnd),
    Elapsed(Timer),
    PhaseChanged,
}

impl TaskActor {
    /// How much longer than for a run here to wait for one on another replica to be cancelled.
    const OTHER_REPLICA: Duration = Duration::from_secs(10);

    pub fn new(
        shared: Arc<Shared>,
        key: Key,
        commands: mpsc::Receiver<Command>,
        own: mpsc::WeakSender<Command>,
    ) -> Self {
        Self {
            phase: shared.phase.subscribe(),
            updates: broadcast::Sender::new(shared.settings.limits.max_lag.max(1)),
            shared,
            key,
            commands,
            own,
            callers: HashMap::new(),
            next_caller: 0,
            run: None,
            early_run: None,
            store: None,
            slot: RunSlot::None,
            timers: HashMap::new(),
            has_subscribers: false,
            seen_phase: Phase::Open,
        }
    }

    pub async fn run(mut self, origin: Origin) {
        let task = match origin {
            Origin::New(task) => Ok(*task),
            Origin::Store => self
                .load(None)
                .await
                .map(|document| Task::restore(*document)),
        };
        match task {
            Ok(mut task) => self.drive(&mut task).await,
            Err(error) => self.refuse_first(&error).await,
        }
        self.leave();
    }

    /// Refuses the caller that started this actor, and is about to ask.
    async fn refuse_first(&mut self, error: &LoadError) {
        let timeout = Duration::from_secs(1);
        let first = tokio::time::timeout(timeout, self.commands.recv()).await;
        if let Ok(Some(Command::Request { reply, .. })) = first {
            let refusal = error.refusal(&self.key.1);
            reply.send(Answer::Refused(refusal), &self.updates);
        }
    }

    async fn drive(&mut self, task: &mut Task) {
        loop {
            self.arm_timers(task);
            match self.next().await {
                Event::Command(Some(command)) => {
                    let input = self.input_of(command);
                    self.feed(task, input).await;
                }
                Event::Command(None) => return,
                Event::RunEnded(run, end) => {
                    // Its slot is free before callers hear that it is over.
                    self.run = None;
                    self.feed(task, Input::RunEnded { run, end }).await;
                }
                Event::Elapsed(timer) => self.feed(task, Input::Elapsed(timer)).await,
                Event::PhaseChanged => self.sync(task).await,
            }
            match task.residency() {
                Residency::Needed => {}
                Residency::Idle if !self.commands.is_empty() => {}
                Residency::Idle | Residency::Over => {
                    self.apply(task, Input::Unload).await;
                    return;
                }
            }
        }
    }

    async fn next(&mut self) -> Event {
        let timer = self.timers.iter().min_by_key(|(_, time)| **time);
        let timer = timer.map(|(timer, time)| (*timer, *time));
        tokio::select! {
            command = self.commands.recv() => Event::Command(command),
            (run, end) = ActiveRun::ended(&mut self.run) => Event::RunEnded(run, end),
            timer = elapsed(timer) => {
                self.timers.remove(&timer);
                Event::Elapsed(timer)
            }
            Ok(()) = self.phase.changed() => Event::PhaseChanged,
        }
    }

    /// Feeds an input into the task, after what has changed around it.
    async fn feed(&mut self, task: &mut Task, input: Input) {
        self.sync(task).await;
        self.apply(task, input).await;
        self.store = None;
        // A caller that was answered has subscribed; another may have left.
        self.sync(task).await;
    }

    /// Tells the task of subscribers and of the server's phase.
    async fn sync(&mut self, task: &mut Task) {
        let phase = *self.phase.borrow_and_update();
        if phase != self.seen_phase {
            self.seen_phase = phase;
            self.apply(task, Input::Phase(phase)).await;
        }
        let any = self.updates.receiver_count() > 0;
        if any != self.has_subscribers {
            self.has_subscribers = any;
            self.apply(task, Input::Subscribers { any }).await;
        }
    }

    /// Gives the task an input and performs what it decides, until nothing is left to perform.
    async fn apply(&mut self, task: &mut Task, input: Input) {
        let now = self.shared.clock.now();
        let mut effects: VecDeque<Effect> = task.accept(input, now).into();
        while let Some(effect) = effects.pop_front() {
            if let Some(result) = self.perform(task, effect).await {
                effects.extend(task.accept(result, self.shared.clock.now()));
            }
        }
    }

    fn arm_timers(&mut self, task: &Task) {
        let wanted = task.timers();
        self.timers.retain(|timer, _| wanted.contains(timer));
        let limits = &self.shared.settings.limits;
        for timer in wanted {
            let duration = match timer {
                Timer::Write => limits.write_every,
                Timer::RunDeadline => limits.stop_timeout,
                Timer::Poll => limits.poll_every,
                Timer::Follow => limits.follow_every,
                Timer::CancelDeadline => limits.stop_timeout + Self::OTHER_REPLICA,
            };
            let timers = &mut self.timers;
            timers
                .entry(timer)
                .or_insert_with(|| Instant::now() + duration);
        }
    }

    /// Translates a command for the task, and notes the caller.
    fn input_of(&mut self, command: Command) -> Input {
        match command {
            Command::Request { request, reply } => Input::Request {
                caller: self.add_caller(reply),
                request,
            },
            Command::Report {
                run,
                report,
                store,
                reply,
            } => {
                let is_joint = store.is_some();
                self.store = store;
                let id = self.add_caller(Reply::Report(reply));
                Input::Reported {
                    caller: ReportCaller { id, is_joint },
                    run,
                    report,
                }
            }
            Command::CancelRequested => Input::CancelRequested,
            Command::StoreChanged => Input::StoreChanged,
        }
    }

    fn add_caller(&mut self, reply: Reply) -> CallerId {
        self.next_caller += 1;
        let caller = CallerId(self.next_caller);
        self.callers.insert(caller, reply);
        caller
    }

    /// Leaves the registry first, so that the next caller gets another actor. Commands that came too late are dropped, and
    /// their senders ask again.
    fn leave(mut self) {
        if let Some(own) = self.own.upgrade() {
            self.shared.forget(&self.key, &own);
        }
        self.commands.close();
    }
}

impl Reply {
    /// Answers a caller that may have left. The task gives each caller an answer of its kind.
    fn send(self, answer: Answer, updates: &broadcast::Sender<Published>) {
        let subscribe = |json, state| Subscription {
            json,
            state,
            updates: updates.subscribe(),
        };
        match (self, answer) {
            (Self::Submit(reply), Answer::Snapshot { json, state }) => {
                let _ = reply.send(Ok(Submitted::Task(subscribe(json, state))));
            }
            (Self::Submit(reply), Answer::KnownTask(id)) => {
                let _ = reply.send(Ok(Submitted::Known(id)));
            }
            (Self::Submit(reply), Answer::OpenAgain(repetition)) => {
                let _ = reply.send(Ok(Submitted::OpenAgain(repetition)));
            }
            (Self::Submit(reply), Answer::Refused(refusal)) => {
                let _ = reply.send(Err(refusal));
            }
            (Self::Snapshot(reply), Answer::Snapshot { json, state }) => {
                let _ = reply.send(Ok(subscribe(json, state)));
            }
            (Self::Snapshot(reply), Answer::Refused(refusal)) => {
                let _ = reply.send(Err(refusal));
            }
            (Self::Recovery(reply), Answer::Recovery(recovery)) => {
                let _ = reply.send(Ok(recovery));
            }
            (Self::Recovery(reply), Answer::Refused(refusal)) => {
                let _ = reply.send(Err(refusal));
            }
            (Self::Report(reply), Answer::Report(result)) => {
                let _ = reply.send(result);
            }
            _ => {}
        }
    }
}

async fn elapsed(timer: Option<(Timer, Instant)>) -> Timer {
    match timer {
        Some((timer, time)) => {
            tokio::time::sleep_until(time).await;
            timer
        }
        None => std::future::pending().await,
    }
}
