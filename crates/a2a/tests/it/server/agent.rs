//! An agent that follows the commands in the text of a message. Some commands wait for a permit from the test.

use a2a::{Message, Part, Task};
use lango_a2a::server::{
    AgentBackend, AgentStatus, ArtifactChunk, MessageError, Report, ReportError, Reporter,
    RunResult, StatusMessage, TaskRun,
};
use lango_core::{BoxFuture, UserId};
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

pub(crate) struct ScriptedAgent {
    /// Commands such as `hold` and `steps` wait for a permit.
    pub gate: Semaphore,
    pub runs: Mutex<Vec<TaskRun>>,
    /// How many runs have returned.
    pub returned: AtomicUsize,
    /// The status that the agent returns for tasks without a run. Reports are returned once.
    pub status: Mutex<AgentStatus>,
    /// How often the status was requested.
    pub status_queries: AtomicUsize,
    /// If set, cancelling fails with this reason.
    pub cancel_error: Mutex<Option<String>>,
    /// The ids of cancelled tasks.
    pub cancelled: Mutex<Vec<String>>,
}

impl Default for ScriptedAgent {
    fn default() -> Self {
        Self {
            gate: Semaphore::new(0),
            runs: Mutex::default(),
            returned: AtomicUsize::new(0),
            status: Mutex::new(AgentStatus::Unknown),
            status_queries: AtomicUsize::new(0),
            cancel_error: Mutex::default(),
            cancelled: Mutex::default(),
        }
    }
}

impl ScriptedAgent {
    async fn wait(&self) {
        self.gate.acquire().await.unwrap().forget();
    }

    async fn act(&self, mut run: TaskRun, reporter: &Reporter) -> Result<(), ReportError> {
        let text = run.message.text().unwrap_or_default().to_owned();
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let number = rest.parse().unwrap_or(0);
        match word {
            "ask" => reporter.ask(rest).await,
            "ask-then-linger" => {
                reporter.ask("what else?").await?;
                self.wait().await;
                Ok(())
            }
            "authorise" => reporter.report(Report::AuthRequired("may I?".into())).await,
            "fail" => reporter.failed(rest).await,
            "fail-before-start" => {
                let text = StatusMessage::from("no way").not_started();
                reporter.report(Report::Failed(text)).await
            }
            "fail-first" if self.runs.lock().unwrap().len() == 1 => {
                let text = StatusMessage::from("not this time").not_started();
                reporter.report(Report::Failed(text)).await
            }
            "fail-first" => {
                self.wait().await;
                reporter.completed("the second time").await
            }
            "mark" => {
                reporter
                    .working(StatusMessage::from("on it").with("step", json!(1)))
                    .await?;
                reporter
                    .completed(StatusMessage::empty().with("author", json!(rest)))
                    .await
            }
            "reject" => reporter.rejected(rest).await,
            "artifact" => {
                let piece = ArtifactChunk::whole("a", vec![Part::text(rest)]).named("answer");
                reporter.artifact(piece).await?;
                reporter.completed(StatusMessage::empty()).await
            }
            "chunks" => {
                for at in 0..number {
                    reporter
                        .artifact(ArtifactChunk::text("a", format!("{at} ")))
                        .await?;
                }
                reporter.completed("counted").await
            }
            "steps" => {
                reporter.working("on it").await?;
                for at in 0..number {
                    self.wait().await;
                    reporter
                        .artifact(ArtifactChunk::text("a", format!("{at} ")))
                        .await?;
                }
                reporter.completed("stepped").await
            }
            "hold" => {
                reporter.working("on it").await?;
                self.wait().await;
                reporter.completed("held").await
            }
            "until-cancelled" => {
                reporter.working("on it").await?;
                run.stop.wait().await;
                Ok(())
            }
            "stubborn" => {
                reporter.working("on it").await?;
                tokio::time::sleep(Duration::from_secs(600)).await;
                Ok(())
            }
            "panic" => panic!("as the test wants"),
            "work-then-panic" => {
                reporter.working("on it").await?;
                panic!("as the test wants");
            }
            "nothing" => Ok(()),
            "ask-in-vain" => {
                self.wait().await;
                assert!(reporter.ask("which?").await.is_err());
                self.wait().await;
                reporter.completed("without asking").await
            }
            "hold-then-replace" => {
                self.wait().await;
                for at in 0..number {
                    let text = format!("{at} {}", "x".repeat(20_000));
                    let piece = ArtifactChunk::whole("a", vec![Part::text(text)]);
                    reporter.artifact(piece).await?;
                }
                reporter.completed("replaced").await
            }
            "big" => {
                let mut refused = 0;
                let bytes = "x".repeat(1000);
                for _ in 0..number {
                    let piece = ArtifactChunk::text("a", bytes.clone());
                    refused += usize::from(reporter.artifact(piece).await.is_err());
                }
                reporter.completed(format!("{refused} refused")).await
            }
            _ => reporter.completed(format!("done: {text}")).await,
        }
    }
}

impl AgentBackend for ScriptedAgent {
    fn run<'a>(&'a self, run: TaskRun, reporter: Reporter) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            self.runs.lock().unwrap().push(run.clone());
            let _ = self.act(run, &reporter).await;
            self.returned.fetch_add(1, Ordering::SeqCst);
            RunResult::Reported
        })
    }

    fn check(&self, message: &Message) -> Result<(), MessageError> {
        match message.text() {
            Some("unfit") => Err(MessageError::ContentType("not this one".to_owned())),
            Some("odd") => {
                let (field, problem) = ("message.parts[0].text", "is odd");
                Err(MessageError::Field(field.to_owned(), problem.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn answer_directly<'a>(
        &'a self,
        _user: &'a UserId,
        _context: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Option<StatusMessage>> {
        let is_greeting = message.text() == Some("hello");
        Box::pin(async move { is_greeting.then(|| "hello yourself".into()) })
    }

    fn status<'a>(&'a self, _user: &'a UserId, _task: &'a Task) -> BoxFuture<'a, AgentStatus> {
        self.status_queries.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            let mut status = self.status.lock().unwrap();
            match &mut *status {
                AgentStatus::Changed(reports) => AgentStatus::Changed(std::mem::take(reports)),
                other => other.clone(),
            }
        })
    }

    fn cancel<'a>(
        &'a self,
        _user: &'a UserId,
        task: &'a Task,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async {
            if let Some(reason) = self.cancel_error.lock().unwrap().clone() {
                return Err(reason);
            }
            self.cancelled.lock().unwrap().push(task.id.clone());
            Ok(())
        })
    }
}
