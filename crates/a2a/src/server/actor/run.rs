//! A run of the agent, as its actor sees it.

use super::Reporter;
use crate::server::backend::{RunCause, RunResult, StopReason, TaskRun};
use crate::server::shared::{ActiveTask, Key, Phase, Shared};
use crate::server::slots::SlotTicket;
use crate::server::task::{RunEnd, RunId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::JoinHandle;

pub(super) struct ActiveRun {
    pub id: RunId,
    work: JoinHandle<RunResult>,
    stop: watch::Sender<Option<StopReason>>,
    _active: ActiveTask,
}

/// The slot that a run occupies.
#[derive(Default)]
pub(super) enum RunSlot {
    /// No slot. A follow-up needs none, because it only reads the status.
    #[default]
    None,
    New(SlotTicket),
    Resumed {
        _permit: OwnedSemaphorePermit,
    },
}

impl RunSlot {
    /// Returns whether a new task can run now.
    pub(super) fn is_granted(&self) -> bool {
        matches!(self, Self::New(ticket) if ticket.is_granted())
    }
}

impl ActiveRun {
    pub(super) fn start(
        shared: &Arc<Shared>,
        key: &Key,
        id: RunId,
        slot: RunSlot,
        (run, stop): (TaskRun, watch::Sender<Option<StopReason>>),
        reporter: Reporter,
    ) -> Self {
        let active = shared.register_run(key, &run.context, run.cause == RunCause::Resumed);
        let work = run_in_slot(Arc::clone(shared), slot, run, reporter);
        Self {
            id,
            work: tokio::spawn(work),
            stop,
            _active: active,
        }
    }

    /// Waits until the run has ended. Without a run, never returns.
    pub(super) async fn ended(run: &mut Option<Self>) -> (RunId, RunEnd) {
        let Some(run) = run else {
            return std::future::pending().await;
        };
        let end = match (&mut run.work).await {
            Ok(RunResult::Reported) => RunEnd::Returned,
            Ok(RunResult::Deferred) => RunEnd::Deferred,
            Err(error) if error.is_panic() => RunEnd::Panicked,
            // Only a shutdown of the runtime gets here. The next process resumes the task.
            Err(_) => RunEnd::Deferred,
        };
        (run.id, end)
    }

    pub(super) fn stop(&self, reason: StopReason) {
        self.stop.send_replace(Some(reason));
    }

    /// Aborts the run. When this returns, the run has dropped its resources, unless it blocks without ever yielding.
    pub(super) async fn abort(self) -> RunId {
        self.work.abort();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.work).await;
        self.id
    }
}

/// Waits for the slot, then runs the agent. If the task is cancelled first, runs the agent anyway, which reports the
/// cancel. If the server shuts down first, defers the task; the next start resumes it.
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
