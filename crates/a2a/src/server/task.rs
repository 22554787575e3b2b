//! A task as a state machine without I/O: it decides what to do, and `actor.rs` does it.
//!
//! [`Task::accept`] takes one [`Input`] (a message, a report, the end of a run, the result of an effect, …) and returns
//! the [`Effect`]s to perform, in order. It has no clock and no channels, so replaying its inputs produces the same
//! task.
//!
//! A change of status is stored before it is published. Progress and growing artifacts are published immediately and
//! stored at intervals: a crash may lose the last interval of the run that it interrupts, but nothing of a task that
//! has ended or waits.
//!
//! The task handles one input at a time. The work left for that input is a stack of [`Step`]s; while the task
//! [awaits](Await) the result of an effect, it defers other inputs. Each file has one set of rules: `submit` accepts
//! messages and starts runs, `sync` brings a task up to date with the store and the agent, `write` stores it, `run_end`
//! handles reports and ends of runs, `cancel` cancels, `resume` restarts interrupted tasks.
//!
//! The first message of a task passes through `request` → `decide_submit` (reserves a slot) → `slot_reserved` (stores
//! the task) → `opened` (answers the caller) → `start`. If the run stores its own task, `slot_reserved` has already
//! started the run, and `start` only takes it over.

mod cancel;
mod document;
mod io;
mod resume;
mod run_end;
mod state;
mod submit;
mod sync;
mod write;

#[cfg(test)]
mod invariants;

pub(super) use document::{TaskDocument, Update, is_settled, length};
pub(super) use io::{
    CallerId, Effect, EffectResult, Input, LoadError, Recovery, ReportCaller, Request, RunEnd,
    RunId, SlotKind, StoreFailure, TaskAnswer, Timer,
};

use super::refusal::Refusal;
use super::render::View;
use super::shared::Phase;
use lango_core::Timestamp;
use state::{Await, Idle, RunOutcome, State, Step, Stop, Submission};
use std::collections::VecDeque;

/// One task on one replica, without I/O.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    document: TaskDocument,
    state: State,
    /// The remaining steps for the current input, the next one last.
    steps: Vec<Step>,
    awaiting: Option<Await>,
    /// Inputs that arrived while the task awaited a result.
    deferred: VecDeque<Input>,
    effects: Vec<Effect>,
    /// Whether an update has been published but not stored.
    is_dirty: bool,
    has_subscribers: bool,
    phase: Phase,
    runs: u64,
    now: Timestamp,
}

impl Task {
    /// Creates a task that expects its first message as the first input. `key` is the idempotency key of that message.
    pub(super) fn open(document: TaskDocument, key: String) -> Self {
        Self::new(document, State::New { key })
    }

    /// Creates a task from its stored document.
    pub(super) fn restore(document: TaskDocument) -> Self {
        let idle = Idle {
            is_fresh: true,
            ..Idle::new(RunOutcome::Stored, None)
        };
        Self::new(document, State::Idle(idle))
    }

    fn new(document: TaskDocument, state: State) -> Self {
        Self {
            document,
            state,
            steps: Vec::new(),
            awaiting: None,
            deferred: VecDeque::new(),
            effects: Vec::new(),
            is_dirty: false,
            has_subscribers: false,
            phase: Phase::Open,
            runs: 0,
            now: Timestamp::default(),
        }
    }

    /// Handles an input and returns the effects to perform.
    pub(super) fn accept(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        self.now = self.now.max(now);
        match input {
            Input::Result(result) => self.resolve(result),
            input => self.deferred.push_back(input),
        }
        while self.awaiting.is_none() {
            if let Some(step) = self.steps.pop() {
                self.advance(step);
            } else if let Some(input) = self.deferred.pop_front() {
                self.handle(input);
            } else {
                break;
            }
        }
        std::mem::take(&mut self.effects)
    }

    /// Returns whether the task waits for the result of an effect before it handles another input.
    #[cfg(test)]
    fn is_awaiting(&self) -> bool {
        self.awaiting.is_some()
    }

    pub(super) fn document(&self) -> &TaskDocument {
        &self.document
    }

    /// Returns the timers that must run now. The driver starts those that were not running before.
    pub(super) fn timers(&self) -> Vec<Timer> {
        let mut timers = Vec::new();
        let mut want = |timer, is_wanted: bool| timers.extend(is_wanted.then_some(timer));
        match &self.state {
            State::Running(run) => {
                want(Timer::Write, self.is_dirty);
                let is_expected = run.queued.is_some() || run.stop != Stop::NotRequested;
                want(Timer::RunDeadline, is_expected);
            }
            State::Orphaned(_) => want(Timer::RunDeadline, true),
            State::Idle(idle) => {
                want(Timer::Poll, !self.document.state().is_terminal());
                want(
                    Timer::Follow,
                    !self.document.is_settled() && self.is_wanted(),
                );
                want(Timer::CancelDeadline, idle.cancel.is_some());
            }
            State::New { .. } | State::Retired => {}
        }
        timers
    }

    /// Returns whether the task must stay in memory.
    pub(super) fn residency(&self) -> Residency {
        match &self.state {
            State::Running(_) | State::Orphaned(_) => Residency::Needed,
            State::Retired => Residency::Over,
            State::New { .. } => Residency::Idle,
            State::Idle(_) => {
                let is_needed = self.is_wanted()
                    && !self.document.state().is_terminal()
                    && self.phase != Phase::Stopping;
                if is_needed {
                    Residency::Needed
                } else {
                    Residency::Idle
                }
            }
        }
    }

    fn is_wanted(&self) -> bool {
        let has_work = match &self.state {
            State::Idle(idle) => {
                idle.is_unstored()
                    || idle
                        .cancel
                        .as_ref()
                        .is_some_and(|it| !it.callers.is_empty())
            }
            _ => false,
        };
        self.has_subscribers || has_work
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Request { caller, request } => self.request(caller, request),
            Input::Reported {
                caller,
                run,
                report,
            } => self.reported(caller, run, report),
            Input::RunEnded { run, end } => self.run_ended(run, end),
            Input::CancelRequested => self.cancel_requested(),
            Input::StoreChanged => self.follow(),
            Input::Subscribers { any } => self.has_subscribers = any,
            Input::Phase(phase) => self.enter_phase(phase),
            Input::Elapsed(timer) => self.elapsed(timer),
            Input::Unload => self.unload(),
            // `accept` handles this one.
            Input::Result(_) => {}
        }
    }

    /// Handles a caller's request. A task without a run is synchronized with the store first; if the run is here, this
    /// replica has the latest state. A retired task does not answer: its callers load it again.
    fn request(&mut self, caller: CallerId, request: Request) {
        match &mut self.state {
            State::Retired => {}
            State::Orphaned(_) => {
                let refusal = Refusal::no_task(self.id());
                self.refuse(caller, refusal);
            }
            State::New { .. } | State::Running(_) => self.decide(caller, request),
            State::Idle(idle) => {
                idle.lost_races = 0;
                self.decide_after_sync(caller, request);
                self.push([Step::Refresh { is_required: true }]);
            }
        }
    }

    fn decide_after_sync(&mut self, caller: CallerId, request: Request) {
        self.push([
            Step::Sync,
            // If another replica has cancelled the task, that takes precedence over this request.
            Step::CheckCancel { is_overdue: false },
            Step::Decide { caller, request },
        ]);
    }

    fn elapsed(&mut self, timer: Timer) {
        match (timer, &self.state) {
            (Timer::Write, State::Running(_)) => self.push([Step::Flush]),
            (Timer::RunDeadline, State::Running(_) | State::Orphaned(_)) => {
                self.effects.push(Effect::AbortRun);
            }
            (Timer::Poll, State::Idle(_)) => {
                self.push([Step::Sync, Step::CheckCancel { is_overdue: false }]);
            }
            (Timer::Follow, State::Idle(_)) => self.follow(),
            (Timer::CancelDeadline, State::Idle(_)) => {
                self.push([Step::CheckCancel { is_overdue: true }]);
            }
            // The state changed while the timer fired.
            _ => {}
        }
    }

    fn follow(&mut self) {
        self.push([
            Step::Refresh { is_required: false },
            Step::CheckCancel { is_overdue: false },
        ]);
    }

    fn unload(&mut self) {
        if let State::Idle(idle) = &mut self.state {
            let cancel = idle.cancel.take().unwrap_or_default();
            for caller in cancel.callers {
                self.refuse(caller, Refusal::stopping());
            }
        }
        self.retire();
    }

    fn advance(&mut self, step: Step) {
        match step {
            Step::Refresh { is_required } => self.refresh(is_required),
            Step::Sync => self.sync(),
            Step::Decide { caller, request } => self.decide(caller, request),
            Step::Record { report, reporter } => self.record(report, reporter),
            Step::Flush => self.flush(),
            Step::LimitAttempts { attempts } => self.limit_attempts(attempts),
            Step::Conclude { end, is_deferred } => self.conclude(end, is_deferred),
            Step::AnswerRecovery { caller, recovery } => {
                self.answer(caller, TaskAnswer::Recovery(recovery));
            }
            Step::CheckCancel { is_overdue } => self.check_cancel(is_overdue),
            Step::RequestCancel => self.request_cancel(),
            Step::EndCancelled => self.end_cancelled(),
            Step::AnswerCancels { obstacle } => self.answer_cancels(obstacle.as_deref()),
        }
    }

    /// Continues the step that awaited this result.
    fn resolve(&mut self, result: EffectResult) {
        use EffectResult as R;
        match (self.awaiting.take(), result) {
            (Some(Await::Refreshed { is_required }), R::Loaded(loaded)) => {
                self.refreshed(is_required, loaded);
            }
            (Some(Await::AgentStatus), R::AgentStatus(status)) => self.synced(status),
            (Some(Await::Slot(admission)), R::Slot(reserved)) => {
                self.slot_reserved(admission, reserved);
            }
            (Some(Await::Opened(submission)), R::Opened(opened)) => {
                self.opened(submission, opened);
            }
            (Some(Await::KnownTask { submission, known }), R::Loaded(loaded)) => {
                self.known_loaded(&submission, known, loaded);
            }
            (Some(Await::Stored { write, tries }), R::Stored(stored)) => {
                self.stored(write, tries, stored);
            }
            (Some(Await::Conflict { write, tries }), R::Loaded(loaded)) => {
                self.conflict_loaded(write, tries, loaded);
            }
            (Some(Await::Claimed(claim)), R::Stored(stored)) => self.claimed(claim, stored),
            (Some(Await::Reloaded(submission)), R::Loaded(loaded)) => {
                self.reloaded(submission, loaded);
            }
            (Some(Await::AgentCancel), R::AgentCancelled(result)) => self.agent_cancelled(result),
            (Some(Await::CancelStored), R::CancelStored(result)) => self.cancel_stored(result),
            // The driver answers each effect with the matching result; any other result is ignored.
            (awaiting, _) => self.awaiting = awaiting,
        }
    }

    fn decide(&mut self, caller: CallerId, request: Request) {
        match request {
            Request::Submit { message, view } => self.decide_submit(Submission {
                caller,
                message,
                view,
            }),
            Request::Watch(view) => self.answer_snapshot(caller, view),
            Request::Cancel => self.decide_cancel(caller),
            Request::Recover {
                is_cancel_requested,
            } => self.decide_recover(caller, is_cancel_requested),
        }
    }

    /// Adds steps to perform, in this order, before the remaining ones.
    fn push<const N: usize>(&mut self, steps: [Step; N]) {
        self.steps.extend(steps.into_iter().rev());
    }

    /// Performs an effect and awaits its result.
    fn perform(&mut self, effect: Effect, awaiting: Await) {
        self.effects.push(effect);
        self.awaiting = Some(awaiting);
    }

    fn answer(&mut self, caller: CallerId, answer: TaskAnswer) {
        self.effects.push(Effect::Answer { caller, answer });
    }

    fn refuse(&mut self, caller: CallerId, refusal: Refusal) {
        self.answer(caller, TaskAnswer::Refused(refusal));
    }

    fn answer_snapshot(&mut self, caller: CallerId, view: View) {
        let answer = TaskAnswer::Snapshot {
            json: self.document.json(view),
            state: self.document.state().clone(),
        };
        self.answer(caller, answer);
    }

    /// Unloads the task from memory. Callers that got no answer load it again.
    fn retire(&mut self) {
        self.state = State::Retired;
        self.steps.clear();
        self.awaiting = None;
        self.deferred.clear();
        self.is_dirty = false;
    }

    fn id(&self) -> &str {
        &self.document.task.id
    }
}

/// Whether a task must stay in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residency {
    Needed,
    /// The task can be unloaded when no input waits for it.
    Idle,
    /// The task must be unloaded.
    Over,
}
