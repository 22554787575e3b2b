//! One task that somebody is at work on or looks at: a task of the runtime that owns it. Reports, looks and messages come to it
//! one after the other, so all listeners see one order, and a look and what follows it have no gap between them.
//!
//! A change of how the task stands is kept first and shown then. A growing artifact, and how work goes along, are shown at
//! once and kept at most every [`write_every`](super::ServerLimits::write_every): a crash may lose that much of an artifact of
//! a task whose work it broke off anyway, and nothing of a task that had ended or waits.

use super::job::{Running, at_work};
use super::ledger::{Ledger, Update, is_settled};
use super::refusal::{Kind, Refusal};
use super::shared::{Key, Opener, Phase, Shared};
use super::shown::{View, word};
use super::{Report, ReportError, Standing, StopReason};
use a2a::{Message, TaskState};
use lango_core::{StoreError, TaskRecord};
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
    /// Sees to a task whose job was lost.
    Recover { reply: Reply },
    /// Begins a job.
    Begin(Box<Begin>),
    /// Takes the task back.
    Cancel { reply: Reply },
}

pub(super) type Reply = oneshot::Sender<Result<Watching, Refusal>>;

/// What is needed to begin a job.
pub(super) struct Begin {
    pub message: Message,
    pub view: View,
    /// What is to be forgotten when the job has ended.
    pub opener: Option<Opener>,
    pub reply: Reply,
}

/// A task as it is, and what will become of it.
pub(super) struct Watching {
    pub json: String,
    pub state: TaskState,
    pub updates: broadcast::Receiver<Update>,
}

pub(super) enum Start {
    /// From the store.
    Load,
    /// A new one.
    Open(Box<Ledger>),
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
    pub cancels: Vec<Reply>,
    /// When what is not kept yet has to be.
    pub unsaved: Option<Instant>,
    pub look_again: Instant,
    /// How the task stands since its last report, where that could not be kept yet.
    pub unkept: Option<Report>,
    /// A job returned, or was lost with a process, without having said how the task stands: what is said of it if nothing
    /// is known.
    pub lost: Option<&'static str>,
    pub is_new: bool,
    is_spoilt: bool,
}

enum Happening {
    Command(Option<Command>),
    JobEnded { has_panicked: bool },
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
        let look_again = Instant::now() + shared.settings.limits.look_again;
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
            unsaved: None,
            look_again,
            unkept: None,
            lost: None,
            is_new: false,
            is_spoilt: false,
        }
    }

    pub async fn run(mut self, start: Start) {
        let ledger = match start {
            Start::Open(ledger) => {
                self.is_new = true;
                Ok(*ledger)
            }
            Start::Load => self.load().await,
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
                Happening::JobEnded { has_panicked } => self.job_ended(ledger, has_panicked).await,
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
            has_panicked = Running::ended(&mut self.job) => Happening::JobEnded { has_panicked },
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
                self.catch_up(ledger).await;
                let _ = reply.send(Ok(self.watching(ledger, view)));
            }
            Command::Recover { reply } => {
                let _ = reply.send(Ok(self.recover(ledger).await));
            }
            Command::Begin(begin) => self.begin(ledger, begin).await,
            Command::Cancel { reply } => self.cancel(ledger, reply).await,
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

    /// Makes of the task what a report says: kept if it has to be, then shown. That it ended or waits is not forgotten when it
    /// could not be kept: it is tried again when the job has returned, and at every look from then on, unless something
    /// later is reported.
    pub async fn record(&mut self, ledger: &mut Ledger, report: Report) -> Result<(), ReportError> {
        let status = match &report {
            Report::Artifact(_) => None,
            status => Some((ledger.mark(), status.clone())),
        };
        let update = ledger.apply(report, self.shared.clock.now())?;
        if let (true, Some((mark, status))) = (update.is_binding, status) {
            if let Err(source) = self.save(ledger).await {
                ledger.restore(mark);
                if is_settled(&update.state) {
                    self.unkept = Some(status);
                }
                let id = self.key.1.clone();
                return Err(ReportError::Store { id, source });
            }
            self.unkept = None;
        } else {
            let write_every = self.shared.settings.limits.write_every;
            self.unsaved.get_or_insert(Instant::now() + write_every);
        }
        self.show(update);
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

    /// Asks what became of a task that nobody is at work on here.
    pub async fn catch_up(&mut self, ledger: &mut Ledger) {
        self.look_again = Instant::now() + self.shared.settings.limits.look_again;
        if self.is_new || self.job.is_some() || ledger.state().is_terminal() {
            return;
        }
        if let Some(report) = self.unkept.take() {
            // If it cannot be kept now either, it is tried again.
            let _ = self.record(ledger, report).await;
            return;
        }
        let behind = Arc::clone(&self.shared.behind);
        let patience = self.shared.settings.limits.stop_wait;
        let asked = behind.catch_up(&self.key.0, &ledger.task);
        let standing = tokio::time::timeout(patience, asked).await;
        match (standing.unwrap_or(Standing::Held), self.lost) {
            (Standing::Unknown, Some(words)) if !ledger.is_settled() => {
                let _ = self.record(ledger, Report::Failed(words.into())).await;
            }
            (Standing::Held | Standing::Unknown, _) => {}
            (Standing::Reports(reports), _) => self.take(ledger, reports).await,
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
            let _ = self.save(ledger).await;
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

    pub async fn save(&mut self, ledger: &Ledger) -> Result<(), StoreError> {
        let record = TaskRecord {
            id: ledger.task.id.as_str().into(),
            user: self.key.0.clone(),
            context: ledger.task.context_id.as_str().into(),
            state: word(ledger.state()).into(),
            is_running: !ledger.is_settled(),
            updated: ledger.updated,
            body: ledger.json(View::default()).into(),
        };
        let result = self.shared.tasks.put(record).await;
        let again = Instant::now() + self.shared.settings.limits.write_every;
        self.unsaved = result.is_err().then_some(again);
        result
    }

    async fn load(&self) -> Result<Ledger, Refusal> {
        let (user, id) = &self.key;
        let found = self.shared.tasks.get(user, id).await;
        let record = found
            .map_err(|error| Refusal::store(&error))?
            .ok_or_else(|| Refusal::no_task(id))?;
        let limits = self.shared.settings.limits;
        Ledger::read(&record.body, record.updated, limits)
            .map_err(|_| Refusal::new(Kind::Internal, format!("task `{id}` is damaged")))
    }

    fn next_time(&self, ledger: &Ledger) -> Option<Instant> {
        let looks = self.job.is_none() && !ledger.state().is_terminal();
        let times = [
            self.job.as_ref().and(self.unsaved),
            self.job.as_ref().and_then(Running::deadline),
            looks.then_some(self.look_again),
        ];
        times.into_iter().flatten().min()
    }

    async fn see_to_time(&mut self, ledger: &mut Ledger) {
        let now = Instant::now();
        if self.job.is_some() && self.unsaved.is_some_and(|time| time <= now) {
            // If it cannot be kept now, it is tried again.
            let _ = self.save(ledger).await;
        }
        if let Some(job) = &mut self.job {
            if job.deadline().is_some_and(|time| time <= now) {
                job.abort().await;
                self.job_ended(ledger, false).await;
            }
        } else if self.look_again <= now {
            self.catch_up(ledger).await;
        }
    }

    fn may_leave(&mut self, ledger: &Ledger) -> bool {
        if self.is_spoilt {
            return true;
        }
        let is_wanted = self.updates.receiver_count() > 0 || self.unkept.is_some();
        let is_needed =
            is_wanted && !ledger.state().is_terminal() && *self.phase.borrow() != Phase::Stopping;
        self.job.is_none() && !is_needed && self.commands.is_empty()
    }

    /// Off the list first, so that whoever comes now gets another keeper; a command that came too late is dropped, and its
    /// sender asks again.
    fn leave(mut self) {
        if let Some(own) = self.own.upgrade() {
            self.shared.forget(&self.key, &own);
        }
        self.commands.close();
    }
}

fn refuse(command: Command, refusal: Refusal) {
    match command {
        Command::Watch { reply, .. } | Command::Recover { reply } | Command::Cancel { reply } => {
            let _ = reply.send(Err(refusal));
        }
        Command::Begin(begin) => {
            let _ = begin.reply.send(Err(refusal));
        }
        Command::Tell { .. } => {}
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
