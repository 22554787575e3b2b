//! How long what was said is kept: sessions that nobody used since `session.ttl`, and old tasks of callers, go by themselves
//! while `lango serve` runs.
//!
//! Never one in which a turn runs, nor one with an open turn, which may wait for a person: that one goes by its id alone.
//! Only those of this configuration's users go, so that nobody's setting deletes what is somebody else's.

use crate::app::App;
use crate::screen::{self, count};
use lango_core::{
    BusyPolicy, Clock, SessionCatalog, SessionQuery, SessionStore, StoreError, Timestamp, UserId,
};
use lango_engine::SystemClock;
use lango_store::Store;
use lango_store::archive::{ExpiredPage, remove_hidden};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often it is looked for what is too old.
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

/// How many sessions are looked up, and how many tasks removed, at once.
const AT_ONCE: usize = 50;

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gone {
    /// Sessions.
    pub sessions: u64,
    /// Tasks of callers.
    pub tasks: u64,
    /// Sessions that were left because somebody is at them.
    pub busy: u64,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", count(self.sessions, "session"))?;
        match self.tasks {
            0 => Ok(()),
            tasks => write!(f, " and {}", count(tasks, "old task")),
        }
    }
}

/// The looking after what is too old. It ends with this.
pub struct Retaining(Option<JoinHandle<()>>);

impl Drop for Retaining {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Looks now and then for what is too old and removes it, for as long as the result lives.
pub fn retain(app: &App) -> Retaining {
    let Some(ttl) = app.loaded.settings.session.ttl else {
        return Retaining(None);
    };
    let (store, users) = (Arc::clone(&app.kept.database), app.users());
    let started = ClockReading::now();
    let task = tokio::spawn(async move {
        let mut every = tokio::time::interval(LOOK_EVERY);
        loop {
            every.tick().await;
            let before = match newest_use(&store, &users).await {
                Ok(newest) => expiry_limit(ttl, newest, started, ClockReading::now()),
                Err(error) => {
                    screen::say(&format!("what is too old could not be deleted: {error}"));
                    continue;
                }
            };
            let before = match before {
                Ok(before) => before,
                Err(doubt) => {
                    screen::say(&format!(
                        "session.ttl deletes nothing, because {doubt}; if the clock is right: lango sessions delete --expired"
                    ));
                    continue;
                }
            };
            match expire(&store, &users, before).await {
                Ok(gone) if gone.sessions + gone.tasks == 0 => {}
                Ok(gone) => screen::say(&format!("older than session.ttl, deleted: {gone}")),
                Err(error) => {
                    screen::say(&format!("what is too old could not be deleted: {error}"))
                }
            }
        }
    });
    Retaining(Some(task))
}

/// The system's clock and the time since the machine was started, read at one moment.
#[derive(Debug, Clone, Copy)]
struct ClockReading {
    clock: Timestamp,
    uptime: Duration,
}

impl ClockReading {
    fn now() -> Self {
        // Unlike `Instant`, it counts while the machine is suspended.
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

/// How far the clock may be ahead of the time that has passed.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(60 * 60);

/// Returns the time before which sessions have expired. Fails if the clock looks wrong, so that nothing is deleted: it was set
/// forward while this process ran, or even the most recently used session had expired when this process started.
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
        return Err("the system's clock was set forward by more than an hour");
    }
    let before = now.clock.0.saturating_sub(ms(ttl));
    match newest {
        Some(newest) if newest.0.saturating_add(passed) < before => {
            Err("by the system's clock everything that is stored is too old")
        }
        _ => Ok(Timestamp(before)),
    }
}

/// Returns when one of these users last used a session.
async fn newest_use(store: &Store, users: &[UserId]) -> Result<Option<Timestamp>, StoreError> {
    let mut newest = None;
    for user in users {
        let sessions = SessionCatalog::list(store, user, SessionQuery::recent(1)).await?;
        newest = newest.max(sessions.first().map(|session| session.updated));
    }
    Ok(newest)
}

/// Removes what these users have not used since, in steps so small that turns do not wait; and what was left half removed or
/// half imported by a process that died.
pub async fn expire(
    store: &Store,
    users: &[UserId],
    before: Timestamp,
) -> Result<Gone, StoreError> {
    let mut gone = Gone::default();
    for user in users {
        remove_remains(store, user).await?;
        let mut skip = 0;
        loop {
            let page = ExpiredPage {
                skip,
                limit: AT_ONCE,
            };
            let expired = store.expired_sessions(user, before, page).await?;
            if expired.is_empty() {
                break;
            }
            for id in &expired {
                let lease = store.acquire(id, BusyPolicy::Refuse).await;
                let _lease = match lease {
                    Err(StoreError::Busy { .. }) => {
                        (gone.busy, skip) = (gone.busy + 1, skip + 1);
                        continue;
                    }
                    lease => lease?,
                };
                if store.hide_session(id, Some(before)).await? {
                    remove_hidden(store, id).await?;
                    gone.sessions += 1;
                } else {
                    // Somebody used it, or was faster.
                    skip += 1;
                }
            }
        }
        loop {
            match store.remove_old_tasks(user, before, AT_ONCE).await? {
                0 => break,
                removed => gone.tasks += removed,
            }
        }
    }
    Ok(gone)
}

async fn remove_remains(store: &Store, user: &UserId) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let remains = store.hidden_sessions(user, after.as_ref(), AT_ONCE).await?;
        for id in &remains {
            match store.acquire(id, BusyPolicy::Refuse).await {
                // Somebody is at it: it comes or goes.
                Err(StoreError::Busy { .. }) => {}
                lease => {
                    let _lease = lease?;
                    remove_hidden(store, id).await?;
                }
            }
        }
        match remains.last() {
            Some(last) => after = Some(last.clone()),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// A reading this many days after the first one by the clock, and by the time that has passed.
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
    fn what_is_older_than_the_ttl_goes() {
        let limit = expiry_limit(DAY * 30, Some(at(9)), reading(0, 0), reading(10, 10));
        assert_eq!(limit, Ok(Timestamp(at(10).0 - 30 * 24 * 60 * 60 * 1000)));
    }

    #[test]
    fn nothing_goes_after_the_clock_was_set_forward() {
        let limit = expiry_limit(DAY * 30, Some(at(0)), reading(0, 0), reading(365, 0));
        assert!(limit.unwrap_err().contains("set forward"));
        // Also if a turn was stored since, by the wrong clock.
        let limit = expiry_limit(DAY * 30, Some(at(365)), reading(0, 0), reading(365, 0));
        assert!(limit.is_err());
    }

    #[test]
    fn nothing_goes_if_everything_would_unless_this_process_has_seen_the_time_pass() {
        let limit = expiry_limit(DAY * 30, Some(at(0)), reading(365, 0), reading(365, 0));
        assert!(limit.unwrap_err().contains("everything"));
        assert!(expiry_limit(DAY * 30, Some(at(0)), reading(0, 0), reading(31, 31)).is_ok());
        assert!(expiry_limit(DAY * 30, None, reading(365, 0), reading(365, 0)).is_ok());
    }
}
