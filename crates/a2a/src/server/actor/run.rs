//! A run of the agent, as its actor holds it.

use super::{Command, Reporter};
use crate::server::backend::{RunCause, RunResult, StopReason, StopSignal, TaskRun};
use crate::server::shared::{ActiveTask, Key, Phase, Shared};
use crate::server::slots::SlotTicket;
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
    _active: ActiveTask,
}

/// The slot that a run occupies.
#[derive(Default)]
pub(super) enum RunSlot {
    /// A follow-up only reads the status, and needs no slot.
    #[default]
    None,
    New(SlotTicket),
    Resumed {
        _permit: OwnedSemaphorePermit,
    },
}

impl ActiveRun {
    pub fn start(
        shared: &Arc<Shared>,
        key: &Key,
        actor: &mpsc::WeakSender<Command>,
        id: RunId,
        slot: RunSlot,
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
        let work = run_in_slot(Arc::clone(shared), slot, run, reporter);
        Self {
            id,
            work: tokio::spawn(work),
            stop,
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

/// Waits for the slot, then runs the agent. If the task is cancelled first, the agent runs and reports the cancel. If the server
/// shuts down first, the task is deferred, and resumed by the next start.
async fn run_in_slot(
    shared: Arc<Shared>,
    mut slot: RunSlot,
    mut run: TaskRun,
    reporter: Reporter,
) -> RunResult {
    if let RunSlot::New(ticket) = &mut slot {
        let mut phase = shared.phase.subscribe();
        tokio::select! {
            biased;
            () = ticket.granted() => {}
            _ = run.stop.wait() => {}
            _ = phase.wait_for(|phase| *phase != Phase::Open) => return RunResult::Deferred,
        }
    }
    shared.backend.run(run, reporter).await
}
