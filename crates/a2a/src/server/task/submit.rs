//! Messages: which are accepted, which opened the task before, which wait for the run, and how a run starts.

use super::io::{Answer, Effect, LoadError, RunId, SlotKind, StoreFailure, Submit};
use super::state::{
    Admission, Await, Idle, Opening, PendingCancel, Request, Run, State, Step, Stop, Write,
};
use super::{Task, TaskDocument};
use crate::server::backend::{RunCause, StopReason};
use crate::server::message_identity::MessageIdentity;
use crate::server::refusal::{Kind, Refusal};
use crate::server::render::word;
use crate::server::shared::Phase;
use a2a::Message;
use lango_core::Opened;

/// How often a client may send the same first message anew.
const MAX_REPEATED_OPENINGS: usize = 64;

impl Task {
    pub(super) fn decide_submit(&mut self, submit: Box<Submit>, tries: usize) {
        if let State::Idle(Idle {
            cancel: Some(_), ..
        }) = self.state
            && self.document.is_settled()
        {
            // The cancel came first.
            let request = Request::Submit { submit, tries };
            self.push([
                Step::CheckCancel { is_overdue: false },
                Step::Decide(request),
            ]);
            return;
        }
        if self.is_duplicate(&submit.message) {
            // A client that retries after a broken connection gets what it would have got.
            self.answer_snapshot(submit.caller, submit.view);
            return;
        }
        let is_waiting = self.document.is_settled() && !self.document.state().is_terminal();
        if let State::Running(run) = &mut self.state
            && is_waiting
        {
            if run.queued.is_none() {
                run.queued = Some(submit);
            } else {
                let refusal = at_work(self.id());
                self.refuse(submit.caller, refusal);
            }
            return;
        }
        match self.check_admission(&submit) {
            Ok(()) => {
                let admission = Admission::Submit { submit, tries };
                self.perform(
                    Effect::ReserveSlot(SlotKind::Running),
                    Await::Slot(admission),
                );
            }
            Err(refusal) => self.reject_submit(&submit, refusal),
        }
    }

    fn is_duplicate(&self, message: &Message) -> bool {
        match &self.state {
            State::New => false,
            State::Running(run) if run.message == MessageIdentity::of(message) => true,
            _ => self.document.has_message(message),
        }
    }

    /// Checks whether a message may start a run, apart from the number of runs.
    fn check_admission(&self, submit: &Submit) -> Result<(), Refusal> {
        let document = &self.document;
        let is_new = self.state == State::New;
        let context = submit.message.context_id.as_ref();
        if context.is_some_and(|context| *context != document.task.context_id) {
            return Err(Refusal::field(
                "message.contextId",
                "is not that of the task; leave it out, or name the task's own",
            ));
        }
        if document.state().is_terminal() {
            let message = format!(
                "the task has ended as `{}` and takes no more messages; leave `taskId` out to open another",
                word(document.state())
            );
            let refusal = Refusal::new(Kind::UnsupportedOperation, message);
            return Err(refusal.about("taskId", self.id()));
        }
        if !is_new && (matches!(self.state, State::Running(_)) || !document.is_settled()) {
            return Err(at_work(self.id()));
        }
        if !is_new && !document.has_room_for(&submit.message) {
            return Err(Refusal::field(
                "message",
                "does not fit into the task any more; open another task",
            ));
        }
        if self.phase != Phase::Open {
            return Err(Refusal::stopping());
        }
        Ok(())
    }

    /// Refuses a message. A task that it would have opened does not come into being.
    fn reject_submit(&mut self, submit: &Submit, refusal: Refusal) {
        self.refuse(submit.caller, refusal);
        if self.state == State::New {
            self.retire();
        }
    }

    pub(super) fn slot_reserved(&mut self, admission: Admission, is_reserved: bool) {
        match admission {
            Admission::Resume(resume) => self.resume_in_slot(resume, is_reserved),
            Admission::Submit { submit, .. } if !is_reserved => {
                let message = "the server is at work on as many tasks as it may; try again later";
                self.reject_submit(&submit, Refusal::new(Kind::Busy, message));
            }
            Admission::Submit { submit, tries } => match submit.key.clone() {
                Some(base_key) => {
                    let opening = Opening {
                        submit,
                        base_key: base_key.clone(),
                        tries: MAX_REPEATED_OPENINGS,
                    };
                    self.perform(Effect::StoreNew { key: base_key }, Await::Opened(opening));
                }
                None => {
                    let message = submit.message.clone();
                    let update = self.document.add_message(message, self.now);
                    let write = Write::FollowUp {
                        submit,
                        tries,
                        update,
                    };
                    self.perform(Effect::Store, Await::Stored(write));
                }
            },
        }
    }

    /// Starts the first run of a new task, unless its message opened one before.
    pub(super) fn opened(&mut self, opening: Opening, opened: Result<Opened, StoreFailure>) {
        match opened {
            Ok(Opened::New) => {
                self.document.revision = 1;
                let submit = opening.submit;
                self.answer_snapshot(submit.caller, submit.view);
                self.start(RunCause::NewTask, submit.message);
            }
            Ok(Opened::Known(id)) => {
                let known = id.to_string();
                let other = Some(known.clone());
                self.perform(Effect::Load { other }, Await::KnownTask { opening, known });
            }
            Err(_) => self.abandon_opening(&opening, Answer::Refused(Refusal::store_failure())),
        }
    }

    /// Decides whether a message that opened a task before is a retry. A client that continued that task knows of it, so it
    /// means the message anew, and a task is opened under another key.
    pub(super) fn known_loaded(
        &mut self,
        mut opening: Opening,
        known: String,
        loaded: Result<Box<TaskDocument>, LoadError>,
    ) {
        match loaded {
            Ok(document) if document.has_follow_ups() && opening.tries > 0 => {
                opening.tries -= 1;
                let key = format!("{}/{known}", opening.base_key);
                self.perform(Effect::StoreNew { key }, Await::Opened(opening));
            }
            Err(LoadError::Store(_)) => {
                self.abandon_opening(&opening, Answer::Refused(Refusal::store_failure()));
            }
            Ok(_) | Err(LoadError::NotFound | LoadError::Damaged { .. }) => {
                self.abandon_opening(&opening, Answer::KnownTask(known));
            }
        }
    }

    fn abandon_opening(&mut self, opening: &Opening, answer: Answer) {
        self.effects.push(Effect::ReleaseSlot);
        self.answer(opening.submit.caller, answer);
        self.retire();
    }

    /// Runs a follow-up that this replica stored.
    pub(super) fn follow_up_stored(&mut self, submit: Box<Submit>, update: super::Update) {
        self.effects.push(Effect::Publish(update));
        // The caller sees the task as it was before the run says anything.
        self.answer_snapshot(submit.caller, submit.view);
        self.start(RunCause::FollowUp, submit.message);
    }

    /// Reads the task again that another replica wrote first.
    pub(super) fn follow_up_lost(&mut self, submit: Box<Submit>, tries: usize) {
        self.effects.push(Effect::ReleaseSlot);
        let request = Request::Submit {
            submit,
            tries: tries.saturating_sub(1),
        };
        self.perform(Effect::Load { other: None }, Await::Reloaded(request));
    }

    pub(super) fn reloaded(
        &mut self,
        request: Request,
        loaded: Result<Box<TaskDocument>, LoadError>,
    ) {
        let document = match loaded {
            Ok(document) => document,
            Err(error) => {
                let refusal = self.load_refusal(&error);
                self.refuse(request.caller(), refusal);
                // The message is in memory and not in the store.
                self.retire();
                return;
            }
        };
        self.adopt(*document);
        match request {
            Request::Submit { submit, tries: 0 } => {
                let refusal = at_work(self.id());
                self.refuse(submit.caller, refusal);
            }
            request => self.push([Step::Sync, Step::Decide(request)]),
        }
    }

    /// Starts a run in the reserved slot. A cancel that is under way stops it at once.
    pub(super) fn start(&mut self, cause: RunCause, message: Message) {
        self.runs += 1;
        let id = RunId(self.runs);
        let cancel = match &mut self.state {
            State::Idle(idle) => idle.cancel.take(),
            _ => None,
        };
        self.state = State::Running(Run {
            id,
            message: MessageIdentity::of(&message),
            attempts: self.document.attempts,
            stop: Stop::NotRequested,
            unstored: None,
            queued: None,
        });
        self.effects.push(Effect::StartRun {
            run: id,
            cause,
            message: Box::new(message),
        });
        if cancel.is_some() {
            self.stop_run(StopReason::Cancelled, cancel);
        }
        if self.phase == Phase::Stopping {
            self.stop_run(StopReason::Shutdown, None);
        }
    }

    /// Tells the run to stop. The first reason counts; callers of a cancel are added.
    pub(super) fn stop_run(&mut self, reason: StopReason, cancel: Option<PendingCancel>) {
        let State::Running(run) = &mut self.state else {
            return;
        };
        match &mut run.stop {
            Stop::NotRequested => {
                run.stop = Stop::Requested { reason, cancel };
                self.effects.push(Effect::StopRun {
                    run: run.id,
                    reason,
                });
            }
            Stop::Requested {
                cancel: pending, ..
            } => {
                if let Some(cancel) = cancel {
                    let pending = pending.get_or_insert_default();
                    pending.callers.extend(cancel.callers);
                }
            }
        }
    }

    pub(super) fn enter_phase(&mut self, phase: Phase) {
        self.phase = phase;
        if phase == Phase::Stopping {
            self.stop_run(StopReason::Shutdown, None);
        }
    }
}

pub(super) fn at_work(id: &str) -> Refusal {
    Refusal::new(
        Kind::UnsupportedOperation,
        "the task is being worked on; wait until it asks for something, or cancel it",
    )
    .about("taskId", id)
}
