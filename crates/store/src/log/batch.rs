//! A batch of events as the rows that it becomes.

use crate::archive::LogRow;
use crate::chain::{Chain, StoredEvent};
use crate::engine::{Failure, stored};
use crate::projection::RowChanges;
use lango_core::{Event, SessionId, StoreError};

/// The end of a log: the last `seq`, and its hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub seq: u64,
    pub hash: Vec<u8>,
}

/// The rows of a batch, but for their hashes.
pub(super) struct Rows<'a> {
    pub session: &'a SessionId,
    pub first_seq: i64,
    pub events: Vec<StoredEvent<'a>>,
    pub changes: RowChanges<'a>,
}

/// The JSON of the events of a batch.
pub(super) fn bodies_of(events: &[Event]) -> Result<Vec<String>, Failure> {
    let body = |event: &Event| {
        serde_json::to_string(&event.body).map_err(|error| {
            Failure::other(format!("event {} cannot be written: {error}", event.seq))
        })
    };
    events.iter().map(body).collect()
}

impl<'a> Rows<'a> {
    /// The rows of events with these bodies, all of one session.
    pub(super) fn of(
        session: &'a SessionId,
        events: &'a [Event],
        bodies: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Failure> {
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
        Ok(Self {
            session,
            first_seq: stored(events.first().map_or(0, |event| event.seq))?,
            events: events
                .iter()
                .zip(bodies)
                .map(row)
                .collect::<Result<_, Failure>>()?,
            changes: RowChanges::of(events)?,
        })
    }

    /// Their hashes, behind a row with this one.
    pub(super) fn hashes_after(&self, previous: &[u8]) -> Vec<[u8; 32]> {
        let mut hashes: Vec<[u8; 32]> = Vec::with_capacity(self.events.len());
        for event in &self.events {
            let before = hashes.last().map_or(previous, |hash| &hash[..]);
            hashes.push(event.hash(before));
        }
        hashes
    }

    /// The end of the log once they are stored.
    pub(super) fn end(&self, last_hash: Option<&[u8]>) -> End {
        End {
            seq: self
                .events
                .last()
                .map_or(0, |event| event.seq.unsigned_abs()),
            hash: last_hash.unwrap_or_default().to_vec(),
        }
    }
}

/// The events of rows that come from elsewhere, each of them checked to follow the one before.
pub(super) fn events_of(rows: &[LogRow], end: &End) -> Result<Vec<Event>, StoreError> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let mut chain = Chain::at(&first.session, end.seq, end.hash.clone());
    let events = rows.iter().map(|row| Ok(row.event(chain.take(row)?)));
    events.collect()
}

/// The session and the first `seq` of a batch, once it is known to be of one session and without a gap.
///
/// An empty batch is none: there is nothing to store.
pub(super) fn target_of(events: &[Event]) -> Result<Option<(&SessionId, u64)>, StoreError> {
    let Some(first) = events.first() else {
        return Ok(None);
    };
    for (index, event) in events.iter().enumerate() {
        let expected = first.seq.saturating_add(index as u64);
        if event.session != first.session {
            return Err(refused(format!(
                "a batch of session `{}` has an event of session `{}`",
                first.session, event.session
            )));
        }
        if event.seq != expected {
            return Err(refused(format!(
                "a batch of session `{}` has event {} in the place of {expected}",
                first.session, event.seq
            )));
        }
    }
    Ok(Some((&first.session, first.seq)))
}

fn refused(detail: String) -> StoreError {
    StoreError::Failed { detail }
}
