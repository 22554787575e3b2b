//! The handle through which a run reports its progress and result.

use super::Command;
use crate::server::opening::{SharedTaskOpening, TaskOpening};
use crate::server::shared::answer_of;
use crate::server::task::RunId;
use crate::server::{ArtifactChunk, Report, ReportError, StatusMessage};
use lango_core::{BoxFuture, StoreError, TaskInsertOutcome, TaskPutOutcome, TaskRecord};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A handle to report the progress and result of a run. Clones report on the same run.
#[derive(Clone)]
pub struct Reporter {
    task: Arc<str>,
    run: RunId,
    actor: mpsc::WeakSender<Command>,
    opening: Option<Arc<TaskOpening>>,
}

/// A function that stores a task in one transaction with other data. If it fails, the caller of
/// [`Reporter::report_with`] gets the error.
pub type StoreTask =
    Box<dyn FnOnce(TaskRecord) -> BoxFuture<'static, Result<TaskPutOutcome, String>> + Send + Sync>;

impl Reporter {
    pub(super) fn new(
        task: &str,
        run: RunId,
        actor: mpsc::WeakSender<Command>,
        opening: Option<Arc<TaskOpening>>,
    ) -> Self {
        Self {
            task: task.into(),
            run,
            actor,
            opening,
        }
    }

    /// Returns whether the message of this new task is a duplicate that already opened another task. Check this before
    /// any side effect that comes earlier than [`Self::open_with`], because the server aborts the run of a duplicate.
    pub async fn is_duplicate(&self) -> Result<bool, StoreError> {
        match &self.opening {
            Some(opening) => opening.is_duplicate().await,
            None => Ok(false),
        }
    }

    /// Stores a new task in one transaction with other data. Call it before the first report, which would store the
    /// task alone.
    pub async fn open_with<F>(&self, store: F) -> Result<SharedTaskOpening, StoreError>
    where
        F: AsyncFnOnce(TaskRecord, &str) -> Result<TaskInsertOutcome, StoreError>,
    {
        match &self.opening {
            Some(opening) => opening.store_with(store).await,
            None => Ok(SharedTaskOpening::Separate(TaskInsertOutcome::New)),
        }
    }

    pub async fn working(&self, message: impl Into<StatusMessage>) -> Result<(), ReportError> {
        self.report(Report::Working(message.into())).await
    }

    /// Reports a result, or a chunk of one.
    pub async fn artifact(&self, chunk: ArtifactChunk) -> Result<(), ReportError> {
        self.report(Report::Artifact(chunk)).await
    }

    /// Sets the task to `input-required`. Return from the run afterwards; the client's reply starts a new one.
    pub async fn ask(&self, message: impl Into<StatusMessage>) -> Result<(), ReportError> {
        self.report(Report::InputRequired(message.into())).await
    }

    pub async fn completed(&self, message: impl Into<StatusMessage>) -> Result<(), ReportError> {
        self.report(Report::Completed(message.into())).await
    }

    pub async fn failed(&self, message: impl Into<StatusMessage>) -> Result<(), ReportError> {
        self.report(Report::Failed(message.into())).await
    }

    /// Reports that the agent declines the task.
    pub async fn rejected(&self, message: impl Into<StatusMessage>) -> Result<(), ReportError> {
        self.report(Report::Rejected(message.into())).await
    }

    /// Reports that the task was cancelled.
    pub async fn cancelled(&self, message: impl Into<StatusMessage>) -> Result<(), ReportError> {
        self.report(Report::Cancelled(message.into())).await
    }

    /// Sends a report. When this returns, the report has been published, and also stored if it changes the status.
    pub async fn report(&self, report: Report) -> Result<(), ReportError> {
        self.send(report, None).await
    }

    /// Sends a report, and stores the task through `store`, in one transaction with data of the run. If `store` is
    /// dropped without being called, the report was not accepted.
    pub async fn report_with(&self, report: Report, store: StoreTask) -> Result<(), ReportError> {
        self.send(report, Some(store)).await
    }

    async fn send(&self, report: Report, store: Option<StoreTask>) -> Result<(), ReportError> {
        if let Some(opening) = &self.opening {
            // The actor handles reports once the task is stored, and refuses them if it could not be.
            let _ = opening.ensure_stored().await;
        }
        let (reply, answer) = oneshot::channel();
        let run = self.run;
        if let Some(actor) = self.actor.upgrade() {
            let command = Command::Report {
                run,
                report,
                store,
                reply,
            };
            if actor.send(command).await.is_ok()
                && let Some(result) = answer_of(&actor, answer).await
            {
                return result;
            }
        }
        Err(ReportError::Over {
            id: self.task.to_string(),
        })
    }
}
