//! A batch of events as the rows that it becomes, and the ends of logs.

use crate::chain::StoredEvent;
use crate::engine::{Result, stored};
use crate::projection::RowChanges;
use crate::stored::failed;
use lango_core::{Event, SessionId, StoreError};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The end of a log: the last `seq`, and its hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub seq: u64,
    pub hash: Vec<u8>,
}

/// Number of sessions whose ends are cached.
const CACHED_ENDS: usize = 4096;

/// The ends of logs that this replica knows, which saves appends to PostgreSQL a query.
#[derive(Debug, Default)]
pub(crate) struct Ends(Mutex<HashMap<SessionId, End>>);

impl Ends {
    pub(super) fn remember(&self, session: &SessionId, end: End) {
        let mut ends = self.ends();
        if ends.len() >= CACHED_ENDS {
            ends.clear();
        }
        ends.insert(session.clone(), end);
    }

    /// Takes the end of a log that is about to change.
    pub(super) fn take(&self, session: &SessionId) -> Option<End> {
        self.ends().remove(session)
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<SessionId, End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows of a batch that is not empty, without their hashes.
pub(super) struct Rows<'a> {
    pub session: &'a SessionId,
    pub first_seq: i64,
    pub events: Vec<StoredEvent<'a>>,
    pub changes: RowChanges<'a>,
}

impl<'a> Rows<'a> {
    /// Makes rows of events of one session and their JSON.
    pub(super) fn of(
        session: &'a SessionId,
        events: &'a [Event],
        bodies: impl Iterator<Item = &'a str>,
    ) -> Result<Self> {
        let row = |(event, body): (&'a Event, &'a str)| {
            Ok(StoredEvent {
                session: session.as_str(),
                seq: stored(event.seq)?,
                turn: event.turn.as_str(),
                frame: event.frame.as_str(),
                author: event.author.as_str(),
                time: stored(event.time.0)?,
                body,
            })
        };
        let rows = events.iter().zip(bodies).map(row);
        let rows: Vec<_> = rows.collect::<Result<_>>()?;
        Ok(Self {
            session,
            first_seq: rows.first().map_or(0, |row| row.seq),
            events: rows,
            changes: RowChanges::of(events)?,
        })
    }

    /// Computes their hashes after a row with this one.
    pub(super) fn hashes_after(&self, previous: &[u8]) -> Vec<[u8; 32]> {
        let mut hashes: Vec<[u8; 32]> = Vec::with_capacity(self.events.len());
        for event in &self.events {
            let before = hashes.last().map_or(previous, |hash| &hash[..]);
            hashes.push(event.hash(before));
        }
        hashes
    }

    /// Returns the end of the log once they are stored.
    pub(super) fn end(&self, last_hash: Option<&[u8]>) -> End {
        let seq = self.events.last().map_or(0, |event| event.seq);
        End {
            seq: seq.unsigned_abs(),
            hash: last_hash.unwrap_or_default().to_vec(),
        }
    }
}

/// Returns the session of a batch, or nothing if the batch is empty. Fails if it is of several sessions or has a gap.
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
                "a batch of session `{session}` has event {} in the place of {expected}",
                event.seq
            )));
        }
    }
    Ok(Some(session))
}
