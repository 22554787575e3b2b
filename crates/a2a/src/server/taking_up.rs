//! Taking up a task again that was at work and that nobody is at work on any more: its process ended, or put it off.

use super::keeper::Keeper;
use super::ledger::Ledger;
use super::recovery::Recovery;
use super::refusal::Refusal;
use super::{Report, Standing, Start, StopReason};
use lango_core::Put;
use std::sync::Arc;

impl Keeper {
    /// Sees to a task that nobody may be at work on any more.
    pub async fn recover(
        &mut self,
        ledger: &mut Ledger,
        is_to_be_cancelled: bool,
    ) -> Result<Recovery, Refusal> {
        self.refresh(ledger).await?;
        if self.job.is_some() {
            return Ok(Recovery::Left);
        }
        match self.catch_up(ledger).await {
            _ if ledger.is_settled() => Ok(Recovery::SeenTo),
            Some(standing @ (Standing::Unknown | Standing::Unfinished)) => {
                let recovery = self.take_up_again(ledger, &standing, is_to_be_cancelled);
                Ok(recovery.await)
            }
            _ => Ok(Recovery::Left),
        }
    }

    /// Begins a job for what the client said last. Of several copies that try, the one whose writing is kept does it. Work that
    /// has begun is never given up here: the agent goes on with it, or says itself that it does not.
    pub async fn take_up_again(
        &mut self,
        ledger: &mut Ledger,
        standing: &Standing,
        is_to_be_cancelled: bool,
    ) -> Recovery {
        if !self.shared.is_open() {
            return Recovery::Left;
        }
        let Ok(slot) = Arc::clone(&self.shared.recovering).try_acquire_owned() else {
            return Recovery::NoRoom;
        };
        let most = self.shared.settings.limits.attempts;
        let message = match ledger.last_said().cloned() {
            Some(message) if ledger.attempts < most || *standing == Standing::Unfinished => message,
            said => {
                let words = match said {
                    Some(_) => format!(
                        "it was taken up {most} times, and each time the process ended before the work began"
                    ),
                    None => "nothing is known of what was asked for".to_owned(),
                };
                // If it cannot be kept now, it is tried again.
                let _ = self.record(ledger, Report::Failed(words.into())).await;
                return Recovery::SeenTo;
            }
        };
        let before = ledger.attempts;
        ledger.attempts = before.saturating_add(1);
        match self.write(ledger).await {
            Ok(Put::Kept) => {}
            Ok(Put::Overtaken) | Err(_) => {
                // Somebody else has taken it up; or it cannot be now.
                ledger.attempts = before;
                return Recovery::Left;
            }
        }
        self.start(ledger, Start::Again, message, slot);
        if is_to_be_cancelled {
            self.is_cancelled_elsewhere = true;
            self.stop_job(StopReason::Cancelled);
        }
        Recovery::TakenUp
    }
}
