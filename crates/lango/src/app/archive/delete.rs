//! Deletes sessions by their ids, permanently.

use crate::app::{App, Failure};
use lango_core::{BusyPolicy, Clock, SessionId, SessionStore, StoreError, Timestamp};
use lango_engine::SystemClock;
use lango_store::Store;
use lango_store::archive::remove_hidden;
use lango_tools::UndoStore;
use std::time::Duration;

/// Deletes these sessions and the originals of files that their turns changed, after acquiring the leases of all of
/// them. Calls `progress` with the number of sessions deleted so far.
pub async fn delete_sessions(
    store: &Store,
    undo: &UndoStore,
    ids: &[SessionId],
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<u64, Failure> {
    let mut leases = Vec::with_capacity(ids.len());
    for id in ids {
        leases.push(store.acquire(id, BusyPolicy::Refuse).await?);
    }
    for (done, (id, lease)) in ids.iter().zip(&leases).enumerate() {
        // Deleting the earlier sessions took time.
        if !lease.is_valid() {
            return Err(StoreError::LeaseLost { id: id.clone() }.into());
        }
        if !store.hide_session(id, None).await? {
            return Err(StoreError::NotFound { id: id.clone() }.into());
        }
        undo.forget_session(id)?;
        remove_hidden(store, id).await?;
        progress(done + 1);
    }
    Ok(ids.len() as u64)
}

/// Returns `session.ttl`; fails if it is not set.
pub fn ttl(app: &App) -> Result<Duration, Failure> {
    let ttl = app.loaded.settings.session.ttl;
    ttl.ok_or_else(|| {
        Failure::usage("session.ttl is not set, so no session ever expires")
            .next("lango sessions delete --older-than 30d, or set session.ttl")
    })
}

/// Returns the time that lies `age` in the past.
pub fn time_before(age: Duration) -> Timestamp {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    Timestamp(SystemClock.now().0.saturating_sub(age))
}
