//! Stores a task in one transaction with the first and the last events of its turn.
//!
//! The engine has the events and the task's actor has the task record, so both writes take the same path: the engine
//! passes the events to [`TaskCommit`], which passes a closure to the actor through the [`Reporter`]. The actor calls
//! the closure with the task record, and the closure writes both to the [`TaskLog`].

use crate::messages;
use lango_a2a::server::{Reporter, SharedTaskOpening, StoreTask};
use lango_core::{BoxFuture, EventBatch, StoreError, TaskInsertOutcome, TaskLog, TaskRecord};
use lango_engine::{FirstCommit, TurnCommit, TurnReport, UpdateBacklog};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

pub(crate) struct TaskCommit<'a> {
    log: Arc<dyn TaskLog>,
    reporter: &'a Reporter,
    /// The turn's events that have not reached the reporter yet.
    pending: UpdateBacklog,
    is_reported: AtomicBool,
}

impl<'a> TaskCommit<'a> {
    pub(crate) fn new(
        log: Arc<dyn TaskLog>,
        reporter: &'a Reporter,
        pending: UpdateBacklog,
    ) -> Self {
        Self {
            log,
            reporter,
            pending,
            is_reported: AtomicBool::new(false),
        }
    }

    /// Waits until all earlier events of the turn have been reported, because nothing can be reported after the end. An
    /// empty channel is enough: the receiver runs in the same tokio task as this function, so it has also reported the
    /// events that it received.
    async fn report_pending(&self) {
        self.pending.emptied().await;
    }

    /// Returns whether the end of the turn was stored with the task.
    pub(crate) fn is_reported(&self) -> bool {
        self.is_reported.load(Ordering::Relaxed)
    }
}

impl TurnCommit for TaskCommit<'_> {
    fn is_duplicate(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(self.reporter.is_duplicate())
    }

    fn first(&self, events: EventBatch) -> BoxFuture<'_, Result<FirstCommit, StoreError>> {
        Box::pin(async move {
            let store = async |task: TaskRecord, message: &str| {
                self.log.append_first(events, task, message).await
            };
            Ok(match self.reporter.open_with(store).await? {
                SharedTaskOpening::Joint(TaskInsertOutcome::New) => FirstCommit::Stored,
                SharedTaskOpening::Separate(TaskInsertOutcome::New) => FirstCommit::Separate,
                SharedTaskOpening::Joint(TaskInsertOutcome::Known(_))
                | SharedTaskOpening::Separate(TaskInsertOutcome::Known(_)) => {
                    FirstCommit::Duplicate
                }
            })
        })
    }

    fn last<'a>(
        &'a self,
        events: EventBatch,
        report: &'a TurnReport,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let log = Arc::clone(&self.log);
        let (sender, mut stored) = oneshot::channel();
        let store: StoreTask = Box::new(move |task| {
            Box::pin(async move {
                let (put, appended) = match log.append_last(events, task).await {
                    Ok(put) => (Ok(put), Ok(())),
                    Err(error) => (Err(error.to_string()), Err(error)),
                };
                // Without a receiver the turn was dropped. It is resumed from its log.
                let _ = sender.send(appended);
                put
            })
        });
        Box::pin(async move {
            self.report_pending().await;
            // An error of the store arrives through `stored`. Any other error means that the task did not accept the
            // report.
            let _ = self
                .reporter
                .report_with(messages::end_report(report), store)
                .await;
            // The channel is empty if the actor refused the report and did not call `store`.
            let appended = stored.try_recv().ok().transpose()?;
            self.is_reported
                .store(appended.is_some(), Ordering::Relaxed);
            Ok(appended.is_some())
        })
    }
}
