//! Runs a task of a caller as a turn of a session, and reports how it goes. A conversation of the protocol is a session, a
//! task is a turn with the task's own id: so the log says after a restart what became of the task, and resuming it starts no
//! second turn.
//!
//! Approvals are never asked of the caller, which is a program: the turn is parked, the task waits for authorisation, and
//! continues when a user of this machine has answered.

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
    Conversation, InterruptedTurns, Runner, RunnerError, Shown, Standing, Stop, TurnEnd,
};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The agent that the server exposes.
pub struct TaskRunner {
    context: Arc<dyn ServerContext>,
    conversations: Conversations,
}

/// Events of a turn that may wait to be reported before the turn waits.
const MAX_PENDING_EVENTS: usize = 64;

/// What callers hear of a failure here.
const INTERNAL_ERROR: &str = "the server failed to run the task; its operator can see why";

impl TaskRunner {
    /// Creates a task runner in this context.
    pub fn new(context: Arc<dyn ServerContext>) -> Self {
        Self {
            context,
            conversations: Conversations::default(),
        }
    }

    /// Returns the session of a conversation. Its id is a hash, so that no caller can name another's session.
    pub fn session_of(user: &UserId, context: &str) -> SessionId {
        let mut hasher = Sha256::new();
        hasher.update(user.as_str());
        hasher.update([0]);
        hasher.update(context);
        let mut name = "s_a2a".to_owned();
        for byte in &hasher.finalize()[..10] {
            let _ = write!(name, "{byte:02x}");
        }
        SessionId::new(name)
    }

    async fn run_task(&self, run: TaskRun, reporter: &Reporter) -> Result<RunResult, ReportError> {
        let session = Self::session_of(&run.user, &run.context);
        if run.cause == RunCause::FollowUp {
            return self.answer_follow_up(&run, &session, reporter).await;
        }
        let mut conversation = self.conversation_for(&run, &session);
        let ended = self.turn(&run, &mut conversation, reporter).await?;
        if is_new_work(&run) {
            self.conversations.put(conversation);
        }
        if ended == RunResult::Reported {
            self.context.turn_ended(&run.user, &session);
        }
        Ok(ended)
    }

    /// Returns the conversation of a task. A new task reuses the cached conversation of its session; a resumed one reads the
    /// log. If the database was restored from a backup, a resumed task asks the user first, because it may have continued in
    /// the original database.
    fn conversation_for(&self, run: &TaskRun, session: &SessionId) -> Conversation {
        let runner = self.context.runner();
        let recent = self.conversations.take(session);
        if let Some(mut conversation) = recent.filter(|_| is_new_work(run)) {
            conversation.move_to(&runner);
            return conversation;
        }
        let conversation = runner.start_as(run.user.clone(), session.clone());
        let may_be_copied =
            runner.interrupted() == InterruptedTurns::Ask || restore::is_marked(&run.message);
        if !is_new_work(run) && may_be_copied {
            conversation.asking_first()
        } else {
            conversation
        }
    }

    /// Answers a message to a task that waits. It waits for a user of this machine, whatever the caller sends.
    async fn answer_follow_up(
        &self,
        run: &TaskRun,
        session: &SessionId,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let turn = turn_of(&run.task);
        match self.status_of(session, &turn).await {
            AgentStatus::Changed(ended) => {
                for report in ended {
                    reporter.report(report).await?;
                }
            }
            AgentStatus::Busy => {
                let text = "it was approved and runs on another replica; poll the task";
                reporter.report(Report::AuthRequired(text.into())).await?;
            }
            AgentStatus::Interrupted => return Ok(RunResult::Deferred),
            AgentStatus::Unknown => {
                let text = "the log has nothing of this task any more";
                reporter.failed(text).await?;
            }
        }
        Ok(RunResult::Reported)
    }

    /// Runs or resumes the turn of a task, and reports how it goes. When the server stops first, the turn stays in the log as
    /// it is.
    async fn turn(
        &self,
        run: &TaskRun,
        conversation: &mut Conversation,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let turn = turn_of(&run.task);
        // Callers are programs: the message is not the user's own.
        let mut question = UserInput::of_program(messages::stored_question(&run.message));
        question.attachments = messages::attachments(&run.message);
        let (sender, events) = mpsc::channel(MAX_PENDING_EVENTS);
        let stop = Stop::new();
        let commit = TaskCommit::new(self.context.task_log(), reporter, sender.downgrade());
        let running = async {
            let end = conversation.turn_once(turn, question, &stop, &sender, Some(&commit));
            let end = end.await;
            drop(sender);
            end
        };
        let session = Self::session_of(&run.user, &run.context);
        let id = turn_of(&run.task);
        let shown = |item: &Shown| self.context.turn_shown(&session, &id, item);
        let reporting = TurnEvents::new(reporter).report(events, shown);
        let both = async { tokio::join!(running, reporting) };
        let (end, ()) = tokio::select! {
            biased;
            () = shutdown(run.stop.clone(), &stop) => return Ok(RunResult::Deferred),
            both = both => both,
        };
        let ended = match end {
            Ok(TurnEnd::Finished(_)) if commit.is_reported() => return Ok(RunResult::Reported),
            Ok(TurnEnd::Finished(report)) => Some(messages::ending(&report)),
            Ok(TurnEnd::Waiting(waiting)) => {
                Some(Report::AuthRequired(messages::waiting(&waiting)))
            }
            // The task of the other turn has the answer.
            Err(RunnerError::Duplicate) => return Ok(RunResult::Deferred),
            Err(RunnerError::NotBegun) => return self.report_not_started(run, reporter).await,
            // The caller waits for an end, and the turn cannot be resumed here.
            Err(RunnerError::BegunElsewhere { .. } | RunnerError::AgentMissing { .. }) => {
                match self.close(conversation).await {
                    Ok(ended) => ended,
                    Err(error) => return self.report_not_run(run, &error, reporter).await,
                }
            }
            Err(error) => return self.report_not_run(run, &error, reporter).await,
        };
        if let Some(ended) = ended {
            reporter.report(ended).await?;
        }
        Ok(RunResult::Reported)
    }

    async fn close(&self, conversation: &mut Conversation) -> Result<Option<Report>, RunnerError> {
        let (shown, _) = mpsc::channel(1);
        Ok(match conversation.close(&shown).await? {
            Some(TurnEnd::Finished(report)) => Some(messages::ending(&report)),
            _ => None,
        })
    }

    /// Reports a task that was cancelled while it was queued. A process that has started it must end it.
    async fn report_not_started(
        &self,
        run: &TaskRun,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let session = Self::session_of(&run.user, &run.context);
        let turn = turn_of(&run.task);
        match self.context.runner().standing(&session, &turn).await {
            Ok(Standing::Unknown) => reporter
                .cancelled(StatusMessage::empty())
                .await
                .map(reported),
            _ => Ok(RunResult::Deferred),
        }
    }

    /// Reports a turn that could not be run. After a failure that may pass, or that interrupted a turn, the task is resumed
    /// later.
    async fn report_not_run(
        &self,
        run: &TaskRun,
        error: &RunnerError,
        reporter: &Reporter,
    ) -> Result<RunResult, ReportError> {
        let report = match error {
            RunnerError::Store(
                StoreError::Busy { .. } | StoreError::Lost { .. } | StoreError::Conflict { .. },
            ) => return Ok(RunResult::Deferred),
            RunnerError::Store(StoreError::Unreachable { .. } | StoreError::Full { .. }) => {
                self.context.notify(Notice::Error(error));
                return Ok(RunResult::Deferred);
            }
            RunnerError::Waiting { request } => {
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

    /// Returns whether the log can be read and has nothing of the turn of a task.
    async fn is_unknown(&self, run: &TaskRun) -> bool {
        let session = Self::session_of(&run.user, &run.context);
        let turn = turn_of(&run.task);
        let found = self.context.runner().standing(&session, &turn).await;
        matches!(found, Ok(Standing::Unknown))
    }

    /// Returns the status of a turn by the log, if no process is at work in its session.
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
        let mut found = runner.standing(session, turn).await?;
        if !matches!(found, Standing::Finished(_)) {
            if !runner.is_free(session).await? {
                return Ok(AgentStatus::Busy);
            }
            // It may have ended between the two reads.
            found = runner.standing(session, turn).await?;
        }
        Ok(match found {
            Standing::Finished(report) => AgentStatus::Changed(vec![messages::ending(&report)]),
            Standing::Waiting(waiting) => {
                AgentStatus::Changed(vec![Report::AuthRequired(messages::waiting(&waiting))])
            }
            Standing::Unknown => AgentStatus::Unknown,
            Standing::Unfinished => AgentStatus::Interrupted,
        })
    }

    /// Ends the turn of a task that waits for approval or was interrupted.
    async fn cancel_turn(&self, session: &SessionId, turn: &TurnId) -> Result<(), RunnerError> {
        let runner = self.context.runner();
        match runner.standing(session, turn).await? {
            Standing::Unknown | Standing::Finished(_) => Ok(()),
            Standing::Waiting(_) | Standing::Unfinished => {
                let mut conversation = runner.open(session.clone()).await?.impatient();
                let (shown, _) = mpsc::channel(1);
                conversation.take_back(turn, &shown).await.map(drop)
            }
        }
    }

    /// Returns what callers hear of an error: its cause may name files and providers, and is for the operator.
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
            // A cancelled task needs no more reports; for one that could not be stored the log has the outcome.
            let result = self.run_task(run, &reporter).await;
            result.unwrap_or(RunResult::Reported)
        })
    }

    fn is_idle<'a>(&'a self, user: &'a UserId, context: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let session = Self::session_of(user, context);
            // What cannot be known now is checked by the next scan.
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
        let question = messages::question(message);
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
            let is_the_same = |report: &Report| match report {
                Report::AuthRequired(asked) if task.status.state == TaskState::AuthRequired => {
                    let message = task.status.message.as_ref();
                    let metadata = message.and_then(|message| message.metadata.as_ref());
                    let shown = metadata.and_then(|metadata| metadata.get(messages::APPROVALS));
                    // If the message was too long for the task, its ids were dropped too and cannot be compared.
                    shown.is_none_or(|shown| asked.metadata.get(messages::APPROVALS) == Some(shown))
                }
                _ => false,
            };
            match self.status_of(&session, &turn).await {
                AgentStatus::Changed(reports) if reports.iter().any(is_the_same) => {
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
                    "another process is at work on it; retry later".to_owned()
                }
                RunnerError::NothingWaits => {
                    "it has just been resumed; get the task again".to_owned()
                }
                error => self.public_text(&error).to_owned(),
            })
        })
    }
}

/// Waits until the server stops. If only the task is cancelled, tells its turn, which ends by itself.
async fn shutdown(mut signal: StopSignal, stop: &Stop) {
    if signal.wait().await == StopReason::Cancelled {
        stop.stop();
        std::future::pending::<()>().await;
    }
}

/// Returns the turn of a task. All attempts at a message share one turn, so that its effects happen once.
fn turn_of(task: &str) -> TurnId {
    TurnId::new(first_attempt(task))
}

/// Returns whether no process can have started the turn of a task.
fn is_new_work(run: &TaskRun) -> bool {
    run.cause == RunCause::NewTask && !is_further_attempt(&run.task)
}

fn reported((): ()) -> RunResult {
    RunResult::Reported
}
