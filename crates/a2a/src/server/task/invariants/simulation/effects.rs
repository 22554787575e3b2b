//! Performs each effect on the simulated store and agent, and checks the invariants of effects.

use super::*;
use crate::server::ReportError;
use crate::server::refusal::Refusal;
use crate::server::task::state::{Await, Write};
use crate::server::task::{EffectResult, LoadError, StoreFailure};
use lango_core::{TaskInsertOutcome, TaskPutOutcome};

/// A fault of a call to the store.
enum Fault {
    None,
    Failed,
    /// The call succeeded, but its answer was lost.
    Unanswered,
}

impl Simulation<'_> {
    pub(super) fn perform(&mut self, replica: usize, effect: Effect) -> Result<(), Violation> {
        let result = match effect {
            Effect::Load { other } => EffectResult::Loaded(self.read(replica, other)),
            Effect::Store => EffectResult::Stored(self.write(replica)?),
            Effect::StoreNew { .. } => EffectResult::Opened(self.write_new(replica)),
            Effect::ReserveSlot(_) => {
                let is_reserved = !self.has_faults || self.choose(8) != 7;
                self.slots += i64::from(is_reserved);
                self.replicas[replica].has_slot = is_reserved;
                let reserved = is_reserved.then_some(());
                EffectResult::Slot(reserved.ok_or_else(Refusal::stopping))
            }
            Effect::QueryAgent => EffectResult::AgentStatus(match self.document(replica) {
                Some(document) => self.agent.status(&document),
                None => return Ok(()),
            }),
            Effect::CancelInAgent => match self.document(replica) {
                Some(document) => EffectResult::AgentCancelled(self.agent.cancel(&document)),
                None => return Ok(()),
            },
            Effect::RequestCancel => {
                let fault = self.fault();
                let is_running = self.stored_for(replica).is_some_and(|it| !it.is_settled());
                self.is_cancel_requested |= is_running && !matches!(fault, Fault::Failed);
                EffectResult::CancelStored(match fault {
                    Fault::None => Ok(()),
                    Fault::Failed | Fault::Unanswered => Err(StoreFailure("down".to_owned())),
                })
            }
            effect => return self.perform_without_result(replica, effect),
        };
        self.feed(replica, Input::Result(result));
        Ok(())
    }

    fn perform_without_result(&mut self, replica: usize, effect: Effect) -> Result<(), Violation> {
        match effect {
            Effect::ReleaseSlot => {
                if !std::mem::take(&mut self.replicas[replica].has_slot) {
                    return Err("a slot is released twice".to_owned());
                }
                self.slots -= 1;
            }
            Effect::StartRun { run, message, .. } => {
                let replica = &mut self.replicas[replica];
                if replica.run.is_some() || !std::mem::take(&mut replica.has_slot) {
                    return Err("a run starts beside another, or without a slot".to_owned());
                }
                if !std::mem::take(&mut replica.has_claim) {
                    return Err("a run starts without a stored claim".to_owned());
                }
                replica.run = Some(SimRun {
                    id: run,
                    message: message.message_id.clone(),
                    stop: None,
                    has_lease: false,
                    ending: None,
                    is_blocked: false,
                    has_failed: false,
                });
            }
            Effect::StopRun(reason) => {
                if let Some(run) = &mut self.replicas[replica].run {
                    run.stop = Some(reason);
                }
            }
            Effect::AbortRun => {
                if let Some(run) = &self.replicas[replica].run {
                    let run = run.id;
                    self.end_run(replica, run, RunEnd::Aborted);
                }
            }
            Effect::Publish(update)
                if update.is_binding && !self.states.contains(&update.state) =>
            {
                return Err("a status is published before it is stored".to_owned());
            }
            Effect::Answer { caller, answer } => self.answer(replica, caller, answer)?,
            _ => {}
        }
        Ok(())
    }

    fn answer(
        &mut self,
        replica: usize,
        id: CallerId,
        answer: TaskAnswer,
    ) -> Result<(), Violation> {
        let Some(caller) = self.callers.get_mut(&id) else {
            return Err("an unknown caller is answered".to_owned());
        };
        if caller.answer.is_some() {
            return Err("a caller is answered twice".to_owned());
        }
        caller.answer = Some(answer.clone());
        let Input::Reported { run, caller, .. } = caller.request else {
            return Ok(());
        };
        if let Some(active) = &mut self.replicas[replica].run
            && active.id == run
        {
            active.is_blocked = false;
            if caller.is_joint {
                self.joint_answered(replica, answer);
            }
        }
        Ok(())
    }

    /// Continues a run after the answer to its joint report. If the task did not accept the report, stores the end of
    /// the turn alone.
    fn joint_answered(&mut self, replica: usize, answer: TaskAnswer) {
        let ending = match self.replicas[replica].joint.take() {
            Some(end) => {
                self.agent.log.insert(end.message, end.turn);
                self.agent.ending(Some(end.turn))
            }
            None => Vec::new(),
        };
        match (&mut self.replicas[replica].run, answer) {
            (Some(run), TaskAnswer::Report(Err(ReportError::Store { .. }))) => {
                run.has_failed = true
            }
            _ => self.set_ending(replica, ending),
        }
    }

    /// Stores the end of the turn if this write is the joint write. Returns whether that failed.
    fn write_jointly(&mut self, replica: usize, fault: &Fault) -> bool {
        let loaded = self.replicas[replica].loaded.as_ref();
        let awaiting = loaded.and_then(|loaded| loaded.machine.task.awaiting.as_ref());
        let Some(Await::Stored { write, .. }) = awaiting else {
            return false;
        };
        let Write::Status(status) = write else {
            return false;
        };
        let reporter = status.reporter.map(|reporter| reporter.id);
        let joint = &mut self.replicas[replica].joint;
        let Some(end) = joint.take_if(|end| Some(end.caller) == reporter) else {
            return false;
        };
        self.reached.insert(Situation::JointWrite);
        // Without the lease the store rejects both.
        if matches!(fault, Fault::Failed) || self.agent.lease != Some(replica) {
            self.reached.insert(Situation::FailedJointWrite);
            return true;
        }
        self.agent.log.insert(end.message, end.turn);
        false
    }

    fn document(&self, replica: usize) -> Option<TaskDocument> {
        let loaded = self.replicas[replica].loaded.as_ref()?;
        Some(loaded.machine.task.document().clone())
    }

    fn fault(&mut self) -> Fault {
        if !self.has_faults {
            return Fault::None;
        }
        match self.choose(10) {
            8 => Fault::Failed,
            9 => Fault::Unanswered,
            _ => Fault::None,
        }
    }

    /// Returns the stored task, if the replica has loaded the same one.
    fn stored_for(&self, replica: usize) -> Option<&TaskDocument> {
        let loaded = self.replicas[replica].loaded.as_ref()?;
        let id = &loaded.machine.task.document().task.id;
        self.stored.as_ref().filter(|stored| stored.task.id == *id)
    }

    fn read(
        &mut self,
        replica: usize,
        other: Option<String>,
    ) -> Result<Box<TaskDocument>, LoadError> {
        let fault = self.fault();
        let stored = match other {
            Some(id) => self.stored.as_ref().filter(|stored| stored.task.id == id),
            None => self.stored_for(replica),
        };
        match (fault, stored) {
            (Fault::None, Some(stored)) => Ok(Box::new(stored.clone())),
            (Fault::None, None) => Err(LoadError::NotFound),
            _ => Err(LoadError::Store(StoreFailure("down".to_owned()))),
        }
    }

    /// Writes the document of a replica if its revision follows the stored one.
    fn write(&mut self, replica: usize) -> Result<Result<TaskPutOutcome, StoreFailure>, Violation> {
        let mut fault = self.fault();
        self.replicas[replica].has_claim = false;
        if self.write_jointly(replica, &fault) {
            fault = Fault::Failed;
        }
        let (Some(mut document), Some(stored)) = (self.document(replica), self.stored_for(replica))
        else {
            return Ok(Ok(TaskPutOutcome::Outdated));
        };
        let is_next = document.revision == stored.revision;
        if is_next && !matches!(fault, Fault::Failed) {
            if stored.state().is_terminal() {
                return Err("a final state is overwritten".to_owned());
            }
            document.revision += 1;
            let message = document.last_user_message();
            let turn = message.and_then(|message| self.agent.turn(&message.message_id));
            if *document.state() == TaskState::Completed && turn != Some(Turn::Completed) {
                return Err("a task succeeds whose turn has not ended".to_owned());
            }
            self.store(replica, document);
        }
        Ok(match fault {
            Fault::None if is_next => Ok(TaskPutOutcome::Stored),
            Fault::None => Ok(TaskPutOutcome::Outdated),
            Fault::Failed | Fault::Unanswered => Err(StoreFailure("down".to_owned())),
        })
    }

    fn write_new(&mut self, replica: usize) -> Result<TaskInsertOutcome, StoreFailure> {
        let fault = self.fault();
        let known = self.stored.as_ref().map(|it| it.task.id.clone());
        if known.is_none()
            && !matches!(fault, Fault::Failed)
            && let Some(mut document) = self.document(replica)
        {
            document.revision = 1;
            self.store(replica, document);
        }
        match (fault, known) {
            (Fault::None, None) => Ok(TaskInsertOutcome::New),
            (Fault::None, Some(id)) => Ok(TaskInsertOutcome::Known(id.into())),
            (Fault::Failed | Fault::Unanswered, _) => Err(StoreFailure("down".to_owned())),
        }
    }

    fn store(&mut self, replica: usize, document: TaskDocument) {
        self.replicas[replica].has_claim = true;
        self.states.push(document.state().clone());
        if document.is_settled() {
            self.is_cancel_requested = false;
        }
        self.stored = Some(document);
    }
}
