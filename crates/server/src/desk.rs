//! The desk gives a task from outside to the runner, as a turn of a session, and reports what becomes of it. A conversation
//! of the protocol is a session here, a task is a turn: under the task's own id, so that after a restart the log still tells
//! what became of it.
//!
//! What only a person may allow is never asked of the caller, who is a program: the turn is parked, the task waits for
//! authorisation, and goes on when somebody on this machine has answered.

use crate::line::{Lines, Place};
use crate::telling::{Telling, tell_all};
use crate::words;
use a2a::{Message, PartContent, Task, TaskState};
use lango_a2a::server::{
    AgentBehind, Cancelled, Job, Report, ReportError, Reports, Standing as TaskStanding,
    StopReason, Unfit, Words,
};
use lango_core::{BoxFuture, SessionId, StoreError, TurnId, UserId};
use lango_engine::{Conversation, Runner, RunnerError, Standing, Stop, TurnEnd};
use sha2::{Digest, Sha256};
use std::any::Any;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What the desk needs of the program around it.
pub trait House: Send + Sync + 'static {
    /// The runner of the next turn.
    fn runner(&self) -> Runner;

    /// Takes hold of a session, so that no other process runs a turn in it; none if one does.
    fn hold(&self, session: &SessionId) -> Option<Box<dyn Any + Send>>;

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
    lines: Lines,
}

/// Items that a turn shows before it waits for whoever passes them on.
const SHOWN_AHEAD: usize = 64;

/// How long a new task waits for a session in which another process runs a turn, and how often it looks.
const BUSY_FOR: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Calls that may wait for a person before no new task is begun: what nobody can read through nobody answers.
const MOST_WAITING: usize = 100;

/// What callers are told of a fault here.
const TROUBLE: &str = "something is wrong on the server's side; whoever runs it can see what";

impl Desk {
    /// A desk in this house.
    pub fn new(house: Arc<dyn House>) -> Self {
        Self {
            house,
            lines: Lines::default(),
        }
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

    async fn run(&self, job: &mut Job, reports: &Reports) -> Result<(), ReportError> {
        let session = Self::session_of(&job.user, &job.context);
        if !job.is_new_task {
            return self.answer_impatience(job, &session, reports).await;
        }
        match self.house.waiting(&job.user).await {
            Ok(waiting) if waiting >= MOST_WAITING => {
                let words = format!(
                    "{waiting} calls wait for somebody to allow them; nothing new is begun before some are answered"
                );
                return reports.rejected(words).await;
            }
            Ok(_) => {}
            Err(error) => return reports.failed(self.said_outside(&error.into())).await,
        }
        let place = tokio::select! {
            place = self.lines.wait(&session) => place,
            reason = job.cancelled.wait() => return stopped(reports, reason).await,
        };
        let held = tokio::select! {
            held = self.wait_for(&session) => held,
            reason = job.cancelled.wait() => return stopped(reports, reason).await,
        };
        let Some(held) = held else {
            let busy = "this conversation is busy elsewhere; send it again later, or begin another";
            return reports.rejected(busy).await;
        };
        let mut conversation = match self.conversation(&job.user, &session).await {
            Ok(conversation) => conversation,
            Err(error) => return reports.failed(self.said_outside(&error)).await,
        };
        let question = words::question(&job.message);
        let ended = self.turn(job, &mut conversation, &question, reports).await;
        // Whoever is next need not wait for what follows.
        drop((held, place));
        if ended? {
            tokio::select! {
                () = self.house.after_turn(&job.user, &session) => {}
                _ = job.cancelled.wait() => {}
            }
        }
        Ok(())
    }

    /// Answers a message to a task that waits: for somebody here, whatever the caller says.
    async fn answer_impatience(
        &self,
        job: &Job,
        session: &SessionId,
        reports: &Reports,
    ) -> Result<(), ReportError> {
        let turn = TurnId::new(job.task.as_str());
        match self.standing(session, &turn).await {
            TaskStanding::Reports(ended) => tell_all(reports, ended).await,
            TaskStanding::Held => {
                let words = "it was allowed and goes on elsewhere; look again later";
                reports.tell(Report::AuthRequired(words.into())).await
            }
            TaskStanding::Unknown => {
                let words = "nothing is known of this task any more";
                reports.failed(words).await
            }
        }
    }

    /// Takes hold of a session as soon as no other process runs a turn in it.
    async fn wait_for(&self, session: &SessionId) -> Option<Box<dyn Any + Send>> {
        let began = Instant::now();
        loop {
            let held = self.house.hold(session);
            if held.is_some() || began.elapsed() > BUSY_FOR {
                return held;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn conversation(
        &self,
        user: &UserId,
        session: &SessionId,
    ) -> Result<Conversation, RunnerError> {
        let runner = self.house.runner();
        match runner.open(session.clone()).await {
            Err(RunnerError::Store(StoreError::NotFound { .. })) => {
                Ok(runner.start_as(user.clone(), session.clone()))
            }
            opened => opened,
        }
    }

    /// Runs a turn and tells how it goes; says whether it came to its end. When the server stops before that, it is left in
    /// the log as it is.
    async fn turn(
        &self,
        job: &Job,
        conversation: &mut Conversation,
        question: &str,
        reports: &Reports,
    ) -> Result<bool, ReportError> {
        let turn = TurnId::new(job.task.as_str());
        let (sender, shown) = mpsc::channel(SHOWN_AHEAD);
        let stop = Stop::new();
        let running = async {
            let end = conversation.turn_as(turn, question, &stop, &sender).await;
            drop(sender);
            end
        };
        let told = async { tokio::join!(running, Telling::new(reports).all(shown)) };
        let (end, streamed) = tokio::select! {
            biased;
            told = told => told,
            () = server_stops(job.cancelled.clone(), &stop) => return Ok(false),
        };
        let ended = match end {
            Ok(TurnEnd::Finished(report)) => words::ending(&report, &streamed),
            Ok(TurnEnd::Waiting(waiting)) => vec![Report::AuthRequired(words::waiting(&waiting))],
            Err(error) => vec![self.not_run(&error)],
        };
        tell_all(reports, ended).await.map(|()| true)
    }

    /// What a caller is told of a turn that could not be run.
    fn not_run(&self, error: &RunnerError) -> Report {
        match error {
            RunnerError::Waiting { request } => Report::Rejected(
                format!(
                    "this conversation waits for somebody to answer `{request}`; begin another, or send this again later"
                )
                .into(),
            ),
            error => Report::Failed(self.said_outside(error).into()),
        }
    }

    /// How the turn of a task stands by the log. One that was cut off is closed, unless somebody is at work on it.
    async fn standing(&self, session: &SessionId, turn: &TurnId) -> TaskStanding {
        let runner = self.house.runner();
        let mut looked = runner.standing(session, turn).await;
        if let Ok(Standing::Unfinished) = looked {
            let Some(_taken) = self.try_take(session) else {
                return TaskStanding::Held;
            };
            if let Err(error) = runner.open(session.clone()).await {
                self.house.trouble(&error);
                return TaskStanding::Held;
            }
            looked = runner.standing(session, turn).await;
        }
        match looked {
            Ok(Standing::Finished(report)) => TaskStanding::Reports(words::ending(&report, "")),
            Ok(Standing::Waiting(waiting)) => {
                TaskStanding::Reports(vec![Report::AuthRequired(words::waiting(&waiting))])
            }
            Ok(Standing::Unknown) => TaskStanding::Unknown,
            Ok(Standing::Unfinished) => TaskStanding::Held,
            Err(error) => {
                self.house.trouble(&error);
                TaskStanding::Held
            }
        }
    }

    /// Takes back the calls of a task that wait for a person.
    async fn take_back(&self, session: &SessionId, turn: &TurnId) -> Result<(), String> {
        let _place = self.lines.wait(session).await;
        let busy = "somebody is at work on it elsewhere; try again later";
        let _held = self.house.hold(session).ok_or(busy)?;
        let runner = self.house.runner();
        let taken_back = async {
            if let Standing::Waiting(_) = runner.standing(session, turn).await? {
                let mut conversation = runner.open(session.clone()).await?;
                let (nobody, _) = mpsc::channel(1);
                conversation.stop_waiting(&nobody).await?;
            }
            Ok(())
        };
        let taken_back: Result<(), RunnerError> = taken_back.await;
        taken_back.map_err(|error| self.said_outside(&error).to_owned())
    }

    /// Goes to a session that nobody is at, here or in another process.
    fn try_take(&self, session: &SessionId) -> Option<(Place<'_>, Box<dyn Any + Send>)> {
        let place = self.lines.try_take(session)?;
        let held = self.house.hold(session)?;
        Some((place, held))
    }

    /// What callers are told of an error: its cause may name files and providers, and is for whoever runs the server.
    fn said_outside(&self, error: &RunnerError) -> &'static str {
        self.house.trouble(error);
        TROUBLE
    }
}

impl AgentBehind for Desk {
    fn work<'a>(&'a self, mut job: Job, reports: Reports) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // A task that was taken back needs no more words; of one that could not be kept the log tells.
            let _ = self.run(&mut job, &reports).await;
        })
    }

    fn check(&self, message: &Message) -> Result<(), Unfit> {
        let is_file =
            |content: &PartContent| matches!(content, PartContent::Raw(_) | PartContent::Url(_));
        if message.parts.iter().any(|part| is_file(&part.content)) {
            return Err(Unfit::ContentType(
                "this agent takes text and data, no files".to_owned(),
            ));
        }
        let question = words::question(message);
        let said = match question.len() {
            _ if question.trim().is_empty() => "it says nothing".to_owned(),
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
            self.take_back(&session, &turn).await
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

async fn stopped(reports: &Reports, reason: StopReason) -> Result<(), ReportError> {
    match reason {
        StopReason::Cancelled => reports.cancelled(Words::none()).await,
        StopReason::ServerStops => {
            reports
                .failed("the server stopped before the work began; send the message again")
                .await
        }
    }
}
