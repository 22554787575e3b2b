//! A job at work: how it begins, how it is told to stop, and the handle through which it reports.

use super::keeper::{Begin, Command, Keeper};
use super::ledger::Ledger;
use super::refusal::{Kind, Refusal};
use super::said::Said;
use super::shared::{Opener, Shared, answer_of};
use super::shown::word;
use super::{Cancelled, Job, Piece, Report, ReportError, StopReason, Words};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A job at work.
pub(super) struct Running {
    pub number: u64,
    /// The message it is for. The same message again joins it.
    message: Said,
    work: JoinHandle<()>,
    stop: watch::Sender<Option<StopReason>>,
    /// When it is ended if it has not returned.
    deadline: Option<Instant>,
    opener: Option<Opener>,
    _slot: OwnedSemaphorePermit,
}

impl Running {
    /// Waits until a job has returned, and says whether by panicking; without a job it waits for ever.
    pub async fn ended(job: &mut Option<Self>) -> bool {
        match job {
            Some(job) => (&mut job.work).await.is_err_and(|error| error.is_panic()),
            None => std::future::pending().await,
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// When the job has to have returned, because a message waits for it. Being told to stop comes first.
    pub fn expect_return(&mut self, deadline: Option<Instant>) {
        if self.stop.borrow().is_none() {
            self.deadline = deadline;
        }
    }

    /// Tells the job to stop. The first reason holds, and the first deadline.
    pub fn stop(&mut self, reason: StopReason, deadline: Instant) {
        self.deadline.get_or_insert(deadline);
        self.stop.send_if_modified(|stop| {
            let is_first = stop.is_none();
            stop.get_or_insert(reason);
            is_first
        });
    }

    /// Ends it. What it held is free when this returns, unless it computes without ever waiting.
    pub async fn abort(&mut self) {
        self.work.abort();
        let _ = tokio::time::timeout(Duration::from_secs(1), &mut self.work).await;
    }

    /// Why it was told to stop, if it was.
    pub fn finish(self, shared: &Shared) -> Option<StopReason> {
        if let Some(opener) = &self.opener {
            shared.close_opening(opener);
        }
        *self.stop.borrow()
    }
}

impl Keeper {
    /// Begins a job, or says why not.
    pub async fn begin(&mut self, ledger: &mut Ledger, begin: Box<Begin>) {
        self.catch_up(ledger).await;
        if let Some(job) = &self.job {
            if job.message == Said::of(&begin.message) {
                let watching = self.watching(ledger, begin.view);
                let _ = begin.reply.send(Ok(watching));
                return;
            }
            if ledger.is_settled() && !ledger.state().is_terminal() {
                self.put_off(begin);
                return;
            }
        }
        let opener = begin.opener.clone();
        let result = self.try_begin(ledger, begin).await;
        if let (Err(()), Some(opener)) = (result, opener) {
            self.shared.close_opening(&opener);
        }
    }

    async fn try_begin(&mut self, ledger: &mut Ledger, begin: Box<Begin>) -> Result<(), ()> {
        let slot = match self.admit(ledger, &begin) {
            Ok(slot) => slot,
            Err(refusal) => {
                if self.is_new {
                    self.spoil();
                }
                let _ = begin.reply.send(Err(refusal));
                return Err(());
            }
        };
        let update =
            (!self.is_new).then(|| ledger.take_up(begin.message.clone(), self.shared.clock.now()));
        if let Err(error) = self.save(ledger).await {
            self.spoil();
            let _ = begin.reply.send(Err(Refusal::store(&error)));
            return Err(());
        }
        if let Some(update) = update {
            self.show(update);
        }
        let watching = self.watching(ledger, begin.view);
        let is_new_task = std::mem::take(&mut self.is_new);
        let (stop, cancelled) = watch::channel(None);
        self.jobs += 1;
        self.lost = None;
        let message = Said::of(&begin.message);
        let job = Job {
            user: self.key.0.clone(),
            task: self.key.1.clone(),
            context: ledger.task.context_id.clone(),
            is_new_task,
            message: begin.message,
            cancelled: Cancelled(cancelled),
        };
        let reports = Reports {
            task: self.key.1.as_str().into(),
            job: self.jobs,
            keeper: self.own.clone(),
        };
        let behind = Arc::clone(&self.shared.behind);
        self.job = Some(Running {
            number: self.jobs,
            message,
            work: tokio::spawn(async move { behind.work(job, reports).await }),
            stop,
            deadline: None,
            opener: begin.opener,
            _slot: slot,
        });
        let _ = begin.reply.send(Ok(watching));
        Ok(())
    }

    /// Whether a job may begin now.
    fn admit(&self, ledger: &Ledger, begin: &Begin) -> Result<OwnedSemaphorePermit, Refusal> {
        let id = &self.key.1;
        let context = begin.message.context_id.as_ref();
        if context.is_some_and(|context| *context != ledger.task.context_id) {
            return Err(Refusal::field(
                "message.contextId",
                "is not that of the task; leave it out, or name the task's own",
            ));
        }
        let state = ledger.state();
        if state.is_terminal() {
            let message = format!(
                "the task has ended as `{}` and takes no more messages; leave `taskId` out to open another",
                word(state)
            );
            return Err(Refusal::new(Kind::UnsupportedOperation, message).about("taskId", id));
        }
        if !self.is_new && (self.job.is_some() || !ledger.is_settled()) {
            return Err(at_work(id));
        }
        if !self.is_new && !ledger.has_room_for(&begin.message) {
            return Err(Refusal::field(
                "message",
                "does not fit into the task any more; open another task",
            ));
        }
        if !self.shared.is_open() {
            return Err(Refusal::new(
                Kind::Stopping,
                "the server stops and takes no new work",
            ));
        }
        let slot = Arc::clone(&self.shared.running).try_acquire_owned();
        slot.map_err(|_| {
            Refusal::new(
                Kind::Busy,
                "the server is at work on as many tasks as it may; try again later",
            )
        })
    }
}

pub(super) fn at_work(id: &str) -> Refusal {
    Refusal::new(
        Kind::UnsupportedOperation,
        "the task is being worked on; wait until it asks for something, or cancel it",
    )
    .about("taskId", id)
}

/// How an agent tells the server about its job. Clones report on the same job.
#[derive(Debug, Clone)]
pub struct Reports {
    task: Arc<str>,
    job: u64,
    keeper: mpsc::WeakSender<Command>,
}

impl Reports {
    /// Work goes on.
    pub async fn working(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Working(words.into())).await
    }

    /// There is a result, or a piece of one.
    pub async fn artifact(&self, piece: Piece) -> Result<(), ReportError> {
        self.tell(Report::Artifact(piece)).await
    }

    /// The client must say something before it can go on. The job should return then.
    pub async fn ask(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::InputRequired(words.into())).await
    }

    /// Done.
    pub async fn completed(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Completed(words.into())).await
    }

    /// It did not work.
    pub async fn failed(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Failed(words.into())).await
    }

    /// The agent will not do it.
    pub async fn rejected(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Rejected(words.into())).await
    }

    /// It was taken back.
    pub async fn cancelled(&self, words: impl Into<Words>) -> Result<(), ReportError> {
        self.tell(Report::Cancelled(words.into())).await
    }

    /// Any report. It is in effect when this returns: kept, if it changes how the task stands, and shown to whoever listens.
    pub async fn tell(&self, report: Report) -> Result<(), ReportError> {
        let (reply, answer) = oneshot::channel();
        let job = self.job;
        if let Some(keeper) = self.keeper.upgrade() {
            let command = Command::Tell { job, report, reply };
            if keeper.send(command).await.is_ok()
                && let Some(result) = answer_of(&keeper, answer).await
            {
                return result;
            }
        }
        Err(ReportError::Over {
            id: self.task.to_string(),
        })
    }
}
