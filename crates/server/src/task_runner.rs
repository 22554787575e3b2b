//! Runs each task of a caller as a turn of a session, and reports its progress and result. A conversation of the
//! protocol maps to a session, and a task to a turn with the same id. So after a restart the log has the status of the
//! task, and resuming the task does not start a second turn.
//!
//! The caller is a program, so it is never asked for approvals. Instead the turn is parked and the task waits for
//! authorization until a user of this machine has answered.

use crate::context::{Notice, ServerContext};
use crate::conversations::Conversations;
use crate::task_commit::TaskCommit;
use crate::turn_events::TurnEvents;
use crate::{files, messages, restore};
use a2a::{Message, PartContent, Task, TaskState};
use lango_a2a::server::{
    AgentBackend, AgentStatus, FileError, MessageError, Report, ReportError, Reporter, RunCause,
    RunResult, StatusMessage, StopReason, StopSignal, TaskRun, first_attempt, is_further_attempt,
};
use lango_core::{BoxFuture, SessionId, StoreError, TurnId, UserId, UserInput};
use lango_engine::{
    CancelToken, Conversation, InterruptedTurnPolicy, Runner, RunnerError, TurnEnd, TurnStatus,
    TurnUpdate, turn_updates,
};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The agent that the server exposes.
pub struct TaskRunner {
    context: Arc<dyn ServerContext>,
    conversations: Conversations,
}

/// The message to callers after an internal error, which hides the cause.
const INTERNAL_ERROR: &str = "the server failed to run the task; its operator can see why";

impl TaskRunner {
    pub fn new(context: Arc<dyn ServerContext>) -> Self {
        Self {
            context,
            conversations: Conversations::default(),
        }
    }

    /// Returns the session of a conversation. The id is a hash of user and conversation, so a caller cannot choose
    /// another user's session.
    pub fn session_of(user: &UserId, context: &str) -> SessionId {
        let mut hasher = Sha256::new();
        hasher.update(user.as_str());
        hasher.update([0]);
        hasher.update(context);
        let digest = base16ct::lower::encode_string(&hasher.finalize()[..10]);
        SessionId::new(format!("s_a2a{digest}"))
    }

    async fn run_task(&self, run: TaskRun, reporter: &Reporter) -> Result<RunResult, ReportError> {
        let session = Self::session_of(&run.user, &run.context);
        if run.cause == RunCause::FollowUp {
            return self.answer_follow_up(&run, &session, reporter).await;
        }
        let mut conversation = self.conversation_for(&run, &session);
        let result = self.turn(&run, &mut conversation, reporter).await?;
        if is_new_work(&run) {
            self.conversations.put(conversation);
        }
        if result == RunResult::Reported {
            self.context.turn_ended(&run.user, &session);
        }
        Ok(result)
    }

    /// Returns the conversation of a task. A new task reuses the cached conversation of its session; a resumed one
    /// reads the log. If the database was restored from a backup, a resumed task asks the user first, because it may
    /// have continued in the original database.
    fn conversation_for(&self, run: &TaskRun, session: &SessionId) -> Conversation {
        let runner = self.context.runner();
        let recent = self.conversations.take(session);
        if let Some(mut conversation) = recent.filter(|_| is_new_work(run)) {
            conversation.set_runner(&runner);
            return conversation;
        }
        let conversation = runner.start_as(run.user.clone(), session.clone());
        let may_be_copied =
            runner.interrupted() == InterruptedTurnPolicy::Ask || restore::is_marked(&run.message);
        if !is_new_work(run) && may_be_copied {
            conversation.asking_before_turns()
        } else {
            conversation
        }
    }

    /// Answers a message to a waiting task with the status of the task. The message itself changes nothing: only a user
    /// of this machine can give the approval that the task waits for.
    async fn answer_follow_up(
        &self,
        run: &TaskRun,
        session: &SessionId,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let turn = turn_of(&run.task);
        match self.status_of(session, &turn).await {
            AgentStatus::Changed(reports) => {
                for report in reports {
                    reporter.report(report).await?;
                }
            }
            AgentStatus::Busy => {
                let text = "the task was approved and runs on another replica; poll the task";
                reporter.report(Report::AuthRequired(text.into())).await?;
            }
            AgentStatus::Interrupted => return Ok(RunResult::Deferred),
            AgentStatus::Unknown => {
                let text = "the log no longer has this task";
                reporter.failed(text).await?;
            }
        }
        Ok(RunResult::Reported)
    }

    /// Runs or resumes the turn of a task, and reports its progress and result. If the server stops first, the turn
    /// stays unfinished in the log.
    async fn turn(
        &self,
        run: &TaskRun,
        conversation: &mut Conversation,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let turn = turn_of(&run.task);
        // Callers are programs, so the message does not come from the user.
        let mut question = UserInput::from_program(messages::stored_message_text(&run.message));
        question.attachments = messages::attachments(&run.message);
        let (sender, events) = turn_updates();
        let stop = CancelToken::new();
        let commit = TaskCommit::new(self.context.task_log(), reporter, sender.backlog());
        let running = async {
            let end = conversation.turn_once(turn, question, &stop, &sender, Some(&commit));
            let end = end.await;
            drop(sender);
            end
        };
        let session = Self::session_of(&run.user, &run.context);
        let id = turn_of(&run.task);
        let publish = |update: &TurnUpdate| self.context.publish_update(&session, &id, update);
        let reporting = TurnEvents::new(reporter).report(events, publish);
        let both = async { tokio::join!(running, reporting) };
        let (end, ()) = tokio::select! {
            biased;
            () = shutdown(run.stop.clone(), &stop) => return Ok(RunResult::Deferred),
            both = both => both,
        };
        let report = match end {
            Ok(TurnEnd::Finished(_)) if commit.is_reported() => return Ok(RunResult::Reported),
            Ok(TurnEnd::Finished(report)) => Some(messages::end_report(&report)),
            Ok(TurnEnd::Waiting(waiting)) => {
                Some(Report::AuthRequired(messages::approval_status(&waiting)))
            }
            // Another task runs the same message, and gets the answer.
            Err(RunnerError::Duplicate) => return Ok(RunResult::Deferred),
            Err(RunnerError::CancelledWhileQueued) => {
                return self.report_not_started(run, reporter).await;
            }
            // The turn cannot be resumed here. Close it, because the caller waits for its end.
            Err(
                RunnerError::InterruptedInOtherFolder { .. } | RunnerError::AgentMissing { .. },
            ) => match self.close(conversation).await {
                Ok(report) => report,
                Err(error) => return self.report_not_run(run, &error, reporter).await,
            },
            Err(error) => return self.report_not_run(run, &error, reporter).await,
        };
        if let Some(report) = report {
            reporter.report(report).await?;
        }
        Ok(RunResult::Reported)
    }

    async fn close(&self, conversation: &mut Conversation) -> Result<Option<Report>, RunnerError> {
        let (updates, _) = turn_updates();
        Ok(match conversation.close(&updates).await? {
            Some(TurnEnd::Finished(report)) => Some(messages::end_report(&report)),
            _ => None,
        })
    }

    /// Reports a task that was cancelled while it was queued. If its turn has already started, leaves the task to the
    /// process that runs the turn.
    async fn report_not_started(
        &self,
        run: &TaskRun,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let session = Self::session_of(&run.user, &run.context);
        let turn = turn_of(&run.task);
        match self.context.runner().turn_status(&session, &turn).await {
            Ok(TurnStatus::Unknown) => reporter
                .cancelled(StatusMessage::empty())
                .await
                .map(reported),
            _ => Ok(RunResult::Deferred),
        }
    }

    /// Reports a turn that could not be run. After a temporary failure, or one that interrupted the turn, defers the
    /// task, which is resumed later.
    async fn report_not_run(
        &self,
        run: &TaskRun,
        error: &RunnerError,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let report = match error {
            RunnerError::Store(
                StoreError::Busy { .. }
                | StoreError::LeaseLost { .. }
                | StoreError::Conflict { .. },
            ) => return Ok(RunResult::Deferred),
            RunnerError::Store(StoreError::Unreachable { .. } | StoreError::Full { .. }) => {
                self.context.notify(Notice::Error(error));
                return Ok(RunResult::Deferred);
            }
            RunnerError::ApprovalPending { request } => {
                let text = format!(
                    "this conversation waits for an answer to `{request}`; start another one, or send this message again later"
                );
                Report::Rejected(StatusMessage::from(text).not_started())
            }
            RunnerError::Store(_) if !self.is_unknown(run).await => {
                self.context.notify(Notice::Error(error));
                return Ok(RunResult::Deferred);
            }
            error => {
                let text = StatusMessage::from(self.public_text(error));
                Report::Failed(if self.is_unknown(run).await {
                    text.not_started()
                } else {
                    text
                })
            }
        };
        reporter.report(report).await.map(reported)
    }

    /// Returns whether the log can be read and does not contain the turn of a task.
    async fn is_unknown(&self, run: &TaskRun) -> bool {
        let session = Self::session_of(&run.user, &run.context);
        let turn = turn_of(&run.task);
        let status = self.context.runner().turn_status(&session, &turn).await;
        matches!(status, Ok(TurnStatus::Unknown))
    }

    /// Reads the status of a turn from the log. Returns `Busy` while a process runs a turn of the session, or if the
    /// log cannot be read.
    async fn status_of(&self, session: &SessionId, turn: &TurnId) -> AgentStatus {
        match self.try_status_of(session, turn).await {
            Ok(status) => status,
            Err(error) => {
                self.context.notify(Notice::Error(&error));
                AgentStatus::Busy
            }
        }
    }

    async fn try_status_of(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<AgentStatus, RunnerError> {
        let runner = self.context.runner();
        let mut status = runner.turn_status(session, turn).await?;
        if !matches!(status, TurnStatus::Finished(_)) {
            if !runner.is_free(session).await? {
                return Ok(AgentStatus::Busy);
            }
            // The turn may have ended between the two reads.
            status = runner.turn_status(session, turn).await?;
        }
        Ok(match status {
            TurnStatus::Finished(report) => {
                AgentStatus::Changed(vec![messages::end_report(&report)])
            }
            TurnStatus::Waiting(waiting) => AgentStatus::Changed(vec![Report::AuthRequired(
                messages::approval_status(&waiting),
            )]),
            TurnStatus::Unknown => AgentStatus::Unknown,
            TurnStatus::Unfinished => AgentStatus::Interrupted,
        })
    }

    /// Ends the turn of a task that waits for approval or was interrupted.
    async fn cancel_turn(&self, session: &SessionId, turn: &TurnId) -> Result<(), RunnerError> {
        let runner = self.context.runner();
        match runner.turn_status(session, turn).await? {
            TurnStatus::Unknown | TurnStatus::Finished(_) => Ok(()),
            TurnStatus::Waiting(_) | TurnStatus::Unfinished => {
                let mut conversation = runner.open(session.clone()).await?.without_waiting();
                let (updates, _) = turn_updates();
                conversation.cancel_turn(turn, &updates).await.map(drop)
            }
        }
    }

    /// Reports an error to the operator, and returns a text for callers that hides the cause: it may name files and
    /// providers.
    fn public_text(&self, error: &RunnerError) -> &'static str {
        self.context.notify(Notice::Error(error));
        INTERNAL_ERROR
    }
}

impl AgentBackend for TaskRunner {
    fn store_failed(&self, error: &StoreError) {
        self.context.notify(Notice::Error(error));
    }

    fn opens_tasks(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, run: TaskRun, reporter: Reporter) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            // A cancelled task needs no more reports. If a report could not be stored, the log still has the outcome.
            let result = self.run_task(run, &reporter).await;
            result.unwrap_or(RunResult::Reported)
        })
    }

    fn is_idle<'a>(&'a self, user: &'a UserId, context: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let session = Self::session_of(user, context);
            // If this is not known now, the next scan checks again.
            self.context
                .runner()
                .is_free(&session)
                .await
                .unwrap_or(false)
        })
    }

    fn check(&self, message: &Message) -> Result<(), MessageError> {
        let mut parts = message.parts.iter().map(|part| &part.content);
        let has_files =
            parts.any(|content| matches!(content, PartContent::Raw(_) | PartContent::Url(_)));
        let question = messages::message_text(message);
        let problem = match question.len() {
            _ if question.trim().is_empty() && !has_files => "has no text and no file".to_owned(),
            length if length > Runner::INPUT_BYTES => {
                format!("has {length} bytes; the limit is {}", Runner::INPUT_BYTES)
            }
            _ => return Ok(()),
        };
        Err(MessageError::Field("message.parts".to_owned(), problem))
    }

    fn store_files<'a>(
        &'a self,
        user: &'a UserId,
        message: Message,
    ) -> BoxFuture<'a, Result<Message, FileError>> {
        Box::pin(async move { files::store_files(&*self.context, user, message).await })
    }

    fn status<'a>(&'a self, user: &'a UserId, task: &'a Task) -> BoxFuture<'a, AgentStatus> {
        Box::pin(async move {
            let session = Self::session_of(user, &task.context_id);
            let turn = turn_of(&task.id);
            let is_unchanged = |report: &Report| match report {
                Report::AuthRequired(status) if task.status.state == TaskState::AuthRequired => {
                    let message = task.status.message.as_ref();
                    let metadata = message.and_then(|message| message.metadata.as_ref());
                    let stored = metadata.and_then(|metadata| metadata.get(messages::APPROVALS));
                    // If the message was too long for the task, its ids were dropped too and cannot be compared.
                    stored.is_none_or(|stored| {
                        status.metadata.get(messages::APPROVALS) == Some(stored)
                    })
                }
                _ => false,
            };
            match self.status_of(&session, &turn).await {
                AgentStatus::Changed(reports) if reports.iter().any(is_unchanged) => {
                    AgentStatus::Changed(Vec::new())
                }
                status => status,
            }
        })
    }

    fn cancel<'a>(&'a self, user: &'a UserId, task: &'a Task) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let session = Self::session_of(user, &task.context_id);
            let turn = turn_of(&task.id);
            let cancelled = self.cancel_turn(&session, &turn).await;
            cancelled.map_err(|error| match error {
                RunnerError::Store(StoreError::Busy { .. }) => {
                    "another process is running it; retry later".to_owned()
                }
                RunnerError::NothingPending => {
                    "it has just been resumed; get the task again".to_owned()
                }
                error => self.public_text(&error).to_owned(),
            })
        })
    }
}

/// Waits until the server stops. If only the task is cancelled, cancels its turn and never returns.
async fn shutdown(mut signal: StopSignal, stop: &CancelToken) {
    if signal.wait().await == StopReason::Cancelled {
        stop.cancel();
        std::future::pending::<()>().await;
    }
}

/// Returns the turn of a task. All attempts at a message share one turn, so that its effects happen only once.
fn turn_of(task: &str) -> TurnId {
    TurnId::new(first_attempt(task))
}

/// Returns whether the task is new, so that no process can have started its turn.
fn is_new_work(run: &TaskRun) -> bool {
    run.cause == RunCause::NewTask && !is_further_attempt(&run.task)
}

fn reported((): ()) -> RunResult {
    RunResult::Reported
}
