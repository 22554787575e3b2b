//! One task that somebody is at work on or looks at: a task of the runtime that owns it. Reports, looks and messages come to it
//! one after the other, so all listeners see one order, and a look and what follows it have no gap between them.
//!
//! A change of how the task stands is kept first and shown then. A growing artifact, and how work goes along, are shown at
//! once and kept at most every [`write_every`](super::ServerLimits::write_every): a crash may lose that much of an artifact of
//! a task whose work it broke off anyway, and nothing of a task that had ended or waits.
//!
//! The work may be with another copy of the server. Then the store says how the task stands, and is looked at again and
//! again for as long as somebody listens here.

use super::job::{Returned, Running, at_work};
use super::ledger::{Ledger, Update};
use super::recovery::Recovery;
use super::refusal::Refusal;
use super::shared::{Key, Phase, Shared};
use super::shown::View;
use super::{Report, ReportError, Standing, StopReason, Words};
use a2a::{Message, TaskState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;

/// What a keeper is asked for.
pub(super) enum Command {
    /// Takes a report of a job.
    Tell {
        job: u64,
        report: Report,
        reply: oneshot::Sender<Result<(), ReportError>>,
    },
    /// Shows the task, with what follows.
    Watch { view: View, reply: Reply },
    /// Sees to a task that nobody may be at work on any more.
    Recover {
        is_to_be_cancelled: bool,
        reply: oneshot::Sender<Result<Recovery, Refusal>>,
    },
    /// Begins a job.
    Begin(Box<Begin>),
    /// Takes the task back.
    Cancel { reply: Reply },
    /// Stops the job, as another copy was asked to take the task back.
    CancelHere,
    /// There may be something new in the store.
    LookAgain,
}

pub(super) type Reply = oneshot::Sender<Result<Watching, Refusal>>;

/// What is needed to begin a job.
pub(super) struct Begin {
    pub message: Message,
    pub view: View,
    /// What the message is recognised by, if it opens the task.
    pub mark: Option<String>,
    pub reply: oneshot::Sender<Result<Begun, Refusal>>,
}

/// What a message led to.
pub(super) enum Begun {
    /// A job of this task, or the one that was for this message already.
    Now(Watching),
    /// Nothing new: it came before, and opened the task of this id.
    Before(String),
}

/// A task as it is, and what will become of it.
pub(super) struct Watching {
    pub json: String,
    pub state: TaskState,
    pub updates: broadcast::Receiver<Update>,
}

/// Where a task comes from.
pub(super) enum Origin {
    Store,
    New(Box<Ledger>),
}

pub(super) struct Keeper {
    pub shared: Arc<Shared>,
    pub key: Key,
    commands: mpsc::Receiver<Command>,
    pub own: mpsc::WeakSender<Command>,
    updates: broadcast::Sender<Update>,
    phase: watch::Receiver<Phase>,
    pub job: Option<Running>,
    pub jobs: u64,
    /// A message that came while a job that had asked for it was about to return.
    pub waiting: Option<Box<Begin>>,
    /// Those who want the task taken back.
    pub cancels: Vec<Reply>,
    /// Until when they wait for another copy to do it.
    pub cancel_until: Option<Instant>,
    /// Whether it is to be taken back though nobody here waits for that.
    pub is_cancelled_elsewhere: bool,
    /// When what is not kept yet has to be.
    pub unsaved: Option<Instant>,
    pub look_again: Instant,
    /// When the store is looked at for what another copy does.
    pub follow_at: Instant,
    /// Whether it was read just now.
    pub is_fresh: bool,
    /// How the task stands since its last report, where that could not be kept yet.
    pub unkept: Option<Report>,
    /// A job returned without having said how the task stands: what is said of it if nothing is known.
    pub lost: Option<&'static str>,
    pub is_new: bool,
    is_spoilt: bool,
}

enum Happening {
    Command(Option<Command>),
    JobEnded(Returned),
    Time,
    Phase,
}

impl Keeper {
    pub fn new(
        shared: Arc<Shared>,
        key: Key,
        commands: mpsc::Receiver<Command>,
        own: mpsc::WeakSender<Command>,
    ) -> Self {
        let behind = shared.settings.limits.behind.max(1);
        let now = Instant::now();
        let look_again = now + shared.settings.limits.look_again;
        let follow_at = now + shared.settings.limits.follow_every;
        Self {
            phase: shared.phase.subscribe(),
            updates: broadcast::Sender::new(behind),
            shared,
            key,
            commands,
            own,
            job: None,
            jobs: 0,
            waiting: None,
            cancels: Vec::new(),
            cancel_until: None,
            is_cancelled_elsewhere: false,
            unsaved: None,
            look_again,
            follow_at,
            is_fresh: false,
            unkept: None,
            lost: None,
            is_new: false,
            is_spoilt: false,
        }
    }

    pub async fn run(mut self, origin: Origin) {
        let ledger = match origin {
            Origin::New(ledger) => {
                self.is_new = true;
                Ok(*ledger)
            }
            Origin::Store => {
                self.is_fresh = true;
                self.load().await
            }
        };
        match ledger {
            Ok(mut ledger) => self.attend(&mut ledger).await,
            Err(refusal) => {
                // Whoever started this keeper is about to ask.
                let patience = Duration::from_secs(1);
                if let Ok(Some(command)) =
                    tokio::time::timeout(patience, self.commands.recv()).await
                {
                    refuse(command, refusal);
                }
            }
        }
        self.leave();
    }

    async fn attend(&mut self, ledger: &mut Ledger) {
        loop {
            match self.next(ledger).await {
                Happening::Command(Some(command)) => self.obey(ledger, command).await,
                Happening::Command(None) => return,
                Happening::JobEnded(returned) => self.job_ended(ledger, returned).await,
                Happening::Time => self.see_to_time(ledger).await,
                Happening::Phase => {
                    if *self.phase.borrow_and_update() == Phase::Stopping {
                        self.stop_job(StopReason::ServerStops);
                    }
                }
            }
            if self.may_leave(ledger) {
                return;
            }
        }
    }

    async fn next(&mut self, ledger: &Ledger) -> Happening {
        let time = self.next_time(ledger);
        tokio::select! {
            command = self.commands.recv() => Happening::Command(command),
            returned = Running::ended(&mut self.job) => Happening::JobEnded(returned),
            () = at(time) => Happening::Time,
            Ok(()) = self.phase.changed() => Happening::Phase,
        }
    }

    async fn obey(&mut self, ledger: &mut Ledger, command: Command) {
        match command {
            Command::Tell { job, report, reply } => {
                let result = self.tell(ledger, job, report).await;
                let _ = reply.send(result);
            }
            Command::Watch { view, reply } => {
                let result = match self.refresh(ledger).await {
                    Ok(()) => {
                        self.catch_up(ledger).await;
                        Ok(self.watching(ledger, view))
                    }
                    Err(refusal) => Err(refusal),
                };
                let _ = reply.send(result);
            }
            Command::Recover {
                is_to_be_cancelled,
                reply,
            } => {
                let result = self.recover(ledger, is_to_be_cancelled).await;
                let _ = reply.send(result);
            }
            Command::Begin(begin) => self.begin(ledger, begin).await,
            Command::Cancel { reply } => self.cancel(ledger, reply).await,
            Command::CancelHere => {
                if self.job.is_some() && !ledger.is_settled() {
                    self.is_cancelled_elsewhere = true;
                    self.stop_job(StopReason::Cancelled);
                }
            }
            Command::LookAgain => self.follow(ledger).await,
        }
    }

    async fn tell(
        &mut self,
        ledger: &mut Ledger,
        job: u64,
        report: Report,
    ) -> Result<(), ReportError> {
        if self
            .job
            .as_ref()
            .is_none_or(|running| running.number != job)
        {
            return Err(ReportError::Over {
                id: self.key.1.clone(),
            });
        }
        self.record(ledger, report).await?;
        if !ledger.is_settled()
            && let Some(begin) = self.waiting.take()
        {
            // The job had asked for something and goes on without it.
            if let Some(job) = &mut self.job {
                job.expect_return(None);
            }
            let _ = begin.reply.send(Err(at_work(&self.key.1)));
        }
        Ok(())
    }

    pub fn show(&self, update: Update) {
        // Without listeners there is nobody to tell.
        let _ = self.updates.send(update);
    }

    pub fn watching(&self, ledger: &Ledger, view: View) -> Watching {
        Watching {
            json: ledger.json(view),
            state: ledger.state().clone(),
            updates: self.updates.subscribe(),
        }
    }

    /// Asks what became of a task that nobody is at work on here, and says what was answered if it stands as it did.
    pub async fn catch_up(&mut self, ledger: &mut Ledger) -> Option<Standing> {
        self.look_again = Instant::now() + self.shared.settings.limits.look_again;
        if self.is_new || self.job.is_some() || ledger.state().is_terminal() {
            return None;
        }
        if let Some(report) = self.unkept.take() {
            // If it cannot be kept now either, it is tried again.
            let _ = self.record(ledger, report).await;
            return None;
        }
        let behind = Arc::clone(&self.shared.behind);
        let patience = self.shared.settings.limits.stop_wait;
        let asked = behind.catch_up(&self.key.0, &ledger.task);
        let standing = tokio::time::timeout(patience, asked).await;
        match (standing.unwrap_or(Standing::Held), self.lost) {
            (Standing::Unknown, Some(words)) if !ledger.is_settled() => {
                let _ = self.record(ledger, Report::Failed(words.into())).await;
                None
            }
            (Standing::Unfinished, _) if ledger.is_settled() => {
                // What it waited for was given, and whoever went on with it is gone.
                let _ = self.record(ledger, Report::Working(Words::none())).await;
                None
            }
            (Standing::Reports(reports), _) => {
                self.take(ledger, reports).await;
                None
            }
            (standing, _) => Some(standing),
        }
    }

    /// Takes what became of a task. What is refused, such as a result that is too long, does not hold up what comes after it.
    async fn take(&mut self, ledger: &mut Ledger, reports: Vec<Report>) {
        for report in reports {
            if let Err(ReportError::Over { .. }) = self.record(ledger, report).await {
                break;
            }
        }
        if self.unsaved.is_some() {
            self.save_shown(ledger).await;
        }
    }

    /// A message for a job that has asked for it and is about to return waits for that, but not for ever.
    pub fn put_off(&mut self, begin: Box<Begin>) {
        let deadline = Instant::now() + self.shared.settings.limits.stop_wait;
        match (&self.waiting, &mut self.job) {
            (None, Some(job)) => {
                job.expect_return(Some(deadline));
                self.waiting = Some(begin);
            }
            _ => {
                let _ = begin.reply.send(Err(at_work(&self.key.1)));
            }
        }
    }

    /// What is in memory differs from what is kept, and cannot be trusted: whoever comes next reads it again.
    pub fn spoil(&mut self) {
        self.is_spoilt = true;
    }

    fn next_time(&self, ledger: &Ledger) -> Option<Instant> {
        let looks = self.job.is_none() && !ledger.state().is_terminal();
        let follows = looks && !ledger.is_settled() && self.is_wanted();
        let times = [
            self.job.as_ref().and(self.unsaved),
            self.job.as_ref().and_then(Running::deadline),
            looks.then_some(self.look_again),
            follows.then_some(self.follow_at),
            self.cancel_until.filter(|_| self.job.is_none()),
        ];
        times.into_iter().flatten().min()
    }

    async fn see_to_time(&mut self, ledger: &mut Ledger) {
        let now = Instant::now();
        if self.job.is_some() && self.unsaved.is_some_and(|time| time <= now) {
            self.save_shown(ledger).await;
        }
        if let Some(job) = &mut self.job {
            if job.deadline().is_some_and(|time| time <= now) {
                job.abort().await;
                self.job_ended(ledger, Returned::Aborted).await;
            }
        } else {
            if self.follow_at <= now {
                self.follow(ledger).await;
            }
            if self.look_again <= now {
                self.catch_up(ledger).await;
            }
        }
        self.see_to_cancels(ledger).await;
    }

    /// Sees what another copy has made of the task. If the store does not answer now, it is asked again.
    async fn follow(&mut self, ledger: &mut Ledger) {
        let _ = self.refresh(ledger).await;
        self.follow_at = Instant::now() + self.shared.settings.limits.follow_every;
        self.see_to_cancels(ledger).await;
    }

    fn is_wanted(&self) -> bool {
        self.updates.receiver_count() > 0 || self.unkept.is_some() || !self.cancels.is_empty()
    }

    fn may_leave(&mut self, ledger: &Ledger) -> bool {
        if self.job.is_some() {
            return false;
        }
        let is_needed = self.is_wanted()
            && !ledger.state().is_terminal()
            && *self.phase.borrow() != Phase::Stopping;
        self.is_spoilt || (!is_needed && self.commands.is_empty())
    }

    /// Off the list first, so that whoever comes now gets another keeper; a command that came too late is dropped, and its
    /// sender asks again.
    fn leave(mut self) {
        for reply in std::mem::take(&mut self.cancels) {
            let _ = reply.send(Err(Refusal::stopping()));
        }
        if let Some(own) = self.own.upgrade() {
            self.shared.forget(&self.key, &own);
        }
        self.commands.close();
    }
}

fn refuse(command: Command, refusal: Refusal) {
    match command {
        Command::Watch { reply, .. } | Command::Cancel { reply } => {
            let _ = reply.send(Err(refusal));
        }
        Command::Recover { reply, .. } => {
            let _ = reply.send(Err(refusal));
        }
        Command::Begin(begin) => {
            let _ = begin.reply.send(Err(refusal));
        }
        Command::Tell { .. } | Command::CancelHere | Command::LookAgain => {}
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
