//! What a keeper has to do with the store: reading a task, writing it, and finding that another copy has written it
//! meanwhile. An end that is kept stands; of all else, what is said last counts, for the one who says it holds the work.

use super::difference;
use super::keeper::Keeper;
use super::ledger::{Ledger, is_settled};
use super::refusal::Refusal;
use super::{Report, ReportError, StopReason};
use lango_core::{Put, StoreError};
use tokio::time::Instant;

/// Why a task was not kept.
pub(super) enum SaveError {
    Store(StoreError),
    /// It has ended elsewhere, as this says; or it is gone.
    Ended(Option<Box<Ledger>>),
}

impl Keeper {
    /// How often a task that was overtaken is written again.
    const WRITES: usize = 4;

    pub async fn load(&self) -> Result<Ledger, Refusal> {
        let (user, id) = &self.key;
        let found = self.shared.tasks.get(user, id).await;
        let record = found
            .map_err(|error| Refusal::store(&error))?
            .ok_or_else(|| Refusal::no_task(id))?;
        Ledger::read(&record, self.shared.settings.limits).map_err(|_| Refusal::damaged(id))
    }

    /// Reads a task again that nobody is at work on here, and tells those who listen what is new.
    pub async fn refresh(&mut self, ledger: &mut Ledger) -> Result<(), Refusal> {
        if std::mem::take(&mut self.is_fresh)
            || self.is_new
            || self.job.is_some()
            || self.unkept.is_some()
            || ledger.state().is_terminal()
        {
            return Ok(());
        }
        self.follow_at = Instant::now() + self.shared.settings.limits.follow_every;
        let stored = self.load().await?;
        if stored.revision != ledger.revision {
            self.adopt(ledger, stored);
        }
        Ok(())
    }

    /// Takes a task as another copy has written it.
    pub fn adopt(&mut self, ledger: &mut Ledger, stored: Ledger) {
        for update in difference::between(&ledger.task, &stored.task) {
            self.show(update);
        }
        *ledger = stored;
        self.unsaved = None;
        self.unkept = None;
    }

    /// Writes the task. Where another copy has written it meanwhile, that is written over, unless it is an end.
    pub async fn save(&mut self, ledger: &mut Ledger) -> Result<(), SaveError> {
        let result = self.try_save(ledger).await;
        let again = Instant::now() + self.shared.settings.limits.write_every;
        self.unsaved = matches!(result, Err(SaveError::Store(_))).then_some(again);
        result
    }

    async fn try_save(&mut self, ledger: &mut Ledger) -> Result<(), SaveError> {
        for _ in 0..Self::WRITES {
            if self.write(ledger).await.map_err(SaveError::Store)? == Put::Kept {
                return Ok(());
            }
            let (user, id) = &self.key;
            let found = self.shared.tasks.get(user, id).await;
            let Some(record) = found.map_err(SaveError::Store)? else {
                return Err(SaveError::Ended(None));
            };
            match Ledger::read(&record, self.shared.settings.limits) {
                Ok(stored) if stored.state().is_terminal() => {
                    return Err(SaveError::Ended(Some(Box::new(stored))));
                }
                _ => ledger.revision = record.revision,
            }
        }
        let detail = "others write the task all the time".to_owned();
        Err(SaveError::Store(StoreError::Failed { detail }))
    }

    /// Writes the task, unless another copy has written it meanwhile.
    pub async fn write(&mut self, ledger: &mut Ledger) -> Result<Put, StoreError> {
        let put = self.shared.tasks.put(ledger.record(&self.key.0)).await?;
        if put == Put::Kept {
            ledger.revision += 1;
            self.unsaved = None;
        }
        Ok(put)
    }

    /// Writes what those who listen know already. If it cannot be written now, it is tried again.
    pub async fn save_shown(&mut self, ledger: &mut Ledger) {
        if let Err(SaveError::Ended(stored)) = self.save(ledger).await {
            self.give_up(ledger, stored);
        }
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
        let attempts = std::mem::take(&mut ledger.attempts);
        if let (true, Some((mark, status))) = (update.is_binding, status) {
            let id = self.key.1.clone();
            match self.save(ledger).await {
                Ok(()) => self.unkept = None,
                Err(SaveError::Store(source)) => {
                    ledger.restore(mark);
                    ledger.attempts = attempts;
                    if is_settled(&update.state) {
                        self.unkept = Some(status);
                    }
                    return Err(ReportError::Store { id, source });
                }
                Err(SaveError::Ended(stored)) => {
                    ledger.restore(mark);
                    self.give_up(ledger, stored);
                    return Err(ReportError::Over { id });
                }
            }
        } else {
            let write_every = self.shared.settings.limits.write_every;
            self.unsaved.get_or_insert(Instant::now() + write_every);
        }
        self.show(update);
        Ok(())
    }

    /// The task has ended elsewhere: what is at work on it here stops.
    fn give_up(&mut self, ledger: &mut Ledger, stored: Option<Box<Ledger>>) {
        match stored {
            Some(stored) => self.adopt(ledger, *stored),
            None => self.spoil(),
        }
        self.stop_job(StopReason::Cancelled);
    }
}
