//! Retention: while `lango serve` runs, it deletes sessions that have not been used for `session.ttl`, and old tasks
//! of callers.
//!
//! A session with a running turn is never deleted. A session with an unfinished turn, which may be waiting for the
//! user, can only be deleted by its id. Only sessions of this configuration's users are deleted, so that no user's
//! setting affects another user's data.

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::notice::notice;
use lango_core::text::count;
use lango_core::{
    BusyPolicy, Clock, SessionCatalog, SessionQuery, SessionStore, StoreError, Timestamp, UserId,
};
use lango_engine::SystemClock;
use lango_store::Store;
use lango_store::archive::{ExpiredPage, remove_hidden};
use lango_tools::UndoStore;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Interval between scans for expired sessions and tasks.
const CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How many sessions to look up, and how many tasks to delete, per step.
const BATCH: usize = 50;

/// What was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeletedCounts {
    pub sessions: u64,
    pub tasks: u64,
    /// Sessions that were skipped because a turn is running.
    pub busy: u64,
}

impl fmt::Display for DeletedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", count(self.sessions, "session"))?;
        match self.tasks {
            0 => Ok(()),
            tasks => write!(f, " and {}", count(tasks, "old task")),
        }
    }
}

/// Handle of the background task that deletes expired data. Dropping the handle stops the task.
pub struct RetentionTask(Option<JoinHandle<()>>);

impl Drop for RetentionTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Starts the background task, which runs until the handle is dropped. Does nothing if `session.ttl` is not set.
pub fn start_retention(app: &App) -> RetentionTask {
    let Some(ttl) = app.loaded.settings.session.ttl else {
        return RetentionTask(None);
    };
    let (store, users) = (Arc::clone(&app.storage.database), app.users());
    let undo = app.undo.clone();
    let started = ClockReading::now();
    let task = tokio::spawn(async move {
        let mut every = tokio::time::interval(CHECK_INTERVAL);
        loop {
            every.tick().await;
            let before = match last_use(&store, &users).await {
                Ok(newest) => expiry_limit(ttl, newest, started, ClockReading::now()),
                Err(error) => {
                    notice(&format!("cannot delete expired sessions: {error}"));
                    continue;
                }
            };
            let before = match before {
                Ok(before) => before,
                Err(reason) => {
                    notice(&format!(
                        "session.ttl deletes nothing, because {reason}; if the clock is right, run `lango sessions delete --expired`"
                    ));
                    continue;
                }
            };
            match expire(&store, &undo, &users, before).await {
                Ok(deleted) if deleted.sessions + deleted.tasks == 0 => {}
                Ok(deleted) => notice(&format!(
                    "deleted because older than session.ttl: {deleted}"
                )),
                Err(error) => notice(&format!("cannot delete expired sessions: {error}")),
            }
        }
    });
    RetentionTask(Some(task))
}

/// The system clock and the uptime of the machine, read at the same moment.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    clock: Timestamp,
    uptime: Duration,
}

impl ClockReading {
    fn now() -> Self {
        // Unlike `Instant`, this clock keeps counting while the machine is suspended.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self {
            clock: SystemClock.now(),
            uptime: Duration::from_secs(u64::try_from(uptime.tv_sec).unwrap_or_default()),
        }
    }
}

/// How much further the clock may have moved than the time that has actually passed.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(60 * 60);

/// Returns the time before which sessions have expired. Fails if the clock looks wrong, so that nothing is deleted.
/// The clock looks wrong if it was set forward while this process ran, or if even the most recently used session had
/// expired when this process started.
fn expiry_limit(
    ttl: Duration,
    newest: Option<Timestamp>,
    started: ClockReading,
    now: ClockReading,
) -> Result<Timestamp, &'static str> {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let passed = ms(now.uptime.saturating_sub(started.uptime));
    let shown = now.clock.0.saturating_sub(started.clock.0);
    if shown > passed.saturating_add(ms(MAX_CLOCK_STEP)) {
        return Err("the system clock was set forward by more than an hour");
    }
    let before = now.clock.0.saturating_sub(ms(ttl));
    match newest {
        Some(newest) if newest.0.saturating_add(passed) < before => {
            Err("according to the system clock everything has expired")
        }
        _ => Ok(Timestamp(before)),
    }
}

/// Returns when any of these users last used a session.
async fn last_use(store: &Store, users: &[UserId]) -> Result<Option<Timestamp>, StoreError> {
    let mut newest = None;
    for user in users {
        let sessions = SessionCatalog::list(store, user, SessionQuery::recent(1)).await?;
        newest = newest.max(sessions.first().map(|session| session.updated));
    }
    Ok(newest)
}

/// Deletes what these users have not used since `before`, in steps so small that turns are not delayed. It also
/// removes sessions that a killed process left half deleted or half imported.
pub async fn expire(
    store: &Store,
    undo: &UndoStore,
    users: &[UserId],
    before: Timestamp,
) -> Result<DeletedCounts, Failure> {
    let mut deleted = DeletedCounts::default();
    for user in users {
        remove_leftovers(store, undo, user).await?;
        let mut skip = 0;
        loop {
            let page = ExpiredPage { skip, limit: BATCH };
            let expired = store.expired_sessions(user, before, page).await?;
            if expired.is_empty() {
                break;
            }
            for id in &expired {
                let lease = store.acquire(id, BusyPolicy::Refuse).await;
                let _lease = match lease {
                    Err(StoreError::Busy { .. }) => {
                        (deleted.busy, skip) = (deleted.busy + 1, skip + 1);
                        continue;
                    }
                    lease => lease?,
                };
                if store.hide_session(id, Some(before)).await? {
                    undo.forget_session(id)?;
                    remove_hidden(store, id).await?;
                    deleted.sessions += 1;
                } else {
                    // It was used meanwhile, or another process deleted it first.
                    skip += 1;
                }
            }
        }
        loop {
            match store.remove_old_tasks(user, before, BATCH).await? {
                0 => break,
                removed => deleted.tasks += removed,
            }
        }
    }
    Ok(deleted)
}

async fn remove_leftovers(store: &Store, undo: &UndoStore, user: &UserId) -> Result<(), Failure> {
    let mut after = None;
    loop {
        let leftovers = store.hidden_sessions(user, after.as_ref(), BATCH).await?;
        for id in &leftovers {
            match store.acquire(id, BusyPolicy::Refuse).await {
                // Another process is importing or deleting it.
                Err(StoreError::Busy { .. }) => {}
                lease => {
                    let _lease = lease?;
                    undo.forget_session(id)?;
                    remove_hidden(store, id).await?;
                }
            }
        }
        match leftovers.last() {
            Some(last) => after = Some(last.clone()),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// Returns a clock reading: `clock` days later by the system clock, and `passed` days later by the uptime.
    fn reading(clock: u32, passed: u32) -> ClockReading {
        let days = |days: u32| DAY * (1000 + days);
        ClockReading {
            clock: at(clock),
            uptime: days(passed),
        }
    }

    fn at(day: u32) -> Timestamp {
        Timestamp(u64::try_from((DAY * (1000 + day)).as_millis()).unwrap())
    }

    #[test]
    fn sessions_older_than_the_ttl_expire() {
        let limit = expiry_limit(DAY * 30, Some(at(9)), reading(0, 0), reading(10, 10));
        assert_eq!(limit, Ok(Timestamp(at(10).0 - 30 * 24 * 60 * 60 * 1000)));
    }

    #[test]
    fn nothing_expires_after_the_clock_was_set_forward() {
        let limit = expiry_limit(DAY * 30, Some(at(0)), reading(0, 0), reading(365, 0));
        assert!(limit.unwrap_err().contains("set forward"));
        // Also if a turn was stored since then with the wrong clock.
        let limit = expiry_limit(DAY * 30, Some(at(365)), reading(0, 0), reading(365, 0));
        assert!(limit.is_err());
    }

    #[test]
    fn everything_expires_only_if_the_time_passed_while_this_process_ran() {
        let limit = expiry_limit(DAY * 30, Some(at(0)), reading(365, 0), reading(365, 0));
        assert!(limit.unwrap_err().contains("everything"));
        assert!(expiry_limit(DAY * 30, Some(at(0)), reading(0, 0), reading(31, 31)).is_ok());
        assert!(expiry_limit(DAY * 30, None, reading(365, 0), reading(365, 0)).is_ok());
    }
}
