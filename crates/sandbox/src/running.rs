//! Counts the commands of this process that run or are being cleaned up, so that lango can wait for them before it
//! exits. The count is global, so that no command can be missed.

use crate::CleanUpReport;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

static COUNT: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));
/// Reports of clean-ups that have not been shown to the user yet.
static UNSEEN: Mutex<Vec<CleanUpReport>> = Mutex::new(Vec::new());
/// Maximum number of stored reports; further ones are dropped.
const MAX_UNSEEN: usize = 100;

/// A token that counts one command as running until the token is dropped.
#[derive(Debug)]
pub(crate) struct RunningToken(());

impl RunningToken {
    pub(crate) fn new() -> Self {
        COUNT.send_modify(|count| *count += 1);
        Self(())
    }
}

impl Drop for RunningToken {
    fn drop(&mut self) {
        COUNT.send_modify(|count| *count -= 1);
    }
}

/// Waits until every command of this process has ended and is cleaned up. Returns `false` after `time`; the clean-up
/// then continues without this process.
pub async fn wait_for_clean_up(time: Duration) -> bool {
    let mut count = COUNT.subscribe();
    let none_left = count.wait_for(|count| *count == 0);
    tokio::time::timeout(time, none_left).await.is_ok()
}

/// Takes the reports of clean-ups that have not been shown to the user yet.
pub fn take_unseen_reports() -> Vec<CleanUpReport> {
    std::mem::take(&mut UNSEEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Stores the report of a clean-up for [`take_unseen_reports`].
pub fn add_unseen_report(report: CleanUpReport) {
    let mut unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !report.is_empty() && unseen.len() < MAX_UNSEEN {
        unseen.push(report);
    }
}
