//! A task decides everything and performs nothing.
//!
//! [`Task::accept`] takes one [`Input`] (a message, a report, the end of a run, the result of an effect, …) and gives the
//! [`Effect`]s to perform, in order. It has no I/O, no clock and no channel, so replaying its inputs gives the same task. The
//! driver is `actor.rs`.
//!
//! A change of status is stored first and published then. A growing artifact and progress are published at once and stored
//! at intervals: a crash may lose that much of a task whose run it interrupted, and nothing of one that had ended or waits.
//!
//! One input is handled at a time. What is left of handling it is a stack of [`Step`]s; while the result of an effect is
//! [awaited](Await), other inputs are deferred. The rules, one file each: `submit` accepts messages and starts runs, `sync` brings
//! a task up to date with the store and the agent, `write` stores it, `run_end` handles reports and ends of runs, `cancel`
//! cancels, `resume` restarts what was interrupted.
//!
//! The first message of a task, from its input to its run: `request` → `decide_submit` (reserves a slot) → `slot_reserved`
//! (stores the task) → `opened` (answers the caller) → `start`. If the run stores its
//! own task, it was started by `slot_reserved`, and `start` only takes it over.

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
mod laws;

pub(super) use document::{TaskDocument, Update, is_settled, length};
pub(super) use io::{
    Answer, CallerId, Effect, EffectResult, Input, LoadError, Recovery, ReportCaller, Request,
    RunEnd, RunId, SlotKind, StoreFailure, Timer,
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
    /// What is left of handling an input, the next step last.
    steps: Vec<Step>,
    awaiting: Option<Await>,
    /// Inputs that came while a result was awaited.
    deferred: VecDeque<Input>,
    effects: Vec<Effect>,
    /// Whether something is published and not stored.
    is_dirty: bool,
    has_subscribers: bool,
    phase: Phase,
    runs: u64,
    now: Timestamp,
}

impl Task {
    /// Creates a task whose first message, which this idempotency key recognises, comes as the first input.
    pub fn open(document: TaskDocument, key: String) -> Self {
        Self::new(document, State::New { key })
    }

    /// Creates a task from its stored document.
    pub fn restore(document: TaskDocument) -> Self {
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

    /// Takes an input and gives the effects to perform.
    pub fn accept(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
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

    /// Returns whether an effect must answer before the task takes another input.
    #[cfg(test)]
    fn is_awaiting(&self) -> bool {
        self.awaiting.is_some()
    }

    pub fn document(&self) -> &TaskDocument {
        &self.document
    }

    /// The timers that must run now. One that is listed for the first time starts.
    pub fn timers(&self) -> Vec<Timer> {
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

    /// Whether the task must stay in memory. A retired one must not.
    pub fn residency(&self) -> Residency {
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
            // Taken by `accept`.
            Input::Result(_) => {}
        }
    }

    /// Decides what a caller wants. A task without a run is brought up to date first; of one that runs here, this replica
    /// knows most. A retired task does not answer: its callers load it again.
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
            // A cancel that another replica has performed came first.
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
            // It elapsed as the state changed.
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
                self.answer(caller, Answer::Recovery(recovery));
            }
            Step::CheckCancel { is_overdue } => self.check_cancel(is_overdue),
            Step::RequestCancel => self.request_cancel(),
            Step::EndCancelled => self.end_cancelled(),
            Step::AnswerCancels { obstacle } => self.answer_cancels(obstacle.as_deref()),
        }
    }

    /// Continues what awaited this result.
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
            // The driver answers each effect with its own result; another one changes nothing.
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

    /// Adds steps, to be performed in this order before those that are left.
    fn push<const N: usize>(&mut self, steps: [Step; N]) {
        self.steps.extend(steps.into_iter().rev());
    }

    /// Performs an effect and awaits its result.
    fn perform(&mut self, effect: Effect, awaiting: Await) {
        self.effects.push(effect);
        self.awaiting = Some(awaiting);
    }

    fn answer(&mut self, caller: CallerId, answer: Answer) {
        self.effects.push(Effect::Answer { caller, answer });
    }

    fn refuse(&mut self, caller: CallerId, refusal: Refusal) {
        self.answer(caller, Answer::Refused(refusal));
    }

    fn answer_snapshot(&mut self, caller: CallerId, view: View) {
        let answer = Answer::Snapshot {
            json: self.document.json(view),
            state: self.document.state().clone(),
        };
        self.answer(caller, answer);
    }

    /// Forgets the task. Callers that were not answered load it again.
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
    /// It can go when no input waits for it.
    Idle,
    /// It must go.
    Over,
}
