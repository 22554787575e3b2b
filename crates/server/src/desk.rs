//! The desk gives a task from outside to the runner, as a turn of a session, and reports what becomes of it. A conversation
//! of the protocol is a session here, a task is a turn: under the task's own id, so that after a restart the log still tells
//! what became of it, and whoever takes the task up again begins no second one.
//!
//! What only a person may allow is never asked of the caller, who is a program: the turn is parked, the task waits for
//! authorisation, and goes on when somebody on this machine has answered.

use crate::telling::{Telling, tell_all};
use crate::{files, words};
use a2a::{Message, PartContent, Task, TaskState};
use lango_a2a::server::{
    AgentBehind, Cancelled, Ended, FilesNotStored, Job, Report, ReportError, Reports,
    Standing as TaskStanding, Start, StopReason, Unfit, Words,
};
use lango_core::{BoxFuture, SessionId, StoreError, TurnId, UserId, UserInput};
use lango_engine::{Conversation, Runner, RunnerError, Standing, Stop, TurnEnd};
use lango_net::Egress;
use sha2::{Digest, Sha256};
use std::fmt::{Display, Write};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What the desk needs of the program around it.
pub trait House: Send + Sync + 'static {
    /// The runner of the next turn.
    fn runner(&self) -> Runner;

    /// What files at URLs are fetched through.
    fn egress(&self) -> Egress;

    /// Does what is to be done after a turn, such as remembering. It can be dropped anywhere.
    fn after_turn<'a>(&'a self, user: &'a UserId, session: &'a SessionId) -> BoxFuture<'a, ()>;

    /// How many calls of this user wait for a person.
    fn waiting<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<usize, StoreError>>;

    /// Hears of a fault here, which callers are not told more of than that there is one.
    fn trouble(&self, what: &dyn Display);
}

/// The agent that the server shows outside.
pub struct Desk {
    house: Arc<dyn House>,
}

/// Items that a turn shows before it waits for whoever passes them on.
const SHOWN_AHEAD: usize = 64;

/// Calls that may wait for a person before no new task is begun: what nobody can read through nobody answers.
const MOST_WAITING: usize = 100;

/// What callers are told of a fault here.
const TROUBLE: &str = "something is wrong on the server's side; whoever runs it can see what";

impl Desk {
    /// A desk in this house.
    pub fn new(house: Arc<dyn House>) -> Self {
        Self { house }
    }

    /// The session that a conversation outside is here. Its name says nothing that a caller chose, and belongs to one user.
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

    async fn run(&self, mut job: Job, reports: &Reports) -> Result<Ended, ReportError> {
        let session = Self::session_of(&job.user, &job.context);
        match job.start {
            Start::More => return self.answer_impatience(&job, &session, reports).await,
            Start::New => match self.house.waiting(&job.user).await {
                Ok(waiting) if waiting >= MOST_WAITING => {
                    let words = format!(
                        "{waiting} calls wait for somebody to allow them; nothing new is begun before some are answered"
                    );
                    return reports.rejected(words).await.map(said);
                }
                Ok(_) => {}
                Err(error) => return self.tell_not_run(&job, &error.into(), reports).await,
            },
            Start::Again => {}
        }
        let runner = self.house.runner();
        let mut conversation = runner.start_as(job.user.clone(), session.clone());
        let ended = self.turn(&job, &mut conversation, reports).await?;
        if ended == Ended::Said {
            tokio::select! {
                () = self.house.after_turn(&job.user, &session) => {}
                _ = job.cancelled.wait() => {}
            }
        }
        Ok(ended)
    }

    /// Answers a message to a task that waits: for somebody here, whatever the caller says.
    async fn answer_impatience(
        &self,
        job: &Job,
        session: &SessionId,
        reports: &Reports,
    ) -> Result<Ended, ReportError> {
        let turn = TurnId::new(job.task.as_str());
        match self.standing(session, &turn).await {
            TaskStanding::Reports(ended) => tell_all(reports, ended).await?,
            TaskStanding::Held => {
                let words = "it was allowed and goes on elsewhere; look again later";
                reports.tell(Report::AuthRequired(words.into())).await?;
            }
            TaskStanding::Unfinished => return Ok(Ended::Later),
            TaskStanding::Unknown => {
                let words = "nothing is known of this task any more";
                reports.failed(words).await?;
            }
        }
        Ok(Ended::Said)
    }

    /// Runs the turn of a task, or goes on with it, and tells how it goes. When the server stops before its end, it is left
    /// in the log as it is.
    async fn turn(
        &self,
        job: &Job,
        conversation: &mut Conversation,
        reports: &Reports,
    ) -> Result<Ended, ReportError> {
        let turn = TurnId::new(job.task.as_str());
        // Callers are programs, so the message is not the person's word.
        let mut question = UserInput::of_program(words::stored_question(&job.message));
        question.attachments = words::attachments(&job.message);
        let (sender, shown) = mpsc::channel(SHOWN_AHEAD);
        let stop = Stop::new();
        let running = async {
            let end = conversation.turn_once(turn, question, &stop, &sender).await;
            drop(sender);
            end
        };
        let told = async { tokio::join!(running, Telling::new(reports).all(shown)) };
        let (end, streamed) = tokio::select! {
            biased;
            () = server_stops(job.cancelled.clone(), &stop) => return Ok(Ended::Later),
            told = told => told,
        };
        let ended = match end {
            Ok(TurnEnd::Finished(report)) => words::ending(&report, &streamed),
            Ok(TurnEnd::Waiting(waiting)) => vec![Report::AuthRequired(words::waiting(&waiting))],
            Err(RunnerError::NotBegun) => return self.tell_not_begun(job, reports).await,
            // The caller waits for an end, and here it cannot go on.
            Err(RunnerError::BegunElsewhere { .. } | RunnerError::AgentMissing { .. }) => {
                match self.close(conversation).await {
                    Ok(ended) => ended,
                    Err(error) => return self.tell_not_run(job, &error, reports).await,
                }
            }
            Err(error) => return self.tell_not_run(job, &error, reports).await,
        };
        tell_all(reports, ended).await.map(said)
    }

    async fn close(&self, conversation: &mut Conversation) -> Result<Vec<Report>, RunnerError> {
        let (nobody, _) = mpsc::channel(1);
        Ok(match conversation.close(&nobody).await? {
            Some(TurnEnd::Finished(report)) => words::ending(&report, ""),
            _ => Vec::new(),
        })
    }

    /// Tells of a task that was taken back while it waited in line. If somebody else has begun it, they have to end it.
    async fn tell_not_begun(&self, job: &Job, reports: &Reports) -> Result<Ended, ReportError> {
        let session = Self::session_of(&job.user, &job.context);
        let turn = TurnId::new(job.task.as_str());
        match self.house.runner().standing(&session, &turn).await {
            Ok(Standing::Unknown) => reports.cancelled(Words::none()).await.map(said),
            _ => Ok(Ended::Later),
        }
    }

    /// Tells of a turn that could not be run. What may pass is no end, nor is what broke off a turn that was begun: the task
    /// is taken up again later.
    async fn tell_not_run(
        &self,
        job: &Job,
        error: &RunnerError,
        reports: &Reports,
    ) -> Result<Ended, ReportError> {
        let report = match error {
            RunnerError::Store(
                StoreError::Busy { .. } | StoreError::Lost { .. } | StoreError::Conflict { .. },
            ) => return Ok(Ended::Later),
            RunnerError::Store(StoreError::Unreachable { .. } | StoreError::Full { .. }) => {
                self.house.trouble(error);
                return Ok(Ended::Later);
            }
            RunnerError::Waiting { request } => Report::Rejected(
                format!(
                    "this conversation waits for somebody to answer `{request}`; begin another, or send this later as a new message"
                )
                .into(),
            ),
            RunnerError::Store(_) if !self.is_unknown(job).await => {
                self.house.trouble(error);
                return Ok(Ended::Later);
            }
            error => Report::Failed(self.said_outside(error).into()),
        };
        reports.tell(report).await.map(said)
    }

    /// Whether the log can be read and knows nothing of the turn of a task.
    async fn is_unknown(&self, job: &Job) -> bool {
        let session = Self::session_of(&job.user, &job.context);
        let turn = TurnId::new(job.task.as_str());
        let standing = self.house.runner().standing(&session, &turn).await;
        matches!(standing, Ok(Standing::Unknown))
    }

    /// How the turn of a task stands by the log, if nobody is at work in its session.
    async fn standing(&self, session: &SessionId, turn: &TurnId) -> TaskStanding {
        match self.try_standing(session, turn).await {
            Ok(standing) => standing,
            Err(error) => {
                self.house.trouble(&error);
                TaskStanding::Held
            }
        }
    }

    async fn try_standing(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<TaskStanding, RunnerError> {
        let runner = self.house.runner();
        let mut looked = runner.standing(session, turn).await?;
        if !matches!(looked, Standing::Finished(_)) {
            if !runner.is_free(session).await? {
                return Ok(TaskStanding::Held);
            }
            // Whoever was at it may have come to its end between the two looks.
            looked = runner.standing(session, turn).await?;
        }
        Ok(match looked {
            Standing::Finished(report) => TaskStanding::Reports(words::ending(&report, "")),
            Standing::Waiting(waiting) => {
                TaskStanding::Reports(vec![Report::AuthRequired(words::waiting(&waiting))])
            }
            Standing::Unknown => TaskStanding::Unknown,
            Standing::Unfinished => TaskStanding::Unfinished,
        })
    }

    /// Ends the turn of a task that waits for a person, or that was cut off.
    async fn take_back(&self, session: &SessionId, turn: &TurnId) -> Result<(), RunnerError> {
        let runner = self.house.runner();
        match runner.standing(session, turn).await? {
            Standing::Unknown | Standing::Finished(_) => Ok(()),
            Standing::Waiting(_) | Standing::Unfinished => {
                let mut conversation = runner.open(session.clone()).await?.impatient();
                let (nobody, _) = mpsc::channel(1);
                conversation.take_back(turn, &nobody).await.map(drop)
            }
        }
    }

    /// What callers are told of an error: its cause may name files and providers, and is for whoever runs the server.
    fn said_outside(&self, error: &RunnerError) -> &'static str {
        self.house.trouble(error);
        TROUBLE
    }
}

impl AgentBehind for Desk {
    fn work<'a>(&'a self, job: Job, reports: Reports) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            // A task that was taken back needs no more words; of one that could not be kept the log tells.
            let ended = self.run(job, &reports).await;
            ended.unwrap_or(Ended::Said)
        })
    }

    fn is_free<'a>(&'a self, user: &'a UserId, context: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let session = Self::session_of(user, context);
            // What cannot be known now is looked at again.
            self.house.runner().is_free(&session).await.unwrap_or(false)
        })
    }

    fn check(&self, message: &Message) -> Result<(), Unfit> {
        let mut parts = message.parts.iter().map(|part| &part.content);
        let has_files =
            parts.any(|content| matches!(content, PartContent::Raw(_) | PartContent::Url(_)));
        let question = words::question(message);
        let said = match question.len() {
            _ if question.trim().is_empty() && !has_files => "it says nothing".to_owned(),
            length if length > Runner::INPUT_BYTES => {
                format!(
                    "it has {length} bytes, {} are the most",
                    Runner::INPUT_BYTES
                )
            }
            _ => return Ok(()),
        };
        Err(Unfit::Field("message.parts".to_owned(), said))
    }

    fn store_files<'a>(
        &'a self,
        user: &'a UserId,
        message: Message,
    ) -> BoxFuture<'a, Result<Message, FilesNotStored>> {
        Box::pin(async move { files::store_files(&*self.house, user, message).await })
    }

    fn catch_up<'a>(&'a self, user: &'a UserId, task: &'a Task) -> BoxFuture<'a, TaskStanding> {
        Box::pin(async move {
            let session = Self::session_of(user, &task.context_id);
            let turn = TurnId::new(task.id.as_str());
            let is_the_same = |report: &Report| {
                matches!(report, Report::AuthRequired(_))
                    && task.status.state == TaskState::AuthRequired
            };
            match self.standing(&session, &turn).await {
                TaskStanding::Reports(reports) if reports.iter().any(is_the_same) => {
                    TaskStanding::Reports(Vec::new())
                }
                standing => standing,
            }
        })
    }

    fn cancel<'a>(&'a self, user: &'a UserId, task: &'a Task) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let session = Self::session_of(user, &task.context_id);
            let turn = TurnId::new(task.id.as_str());
            let taken_back = self.take_back(&session, &turn).await;
            taken_back.map_err(|error| match error {
                RunnerError::Store(StoreError::Busy { .. }) => {
                    "somebody is at work on it elsewhere; try again later".to_owned()
                }
                RunnerError::NothingWaits => "it has just gone on; look again".to_owned(),
                error => self.said_outside(&error).to_owned(),
            })
        })
    }
}

/// Returns when the server stops. When only the task is taken back, its turn is told so and ends by itself, in order.
async fn server_stops(mut cancelled: Cancelled, stop: &Stop) {
    if cancelled.wait().await == StopReason::Cancelled {
        stop.stop();
        std::future::pending::<()>().await;
    }
}

fn said((): ()) -> Ended {
    Ended::Said
}
