//! The rows of a batch of events, and the cached ends of logs.

use crate::backend::{Result, checked_i64};
use crate::chain::StoredEvent;
use crate::decode::failed;
use crate::projection::RowChanges;
use lango_core::{Event, SessionId, StoreError};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The end of a log: the last event's `seq` and hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogEnd {
    pub seq: u64,
    pub hash: Vec<u8>,
}

/// Number of sessions whose ends are cached.
const CACHED_ENDS: usize = 4096;

/// A cache of the ends of logs, which saves appends to PostgreSQL a query.
#[derive(Debug, Default)]
pub(crate) struct LogEndCache(Mutex<HashMap<SessionId, LogEnd>>);

impl LogEndCache {
    pub(super) fn remember(&self, session: &SessionId, end: LogEnd) {
        let mut ends = self.ends();
        if ends.len() >= CACHED_ENDS {
            ends.clear();
        }
        ends.insert(session.clone(), end);
    }

    /// Removes and returns the cached end of a log that is about to change.
    pub(super) fn take(&self, session: &SessionId) -> Option<LogEnd> {
        self.ends().remove(session)
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<SessionId, LogEnd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows of a non-empty batch, without their hashes.
pub(super) struct EventRows<'a> {
    pub session: &'a SessionId,
    pub first_seq: i64,
    pub events: Vec<StoredEvent<'a>>,
    pub changes: RowChanges<'a>,
}

impl<'a> EventRows<'a> {
    /// Builds the rows of events of one session. `bodies` is the JSON of each event.
    pub(super) fn new(
        session: &'a SessionId,
        events: &'a [Event],
        bodies: impl Iterator<Item = &'a str>,
    ) -> Result<Self> {
        let row = |(event, body): (&'a Event, &'a str)| {
            Ok(StoredEvent {
                session: session.as_str(),
                seq: checked_i64(event.seq)?,
                turn: event.turn.as_str(),
                frame: event.frame.as_str(),
                author: event.author.as_str(),
                time: checked_i64(event.time.0)?,
                body,
            })
        };
        let rows = events.iter().zip(bodies).map(row);
        let rows: Vec<_> = rows.collect::<Result<_>>()?;
        Ok(Self {
            session,
            first_seq: rows.first().map_or(0, |row| row.seq),
            events: rows,
            changes: RowChanges::from_events(events)?,
        })
    }

    /// Computes the hashes of the rows, given the hash of the row before them.
    pub(super) fn hashes_after(&self, previous: &[u8]) -> Vec<[u8; 32]> {
        let mut hashes: Vec<[u8; 32]> = Vec::with_capacity(self.events.len());
        for event in &self.events {
            let before = hashes.last().map_or(previous, |hash| &hash[..]);
            hashes.push(event.hash(before));
        }
        hashes
    }

    /// Returns the end of the log after these rows are stored.
    pub(super) fn end(&self, last_hash: Option<&[u8]>) -> LogEnd {
        let seq = self.events.last().map_or(0, |event| event.seq);
        LogEnd {
            seq: seq.unsigned_abs(),
            hash: last_hash.unwrap_or_default().to_vec(),
        }
    }
}

/// Returns the session of a batch, or `None` if the batch is empty. Fails if it has events of several sessions, or a gap.
pub(super) fn session_of(events: &[Event]) -> Result<Option<&SessionId>, StoreError> {
    let Some(Event { session, seq, .. }) = events.first() else {
        return Ok(None);
    };
    for (index, event) in events.iter().enumerate() {
        let expected = seq.saturating_add(index as u64);
        if event.session != *session {
            return Err(failed(format!(
                "a batch of session `{session}` has an event of session `{}`",
                event.session
            )));
        }
        if event.seq != expected {
            return Err(failed(format!(
                "a batch of session `{session}` has event {} where {expected} was expected",
                event.seq
            )));
        }
    }
    Ok(Some(session))
}
