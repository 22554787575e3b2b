//! The desk gives a task from outside to the runner, as a turn of a session, and reports what becomes of it. A conversation
//! of the protocol is a session here, a task is a turn: under the task's own id, so that after a restart the log still tells
//! what became of it.
//!
//! What only a person may allow is never asked of the caller, who is a program: the turn is parked, the task waits for
//! authorisation, and goes on when somebody on this machine has answered.

use crate::line::{Lines, Place};
use crate::words;
use a2a::{Message, PartContent, Task, TaskState};
use lango_a2a::server::{
    AgentBehind, Job, Piece, Report, ReportError, Reports, StopReason, Unfit, Words,
};
use lango_core::{BoxFuture, EventBody, SessionId, StoreError, TurnId, UserId};
use lango_engine::{Conversation, Runner, RunnerError, Shown, Stop, TurnEnd};
use sha2::{Digest, Sha256};
use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What the desk needs of the program around it.
pub trait House: Send + Sync + 'static {
    /// The runner of the next turn.
    fn runner(&self) -> Runner;

    /// Takes hold of a session, so that no other process runs a turn in it; an error says that one does.
    fn hold(&self, session: &SessionId) -> Result<Box<dyn Any + Send>, String>;

    /// Does what is to be done after a turn, such as remembering. Nobody waits for it.
    fn after_turn<'a>(&'a self, user: &'a UserId, session: &'a SessionId) -> BoxFuture<'a, ()>;
}

/// The agent that the server shows outside.
pub struct Desk {
    house: Arc<dyn House>,
    lines: Lines,
}

/// Items that a turn shows before it waits for whoever passes them on.
const SHOWN_AHEAD: usize = 64;

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
        let _place = tokio::select! {
            place = self.lines.wait(&session) => place,
            reason = job.cancelled.wait() => return stopped(reports, reason).await,
        };
        let _held = match self.house.hold(&session) {
            Ok(held) => held,
            Err(reason) => return reports.failed(reason).await,
        };
        let mut conversation = match self.conversation(&job.user, &session).await {
            Ok(conversation) => conversation,
            Err(error) => return reports.failed(error.to_string()).await,
        };
        let turn = TurnId::new(job.task.as_str());
        match &job.message {
            Some(message) if job.is_new_task => {
                let question = words::question(message);
                self.turn(job, &mut conversation, turn, &question, reports)
                    .await?;
            }
            // The task waits: for somebody here, whatever the caller says.
            _ => {
                for report in self.standing(&conversation, &turn).await {
                    reports.tell(report).await?;
                }
            }
        }
        self.house.after_turn(&job.user, &session).await;
        Ok(())
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

    /// Runs a turn and tells how it goes. When the server stops before it ends, it is left in the log as it is.
    async fn turn(
        &self,
        job: &Job,
        conversation: &mut Conversation,
        turn: TurnId,
        question: &str,
        reports: &Reports,
    ) -> Result<(), ReportError> {
        let (sender, shown) = mpsc::channel(SHOWN_AHEAD);
        let stop = Stop::new();
        let mut cancelled = job.cancelled.clone();
        let stopping = async {
            let reason = cancelled.wait().await;
            if reason == StopReason::Cancelled {
                stop.stop();
                // The turn ends by itself now, in order.
                std::future::pending::<()>().await;
            }
        };
        let running = async {
            let end = conversation.turn_as(turn, question, &stop, &sender).await;
            drop(sender);
            end
        };
        let told = async { tokio::join!(running, Telling::new(reports).all(shown)) };
        let (end, streamed) = tokio::select! {
            biased;
            told = told => told,
            () = stopping => return Ok(()),
        };
        let ended = match end {
            Ok(TurnEnd::Finished(report)) => words::ending(&report, &streamed?),
            Ok(TurnEnd::Waiting(waiting)) => vec![Report::AuthRequired(words::waiting(&waiting))],
            Err(RunnerError::Waiting { request }) => vec![Report::Rejected(
                format!(
                    "this conversation waits for somebody to answer `{request}`; begin another, or send this again later"
                )
                .into(),
            )],
            Err(error) => vec![Report::Failed(error.to_string().into())],
        };
        for report in ended {
            reports.tell(report).await?;
        }
        Ok(())
    }

    /// How the turn of a task stands by the log.
    async fn standing(&self, conversation: &Conversation, turn: &TurnId) -> Vec<Report> {
        let waiting = conversation.waiting();
        if waiting.iter().any(|waiting| waiting.turn == *turn) {
            return vec![Report::AuthRequired(words::waiting(waiting))];
        }
        match conversation.report_of(turn).await {
            Ok(Some(report)) => words::ending(&report, ""),
            Ok(None) => vec![Report::Failed(
                "nothing is known of this task any more".into(),
            )],
            Err(error) => vec![Report::Failed(error.to_string().into())],
        }
    }

    /// Goes to a session that nobody is at, here or in another process.
    fn try_take(&self, session: &SessionId) -> Option<(Place<'_>, Box<dyn Any + Send>)> {
        let place = self.lines.try_take(session)?;
        let held = self.house.hold(session).ok()?;
        Some((place, held))
    }
}

impl AgentBehind for Desk {
    fn work<'a>(&'a self, mut job: Job, reports: Reports) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // A task that was taken back or could not be kept needs no more words.
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

    fn catch_up<'a>(&'a self, user: &'a UserId, task: &'a Task) -> BoxFuture<'a, Vec<Report>> {
        Box::pin(async move {
            let session = Self::session_of(user, &task.context_id);
            // Whoever is at it will be done some day.
            let Some(_taken) = self.try_take(&session) else {
                return Vec::new();
            };
            let Ok(conversation) = self.house.runner().open(session).await else {
                return Vec::new();
            };
            let reports = self
                .standing(&conversation, &TurnId::new(task.id.as_str()))
                .await;
            let is_the_same = |report: &Report| {
                matches!(report, Report::AuthRequired(_))
                    && task.status.state == TaskState::AuthRequired
            };
            match reports.iter().any(is_the_same) {
                true => Vec::new(),
                false => reports,
            }
        })
    }

    fn cancel<'a>(&'a self, user: &'a UserId, task: &'a Task) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let session = Self::session_of(user, &task.context_id);
            let Some(_taken) = self.try_take(&session) else {
                return;
            };
            let Ok(mut conversation) = self.house.runner().open(session).await else {
                return;
            };
            let own = TurnId::new(task.id.as_str());
            if conversation
                .waiting()
                .iter()
                .any(|waiting| waiting.turn == own)
            {
                let (nobody, _) = mpsc::channel(1);
                let _ = conversation.stop_waiting(&nobody).await;
            }
        })
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

/// Passes on what a turn shows.
struct Telling<'a> {
    reports: &'a Reports,
    /// What was given of the answer.
    streamed: String,
}

impl<'a> Telling<'a> {
    fn new(reports: &'a Reports) -> Self {
        Self {
            reports,
            streamed: String::new(),
        }
    }

    /// Passes all of it on; gives what was streamed of the answer. After an error the rest is only taken in, so that the
    /// turn does not wait.
    async fn all(mut self, mut shown: mpsc::Receiver<Shown>) -> Result<String, ReportError> {
        let mut result = Ok(());
        while let Some(item) = shown.recv().await {
            if result.is_ok() {
                result = self.tell(item).await;
            }
        }
        result.map(|()| self.streamed)
    }

    async fn tell(&mut self, item: Shown) -> Result<(), ReportError> {
        match item {
            Shown::Stored(batch) => {
                for event in batch.iter() {
                    if let EventBody::AgentDelegated { agent, .. } = &event.body {
                        let words = format!("{agent} is at work");
                        self.reports.working(words).await?;
                    }
                }
                Ok(())
            }
            Shown::Draft { text, .. } => {
                let mut piece = Piece::more(words::ANSWER, text.as_str());
                if self.streamed.is_empty() {
                    piece = piece.named("answer");
                    piece.is_appended = false;
                }
                self.streamed.push_str(&text);
                self.reports.artifact(piece).await
            }
            // What comes next takes its place.
            Shown::Withdrawn => {
                self.streamed.clear();
                Ok(())
            }
            Shown::Retrying { agent, reason } => {
                let words = format!("{agent} asks its model again: {reason}");
                self.reports.working(words).await
            }
        }
    }
}
