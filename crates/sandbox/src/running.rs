//! The commands of this process that still run or are being cleaned up after, so that it can wait for them before it ends.
//! One count for the whole process, as its children are the whole process's too: no caller can forget one of them.

use crate::CleanUpReport;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

static COUNT: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));
/// Results of clean-ups that the user was not told yet.
static UNSEEN: Mutex<Vec<CleanUpReport>> = Mutex::new(Vec::new());
/// More than this nobody reads.
const MOST_UNSEEN: usize = 100;

/// A command that runs, or is being cleaned up after.
#[derive(Debug)]
pub(crate) struct Running(());

impl Running {
    pub(crate) fn new() -> Self {
        COUNT.send_modify(|count| *count += 1);
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        COUNT.send_modify(|count| *count -= 1);
    }
}

/// Waits until every command of this process is gone and cleaned up after. Says whether that is so in the end: a clean-up
/// that takes longer goes on without this process.
pub async fn wait_for_clean_up(time: Duration) -> bool {
    let mut count = COUNT.subscribe();
    let none_left = count.wait_for(|count| *count == 0);
    tokio::time::timeout(time, none_left).await.is_ok()
}

/// The reports of clean-ups that the user was not told yet, each of them once.
pub fn unseen_reports() -> Vec<CleanUpReport> {
    std::mem::take(&mut UNSEEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Stores the report of a clean-up for [`unseen_reports`].
pub fn add_unseen_report(report: CleanUpReport) {
    let mut unseen = UNSEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !report.is_empty() && unseen.len() < MOST_UNSEEN {
        unseen.push(report);
    }
}
