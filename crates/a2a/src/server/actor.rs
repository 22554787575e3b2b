//! The driver of one task: it feeds inputs into a [`Task`] and performs the effects, one after the other. Input from
//! clients, the run, other replicas and timers all arrives here. Therefore all subscribers see the same order, and no
//! update is missing between a snapshot and the updates after it.
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
    CallerId, Effect, Input, LoadError, Recovery, ReportCaller, Request, Residency, RunEnd, RunId,
    Task, TaskAnswer, Timer, Update,
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

/// A message to an actor.
pub(super) enum Command {
    Request {
        request: Request,
        reply: Reply,
    },
    Report {
        run: RunId,
        report: Report,
        /// Stores the task in one transaction with data of the run.
        store: Option<StoreTask>,
        reply: oneshot::Sender<Result<(), ReportError>>,
    },
    /// Another replica accepted a cancel of the task.
    CancelRequested,
    /// Another replica may have written the task.
    StoreChanged,
}

/// The result of submitting a message.
pub(super) enum SubmitResult {
    Task(Subscription),
    /// The message is a duplicate: it already opened the task with this id.
    Known(String),
    /// The message already opened a task, and must open another one.
    OpenAgain(Repetition),
}

/// A snapshot of a task, and the updates that follow it.
pub(super) struct Subscription {
    pub json: String,
    pub state: TaskState,
    pub updates: broadcast::Receiver<PublishedUpdate>,
}

/// An update that is sent to subscribers.
#[derive(Debug, Clone)]
pub(super) struct PublishedUpdate {
    pub update: Update,
    /// The whole task, if the update settled it, so that a client that waits for this need not load the task.
    pub settled: Option<Arc<a2a::Task>>,
}

/// Where an actor gets its task from.
pub(super) enum TaskSource {
    Store,
    New(Box<Task>),
}

/// The channel to a caller.
pub(super) enum Reply {
    Submit(oneshot::Sender<Result<SubmitResult, Refusal>>),
    Snapshot(oneshot::Sender<Result<Subscription, Refusal>>),
    Recovery(oneshot::Sender<Result<Recovery, Refusal>>),
    Report(oneshot::Sender<Result<(), ReportError>>),
}

pub(super) struct TaskActor {
    shared: Arc<Shared>,
    key: Key,
    commands: mpsc::Receiver<Command>,
    own: mpsc::WeakSender<Command>,
    updates: broadcast::Sender<PublishedUpdate>,
    phase: watch::Receiver<Phase>,
    callers: HashMap<CallerId, Reply>,
    next_caller: u64,
    run: Option<ActiveRun>,
    /// The run of a new task, started before the task has requested it.
    early_run: Option<ActiveRun>,
    /// How to store the task while the actor handles a report of the run.
    store: Option<StoreTask>,
    /// A reserved slot that no run uses yet.
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
    /// Extra time, on top of the stop timeout, to wait for another replica to cancel its run.
    const OTHER_REPLICA_TIMEOUT: Duration = Duration::from_secs(10);

    pub(super) fn new(
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

    pub(super) async fn run(mut self, source: TaskSource) {
        let task = match source {
            TaskSource::New(task) => Ok(*task),
            TaskSource::Store => self
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

    /// Refuses the caller that started this actor, whose request is about to arrive.
    async fn refuse_first(&mut self, error: &LoadError) {
        let timeout = Duration::from_secs(1);
        let first = tokio::time::timeout(timeout, self.commands.recv()).await;
        if let Ok(Some(Command::Request { reply, .. })) = first {
            let refusal = error.refusal(&self.key.1);
            reply.send(TaskAnswer::Refused(refusal), &self.updates);
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
                    // Free the slot before callers learn that the run has ended.
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

    /// Feeds an input into the task, after any changes of subscribers and phase.
    async fn feed(&mut self, task: &mut Task, input: Input) {
        self.sync(task).await;
        self.apply(task, input).await;
        self.store = None;
        // A caller that got an answer has subscribed; another one may have left.
        self.sync(task).await;
    }

    /// Passes changes of the server's phase and of the subscribers on to the task.
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

    /// Feeds one input into the task and performs all resulting effects.
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
                Timer::CancelDeadline => limits.stop_timeout + Self::OTHER_REPLICA_TIMEOUT,
            };
            let timers = &mut self.timers;
            timers
                .entry(timer)
                .or_insert_with(|| Instant::now() + duration);
        }
    }

    /// Converts a command into an input, and registers its caller.
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

    /// Removes the actor from the registry first, so that the next caller gets a new one. Then drops the commands that
    /// arrived too late; their senders retry.
    fn leave(mut self) {
        if let Some(own) = self.own.upgrade() {
            self.shared.forget(&self.key, &own);
        }
        self.commands.close();
    }
}

impl Reply {
    /// Answers a caller, if it is still waiting. The task answers each kind of request with the matching kind of
    /// answer.
    fn send(self, answer: TaskAnswer, updates: &broadcast::Sender<PublishedUpdate>) {
        let subscribe = |json, state| Subscription {
            json,
            state,
            updates: updates.subscribe(),
        };
        match (self, answer) {
            (Self::Submit(reply), TaskAnswer::Snapshot { json, state }) => {
                let _ = reply.send(Ok(SubmitResult::Task(subscribe(json, state))));
            }
            (Self::Submit(reply), TaskAnswer::KnownTask(id)) => {
                let _ = reply.send(Ok(SubmitResult::Known(id)));
            }
            (Self::Submit(reply), TaskAnswer::OpenAgain(repetition)) => {
                let _ = reply.send(Ok(SubmitResult::OpenAgain(repetition)));
            }
            (Self::Submit(reply), TaskAnswer::Refused(refusal)) => {
                let _ = reply.send(Err(refusal));
            }
            (Self::Snapshot(reply), TaskAnswer::Snapshot { json, state }) => {
                let _ = reply.send(Ok(subscribe(json, state)));
            }
            (Self::Snapshot(reply), TaskAnswer::Refused(refusal)) => {
                let _ = reply.send(Err(refusal));
            }
            (Self::Recovery(reply), TaskAnswer::Recovery(recovery)) => {
                let _ = reply.send(Ok(recovery));
            }
            (Self::Recovery(reply), TaskAnswer::Refused(refusal)) => {
                let _ = reply.send(Err(refusal));
            }
            (Self::Report(reply), TaskAnswer::Report(result)) => {
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
