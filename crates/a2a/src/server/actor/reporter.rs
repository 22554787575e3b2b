//! The handle through which a run reports.

use super::Command;
use crate::server::shared::answer_of;
use crate::server::task::RunId;
use crate::server::{ArtifactChunk, Report, ReportError, StatusMessage};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Reports how a run goes. Clones report on the same run.
#[derive(Debug, Clone)]
pub struct Reporter {
    task: Arc<str>,
    run: RunId,
    actor: mpsc::WeakSender<Command>,
}

impl Reporter {
    pub(super) fn new(task: &str, run: RunId, actor: mpsc::WeakSender<Command>) -> Self {
        Self {
            task: task.into(),
            run,
            actor,
        }
    }

    /// Reports progress.
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

    /// Reports success.
    pub async fn completed(&self, message: impl Into<StatusMessage>) -> Result<(), ReportError> {
        self.report(Report::Completed(message.into())).await
    }

    /// Reports failure.
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

    /// Reports anything. It is in effect when this returns: stored, if it changes the status, and published.
    pub async fn report(&self, report: Report) -> Result<(), ReportError> {
        let (reply, answer) = oneshot::channel();
        let run = self.run;
        if let Some(actor) = self.actor.upgrade() {
            let command = Command::Report { run, report, reply };
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
