//! How long what was said is kept: sessions that nobody used since `session.ttl`, and old tasks of callers, go by themselves
//! while `lango serve` runs.
//!
//! Never one in which a turn runs, nor one with an open turn, which may wait for a person: that one goes by its id alone.
//! Only those of this configuration's users go, so that nobody's setting deletes what is somebody else's.

use crate::app::App;
use crate::screen::{self, count};
use lango_core::{BusyPolicy, Clock, SessionStore, StoreError, Timestamp, UserId};
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
    let task = tokio::spawn(async move {
        let mut every = tokio::time::interval(LOOK_EVERY);
        loop {
            every.tick().await;
            let age = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            let before = Timestamp(SystemClock.now().0.saturating_sub(age));
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
