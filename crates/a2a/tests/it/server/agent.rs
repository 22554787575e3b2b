//! An agent that does what the text of a message says, and that waits for the test where the text says so.

use a2a::{Message, Part, Task};
use lango_a2a::server::{
    AgentBehind, Ended, Job, Piece, Report, ReportError, Reports, Standing, Unfit, Words,
};
use lango_core::{BoxFuture, UserId};
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

pub struct ScriptedAgent {
    /// What `hold` and `steps` wait for.
    pub gate: Semaphore,
    pub jobs: Mutex<Vec<Job>>,
    /// How many jobs came to their end.
    pub returned: AtomicUsize,
    /// What is known of tasks that nobody is at work on; reports are told once.
    pub standing: Mutex<Standing>,
    /// How often that was asked for.
    pub looks: AtomicUsize,
    /// Why nothing can be taken back.
    pub keeps: Mutex<Option<String>>,
    pub taken_back: Mutex<Vec<String>>,
}

impl Default for ScriptedAgent {
    fn default() -> Self {
        Self {
            gate: Semaphore::new(0),
            jobs: Mutex::default(),
            returned: AtomicUsize::new(0),
            standing: Mutex::new(Standing::Unknown),
            looks: AtomicUsize::new(0),
            keeps: Mutex::default(),
            taken_back: Mutex::default(),
        }
    }
}

impl ScriptedAgent {
    async fn wait(&self) {
        self.gate.acquire().await.unwrap().forget();
    }

    async fn act(&self, mut job: Job, reports: &Reports) -> Result<(), ReportError> {
        let text = job.message.text().unwrap_or_default().to_owned();
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        let number = rest.parse().unwrap_or(0);
        match word {
            "ask" => reports.ask(rest).await,
            "ask-then-linger" => {
                reports.ask("what else?").await?;
                self.wait().await;
                Ok(())
            }
            "authorise" => reports.tell(Report::AuthRequired("may I?".into())).await,
            "fail" => reports.failed(rest).await,
            "mark" => {
                reports
                    .working(Words::from("on it").with("step", json!(1)))
                    .await?;
                reports
                    .completed(Words::none().with("author", json!(rest)))
                    .await
            }
            "reject" => reports.rejected(rest).await,
            "artifact" => {
                let piece = Piece::whole("a", vec![Part::text(rest)]).named("answer");
                reports.artifact(piece).await?;
                reports.completed(Words::none()).await
            }
            "chunks" => {
                for at in 0..number {
                    reports.artifact(Piece::more("a", format!("{at} "))).await?;
                }
                reports.completed("counted").await
            }
            "steps" => {
                reports.working("on it").await?;
                for at in 0..number {
                    self.wait().await;
                    reports.artifact(Piece::more("a", format!("{at} "))).await?;
                }
                reports.completed("stepped").await
            }
            "hold" => {
                reports.working("on it").await?;
                self.wait().await;
                reports.completed("held").await
            }
            "until-cancelled" => {
                reports.working("on it").await?;
                job.cancelled.wait().await;
                Ok(())
            }
            "stubborn" => {
                reports.working("on it").await?;
                tokio::time::sleep(Duration::from_secs(600)).await;
                Ok(())
            }
            "panic" => panic!("as the test wants"),
            "work-then-panic" => {
                reports.working("on it").await?;
                panic!("as the test wants");
            }
            "nothing" => Ok(()),
            "ask-in-vain" => {
                self.wait().await;
                assert!(reports.ask("which?").await.is_err());
                self.wait().await;
                reports.completed("without asking").await
            }
            "hold-then-replace" => {
                self.wait().await;
                for at in 0..number {
                    let text = format!("{at} {}", "x".repeat(20_000));
                    let piece = Piece::whole("a", vec![Part::text(text)]);
                    reports.artifact(piece).await?;
                }
                reports.completed("replaced").await
            }
            "big" => {
                let mut refused = 0;
                let bytes = "x".repeat(1000);
                for _ in 0..number {
                    let piece = Piece::more("a", bytes.clone());
                    refused += usize::from(reports.artifact(piece).await.is_err());
                }
                reports.completed(format!("{refused} refused")).await
            }
            _ => reports.completed(format!("done: {text}")).await,
        }
    }
}

impl AgentBehind for ScriptedAgent {
    fn work<'a>(&'a self, job: Job, reports: Reports) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            self.jobs.lock().unwrap().push(job.clone());
            let _ = self.act(job, &reports).await;
            self.returned.fetch_add(1, Ordering::SeqCst);
            Ended::Said
        })
    }

    fn check(&self, message: &Message) -> Result<(), Unfit> {
        match message.text() {
            Some("unfit") => Err(Unfit::ContentType("not this one".to_owned())),
            Some("odd") => {
                let (field, problem) = ("message.parts[0].text", "is odd");
                Err(Unfit::Field(field.to_owned(), problem.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn answer_at_once<'a>(
        &'a self,
        _user: &'a UserId,
        _context: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Option<Words>> {
        let is_greeting = message.text() == Some("hello");
        Box::pin(async move { is_greeting.then(|| "hello yourself".into()) })
    }

    fn catch_up<'a>(&'a self, _user: &'a UserId, _task: &'a Task) -> BoxFuture<'a, Standing> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            let mut standing = self.standing.lock().unwrap();
            match &mut *standing {
                Standing::Reports(news) => Standing::Reports(std::mem::take(news)),
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
            if let Some(reason) = self.keeps.lock().unwrap().clone() {
                return Err(reason);
            }
            self.taken_back.lock().unwrap().push(task.id.clone());
            Ok(())
        })
    }
}
