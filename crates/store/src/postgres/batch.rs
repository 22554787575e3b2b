//! A batch of events as the rows that it becomes.

use super::effects::{Effects, stored};
use super::end::End;
use super::failure::Failure;
use super::text::Words;
use crate::chain::StoredEvent;
use lango_core::Event;

/// A batch as rows, but for their hashes.
pub(super) struct Rows<'a> {
    pub session: &'a str,
    pub first_seq: i64,
    pub turns: Vec<Words<'a>>,
    pub frames: Vec<Words<'a>>,
    pub authors: Vec<Words<'a>>,
    pub times: Vec<i64>,
    pub bodies: Vec<String>,
    pub effects: Effects<'a>,
}

impl<'a> Rows<'a> {
    pub fn of(events: &'a [Event]) -> Result<Self, Failure> {
        let first = events.first();
        let body = |event: &Event| {
            serde_json::to_string(&event.body).map_err(|error| {
                Failure::other(format!("event {} cannot be written: {error}", event.seq))
            })
        };
        Ok(Self {
            session: first.map_or("", |event| event.session.as_str()),
            first_seq: stored(first.map_or(0, |event| event.seq))?,
            turns: events
                .iter()
                .map(|event| Words(event.turn.as_str()))
                .collect(),
            frames: events
                .iter()
                .map(|event| Words(event.frame.as_str()))
                .collect(),
            authors: events
                .iter()
                .map(|event| Words(event.author.as_str()))
                .collect(),
            times: events
                .iter()
                .map(|event| stored(event.time.0))
                .collect::<Result<_, _>>()?,
            bodies: events.iter().map(body).collect::<Result<_, _>>()?,
            effects: Effects::of(events)?,
        })
    }

    /// With their hashes, behind a row with this one.
    pub fn after(&'a self, previous: Vec<u8>) -> Chained<'a> {
        let mut hash = previous.clone();
        let mut hashes = Vec::with_capacity(self.bodies.len());
        let mut seq = self.first_seq;
        for (at, body) in self.bodies.iter().enumerate() {
            let row = StoredEvent {
                session: self.session,
                seq,
                turn: self.turns[at].0,
                frame: self.frames[at].0,
                author: self.authors[at].0,
                time: self.times[at],
                body,
            };
            hash = row.hash(&hash).to_vec();
            hashes.push(hash.clone());
            seq = seq.saturating_add(1);
        }
        Chained {
            rows: self,
            previous,
            hashes,
        }
    }
}

/// A batch behind a certain end of its log.
pub(super) struct Chained<'a> {
    pub rows: &'a Rows<'a>,
    pub previous: Vec<u8>,
    pub hashes: Vec<Vec<u8>>,
}

impl Chained<'_> {
    /// The end of the log once it is stored.
    pub fn end(&self) -> End {
        let count = i64::try_from(self.hashes.len()).unwrap_or(i64::MAX);
        let last = self.rows.first_seq.saturating_add(count).saturating_sub(1);
        End {
            seq: last.unsigned_abs(),
            hash: self.hashes.last().cloned().unwrap_or_default(),
        }
    }
}
