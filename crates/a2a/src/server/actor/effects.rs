//! How the driver performs each effect of a task.

use super::run::{ActiveRun, RunSlot};
use super::{PublishedUpdate, Reply, Reporter, TaskActor};
use crate::server::backend::{AgentStatus, RunCause, StopSignal, TaskRun};
use crate::server::opening::TaskOpening;
use crate::server::refusal::Refusal;
use crate::server::shared::Phase;
use crate::server::slots::SlotTicket;
use crate::server::task::{
    Effect, EffectResult, Input, LoadError, RunEnd, RunId, SlotKind, StoreFailure, Task,
    TaskDocument, Update, is_settled,
};
use a2a::Message;
use lango_core::{StoreError, TaskInsertOutcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a run may take to store its first events before the task is stored without them.
const JOINT_WAIT: Duration = Duration::from_secs(1);

impl TaskActor {
    /// Performs one effect, and returns its result if it has one.
    pub(super) async fn perform(&mut self, task: &Task, effect: Effect) -> Option<Input> {
        let result = match effect {
            Effect::Load { other } => EffectResult::Loaded(self.load(other.as_deref()).await),
            Effect::Store => {
                let record = task.document().record(&self.key.0);
                EffectResult::Stored(match self.store.take() {
                    Some(store) => store(record).await.map_err(StoreFailure),
                    None => {
                        let stored = self.shared.tasks.put(record).await;
                        stored.map_err(|error| self.failure(error))
                    }
                })
            }
            Effect::StoreNew { key } => {
                let opened = self.store_new(task, key).await;
                EffectResult::Opened(opened.map_err(|error| self.failure(error)))
            }
            Effect::ReserveSlot(kind) => EffectResult::Slot(self.reserve_slot(task, kind).await),
            Effect::QueryAgent => EffectResult::AgentStatus(self.query_agent(task).await),
            Effect::CancelInAgent => EffectResult::AgentCancelled(self.cancel_in_agent(task).await),
            Effect::RequestCancel => {
                let (user, id) = &self.key;
                let stored = self.shared.tasks.request_cancel(user, id).await;
                EffectResult::CancelStored(stored.map(drop).map_err(|error| self.failure(error)))
            }
            Effect::AbortRun => {
                let run = self.run.take()?.abort().await;
                let end = RunEnd::Aborted;
                return Some(Input::RunEnded { run, end });
            }
            Effect::ReleaseSlot => {
                self.slot = RunSlot::None;
                if let Some(run) = self.early_run.take() {
                    run.abort().await;
                }
                return None;
            }
            Effect::StartRun {
                run,
                cause,
                message,
            } => {
                let early = self.early_run.take();
                self.run = Some(match early.filter(|early| early.id == run) {
                    Some(early) => early,
                    None => self.start_run(task, run, (cause, *message), None),
                });
                return None;
            }
            Effect::StopRun(reason) => {
                if let Some(run) = &self.run {
                    run.stop(reason);
                }
                return None;
            }
            Effect::Publish(update) => {
                self.publish(task, update);
                return None;
            }
            Effect::Answer { caller, answer } => {
                if let Some(reply) = self.callers.remove(&caller) {
                    reply.send(answer, &self.updates);
                }
                return None;
            }
        };
        Some(Input::Result(result))
    }

    fn publish(&self, task: &Task, update: Update) {
        if self.updates.receiver_count() == 0 {
            return;
        }
        let is_settled = is_settled(&update.state);
        let settled = is_settled.then(|| Arc::new(task.document().task.clone()));
        // Fails only if the last subscriber has just left.
        let _ = self.updates.send(PublishedUpdate { update, settled });
    }

    fn start_run(
        &mut self,
        task: &Task,
        run: RunId,
        (cause, message): (RunCause, Message),
        opening: Option<Arc<TaskOpening>>,
    ) -> ActiveRun {
        let (user, id) = self.key.clone();
        let (stop, signal) = watch::channel(None);
        let reporter = Reporter::new(&id, run, self.own.clone(), opening);
        let work = TaskRun {
            user,
            task: id,
            context: task.document().task.context_id.clone(),
            cause,
            message,
            stop: StopSignal(signal),
        };
        let slot = std::mem::take(&mut self.slot);
        ActiveRun::start(&self.shared, &self.key, run, slot, (work, stop), reporter)
    }

    /// Stores a new task. If the run has a slot, starts it now and lets it store the task with its first events. Stores
    /// the task alone if there is no slot, or if the run does not store it in time.
    async fn store_new(
        &mut self,
        task: &Task,
        key: String,
    ) -> Result<TaskInsertOutcome, StoreError> {
        let document = task.document();
        let record = document.record(&self.key.0);
        let opening = TaskOpening::new(record, key, Arc::clone(&self.shared.tasks));
        let opening = Arc::new(opening);
        if self.shared.backend.opens_tasks()
            && self.slot.is_granted()
            && let Some(message) = document.last_user_message()
        {
            let start = (RunCause::NewTask, message.clone());
            let run = self.start_run(task, RunId::FIRST, start, Some(Arc::clone(&opening)));
            self.early_run = Some(run);
            let _ = tokio::time::timeout(JOINT_WAIT, opening.stored()).await;
        }
        opening.ensure_stored().await
    }

    /// Reads this task, or another task of the same user.
    pub(super) async fn load(&self, other: Option<&str>) -> Result<Box<TaskDocument>, LoadError> {
        let (user, id) = &self.key;
        let id = other.unwrap_or(id);
        let record = match self.shared.tasks.get(user, id).await {
            Ok(Some(record)) => record,
            Ok(None) => return Err(LoadError::NotFound),
            Err(error) => return Err(LoadError::Store(self.failure(error))),
        };
        let document = TaskDocument::read(&record, self.shared.settings.limits);
        document.map(Box::new).map_err(|_| LoadError::Damaged {
            revision: record.revision,
        })
    }

    fn failure(&self, error: StoreError) -> StoreFailure {
        self.shared.backend.store_failed(&error);
        StoreFailure(error.to_string())
    }

    async fn reserve_slot(&mut self, task: &Task, kind: SlotKind) -> Result<(), Refusal> {
        self.slot = match kind {
            SlotKind::FollowUp => RunSlot::None,
            SlotKind::Resumed => {
                let permit = Arc::clone(&self.shared.recovering).try_acquire_owned();
                let _permit = permit.map_err(|_| Refusal::stopping())?;
                RunSlot::Resumed { _permit }
            }
            SlotKind::NewTask => {
                let context = task.document().task.context_id.clone();
                RunSlot::New(self.enter_queue(context).await?)
            }
        };
        Ok(())
    }

    /// Enters the queue and waits for a slot. If the conversation already has a slot, returns immediately: the run then
    /// waits for the conversation's previous run.
    async fn enter_queue(&mut self, context: String) -> Result<SlotTicket, Refusal> {
        let limits = self.shared.settings.limits;
        let ticket = self.shared.slots.enter((self.key.0.clone(), context));
        let mut ticket = ticket.map_err(|full| Refusal::queue_full(full, &limits))?;
        if ticket.is_behind_own_run() {
            return Ok(ticket);
        }
        let caller = self.callers.values_mut().next();
        let left = async {
            match caller {
                Some(Reply::Submit(reply)) => reply.closed().await,
                _ => std::future::pending().await,
            }
        };
        let is_granted = tokio::select! {
            biased;
            () = ticket.granted() => true,
            () = left => false,
            () = tokio::time::sleep(limits.queue_timeout) => false,
            _ = self.phase.wait_for(|phase| *phase != Phase::Open) => {
                return Err(Refusal::stopping());
            }
        };
        is_granted
            .then_some(ticket)
            .ok_or_else(|| Refusal::queue_timeout(&limits))
    }

    async fn query_agent(&self, task: &Task) -> AgentStatus {
        let timeout = self.shared.settings.limits.stop_timeout;
        let query = self
            .shared
            .backend
            .status(&self.key.0, &task.document().task);
        let status = tokio::time::timeout(timeout, query).await;
        status.unwrap_or(AgentStatus::Busy)
    }

    async fn cancel_in_agent(&self, task: &Task) -> Result<(), String> {
        let timeout = self.shared.settings.limits.stop_timeout;
        let cancel = self
            .shared
            .backend
            .cancel(&self.key.0, &task.document().task);
        let cancelled = tokio::time::timeout(timeout, cancel).await;
        cancelled.unwrap_or_else(|_| Err("the agent did not answer in time; try again".to_owned()))
    }
}
