//! A job at work: how it begins, how it is told to stop, and the handle through which it reports.

use super::keeper::{Begin, Begun, Command, Keeper};
use super::ledger::Ledger;
use super::refusal::{Kind, Refusal};
use super::said::Said;
use super::shared::{AtWork, answer_of};
use super::shown::word;
use super::{Cancelled, Ended, Job, Piece, Report, ReportError, Start, StopReason, Words};
use a2a::Message;
use lango_core::{Opened, Put, StoreError};
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
    work: JoinHandle<Ended>,
    stop: watch::Sender<Option<StopReason>>,
    /// When it is ended if it has not returned.
    deadline: Option<Instant>,
    /// How often the task had been taken up again when it began.
    pub attempts: u32,
    // Let go of before it is said that the job is over, so that there is room for whoever hears it.
    _slot: OwnedSemaphorePermit,
    _at_work: AtWork,
}

/// How a job came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Returned {
    /// By itself.
    As(Ended),
    /// It panicked.
    Panicked,
    /// It did not return in time.
    Aborted,
}

/// What came of trying to begin a job.
enum Tried {
    /// Whoever sent the message has an answer.
    Answered,
    /// Another copy has changed the task meanwhile.
    Overtaken(Box<Begin>),
}

impl Running {
    /// Waits until a job has returned; without a job it waits for ever.
    pub async fn ended(job: &mut Option<Self>) -> Returned {
        match job {
            Some(job) => match (&mut job.work).await {
                Ok(ended) => Returned::As(ended),
                Err(error) if error.is_panic() => Returned::Panicked,
                Err(_) => Returned::Aborted,
            },
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
    pub fn finish(self) -> Option<StopReason> {
        *self.stop.borrow()
    }
}

impl Keeper {
    /// How often it is tried to begin while other copies change the task.
    const TRIES: usize = 4;

    /// How often the same message can be meant anew.
    const MEANT_ANEW: usize = 64;

    /// Begins a job, or says why not.
    pub async fn begin(&mut self, ledger: &mut Ledger, mut begin: Box<Begin>) {
        for _ in 0..Self::TRIES {
            if let Err(refusal) = self.refresh(ledger).await {
                let _ = begin.reply.send(Err(refusal));
                return;
            }
            self.catch_up(ledger).await;
            // A client that asks again after a broken connection gets what it would have got.
            let is_known = match &self.job {
                Some(job) => job.message == Said::of(&begin.message),
                None => false,
            };
            if is_known || (!self.is_new && ledger.has_heard(&begin.message)) {
                let watching = self.watching(ledger, begin.view);
                let _ = begin.reply.send(Ok(Begun::Now(watching)));
                return;
            }
            let waits = ledger.is_settled() && !ledger.state().is_terminal();
            if self.job.is_some() && waits {
                self.put_off(begin);
                return;
            }
            match self.try_begin(ledger, begin).await {
                Tried::Answered => return,
                Tried::Overtaken(again) => begin = again,
            }
        }
        let _ = begin.reply.send(Err(at_work(&self.key.1)));
    }

    async fn try_begin(&mut self, ledger: &mut Ledger, begin: Box<Begin>) -> Tried {
        let slot = match self.admit(ledger, &begin) {
            Ok(slot) => slot,
            Err(refusal) => {
                if self.is_new {
                    self.spoil();
                }
                let _ = begin.reply.send(Err(refusal));
                return Tried::Answered;
            }
        };
        let start = match &begin.mark {
            Some(mark) => {
                let known = match self.open(ledger, mark).await {
                    Ok(Opened::New) => None,
                    Ok(Opened::Known(id)) => Some(Ok(Begun::Before(id.to_string()))),
                    Err(error) => Some(Err(Refusal::store(&error))),
                };
                if let Some(known) = known {
                    self.spoil();
                    let _ = begin.reply.send(known);
                    return Tried::Answered;
                }
                Start::New
            }
            None => {
                let update = ledger.take_up(begin.message.clone(), self.shared.clock.now());
                match self.write(ledger).await {
                    Ok(Put::Kept) => self.show(update),
                    Ok(Put::Overtaken) => return self.overtaken(ledger, begin).await,
                    Err(error) => {
                        self.spoil();
                        let _ = begin.reply.send(Err(Refusal::store(&error)));
                        return Tried::Answered;
                    }
                }
                Start::More
            }
        };
        let watching = self.watching(ledger, begin.view);
        self.is_new = false;
        self.start(ledger, start, begin.message, slot);
        let _ = begin.reply.send(Ok(Begun::Now(watching)));
        Tried::Answered
    }

    /// Keeps a new task, unless its message opened one before. One that the client went on with, and so knows of, is not sent
    /// again because its answer was lost: it is meant anew.
    async fn open(&self, ledger: &mut Ledger, mark: &str) -> Result<Opened, StoreError> {
        let (user, tasks) = (&self.key.0, &self.shared.tasks);
        let mut opened = tasks.keep_new(ledger.record(user), mark).await?;
        for _ in 0..Self::MEANT_ANEW {
            let Opened::Known(id) = &opened else { break };
            let known = tasks.get(user, id).await?;
            let known = known.and_then(|it| Ledger::read(&it, self.shared.settings.limits).ok());
            if !known.is_some_and(|known| known.has_follow_ups()) {
                break;
            }
            let anew = format!("{mark}/{id}");
            opened = tasks.keep_new(ledger.record(user), &anew).await?;
        }
        ledger.revision = 1;
        Ok(opened)
    }

    /// What was to be begun is forgotten, and the task is as the other copy has written it.
    async fn overtaken(&mut self, ledger: &mut Ledger, begin: Box<Begin>) -> Tried {
        match self.load().await {
            Ok(stored) => {
                *ledger = stored;
                Tried::Overtaken(begin)
            }
            Err(refusal) => {
                self.spoil();
                let _ = begin.reply.send(Err(refusal));
                Tried::Answered
            }
        }
    }

    /// Has a job done.
    pub fn start(
        &mut self,
        ledger: &Ledger,
        start: Start,
        message: Message,
        slot: OwnedSemaphorePermit,
    ) {
        let (stop, cancelled) = watch::channel(None);
        self.jobs += 1;
        self.lost = None;
        self.is_cancelled_elsewhere = false;
        let said = Said::of(&message);
        let context = ledger.task.context_id.clone();
        let is_recovery = start == Start::Again;
        let at_work = self.shared.note_work(&self.key, &context, is_recovery);
        let job = Job {
            user: self.key.0.clone(),
            task: self.key.1.clone(),
            context,
            start,
            message,
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
            message: said,
            work: tokio::spawn(async move { behind.work(job, reports).await }),
            stop,
            deadline: None,
            attempts: ledger.attempts,
            _slot: slot,
            _at_work: at_work,
        });
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
            return Err(Refusal::stopping());
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
