//! A run of the agent, as its actor holds it.

use super::{Command, Reporter};
use crate::server::backend::{RunCause, RunResult, StopReason, StopSignal, TaskRun};
use crate::server::shared::{ActiveTask, Key, Phase, Shared};
use crate::server::slots::Place;
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

/// What lets a run start.
#[derive(Default)]
pub(super) enum RunSlot {
    /// Nothing: a run that only reads.
    #[default]
    None,
    New(Place),
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

/// Runs the agent once the slot is granted. A task that is cancelled before that is left to the agent, which has not started
/// it; one that still waits when the server stops is resumed later.
async fn run_in_slot(
    shared: Arc<Shared>,
    mut slot: RunSlot,
    mut run: TaskRun,
    reporter: Reporter,
) -> RunResult {
    if let RunSlot::New(place) = &mut slot {
        let mut phase = shared.phase.subscribe();
        tokio::select! {
            biased;
            () = place.granted() => {}
            _ = run.stop.wait() => {}
            _ = phase.wait_for(|phase| *phase != Phase::Open) => return RunResult::Deferred,
        }
    }
    shared.backend.run(run, reporter).await
}
