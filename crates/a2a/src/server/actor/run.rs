//! A run of the agent, as its actor holds it.

use super::{Command, Reporter};
use crate::server::backend::{RunCause, RunResult, StopReason, StopSignal, TaskRun};
use crate::server::shared::{ActiveTask, Key, Shared};
use crate::server::task::{RunEnd, RunId};
use a2a::Message;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinHandle;

pub(super) struct ActiveRun {
    id: RunId,
    work: JoinHandle<RunResult>,
    stop: watch::Sender<Option<StopReason>>,
    _slot: Option<OwnedSemaphorePermit>,
    _active: ActiveTask,
}

impl ActiveRun {
    pub fn start(
        shared: &Arc<Shared>,
        key: &Key,
        actor: &mpsc::WeakSender<Command>,
        id: RunId,
        slot: Option<OwnedSemaphorePermit>,
        (cause, message, context): (RunCause, Message, String),
    ) -> Self {
        let (stop, signal) = watch::channel(None);
        let active = shared.note_run(key, &context, cause == RunCause::Resumed);
        let (user, task) = key.clone();
        let reporter = Reporter::new(&task, id, actor.clone());
        let run = TaskRun {
            user,
            task,
            context,
            cause,
            message,
            stop: StopSignal(signal),
        };
        let backend = Arc::clone(&shared.backend);
        Self {
            id,
            work: tokio::spawn(async move { backend.run(run, reporter).await }),
            stop,
            _slot: slot,
            _active: active,
        }
    }

    /// Waits until the run is over; without a run it waits for ever.
    pub async fn ended(run: &mut Option<Self>) -> (RunId, RunEnd) {
        let Some(run) = run else {
            return std::future::pending().await;
        };
        let end = match (&mut run.work).await {
            Ok(RunResult::Reported) => RunEnd::Returned,
            Ok(RunResult::Deferred) => RunEnd::Deferred,
            Err(error) if error.is_panic() => RunEnd::Panicked,
            // Only a runtime that shuts down cancels a run here: the next process resumes the task.
            Err(_) => RunEnd::Deferred,
        };
        (run.id, end)
    }

    pub fn stop(&self, reason: StopReason) {
        self.stop.send_replace(Some(reason));
    }

    /// Ends the run. What it held is free when this returns, unless it computes without ever yielding.
    pub async fn abort(self) -> RunId {
        self.work.abort();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.work).await;
        self.id
    }
}
