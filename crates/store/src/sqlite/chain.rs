//! The hashes that tie each row of a log to the one before it.
//!
//! A row's hash covers the hash before it and every field exactly as it is stored, each with its length in front. Rows
//! from before there were hashes have an empty one; the chain begins after them and never turns empty again.

use super::failure::Failure;
use super::statements::{CHAIN, SESSION};
use lango_core::{SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row};
use sha2::{Digest as _, Sha256};

/// A row of the log as it is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredEvent<'a> {
    pub session: &'a str,
    pub seq: i64,
    pub turn: &'a str,
    pub frame: &'a str,
    pub author: &'a str,
    pub time: i64,
    pub body: &'a str,
}

impl<'a> StoredEvent<'a> {
    /// The hash of this row after a row with the hash `previous`; empty if there is none.
    pub(super) fn hash(&self, previous: &[u8]) -> [u8; 32] {
        let (seq, time) = (self.seq.to_be_bytes(), self.time.to_be_bytes());
        let texts =
            [self.session, self.turn, self.frame, self.author, self.body].map(str::as_bytes);
        let mut hasher = Sha256::new();
        for field in [previous, &seq, &time].into_iter().chain(texts) {
            hasher.update((field.len() as u64).to_be_bytes());
            hasher.update(field);
        }
        hasher.finalize().into()
    }

    fn from_row(session: &'a SessionId, row: &'a Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            session: session.as_str(),
            seq: row.get(0)?,
            turn: row.get_ref(1)?.as_str()?,
            frame: row.get_ref(2)?.as_str()?,
            author: row.get_ref(3)?.as_str()?,
            time: row.get(4)?,
            body: row.get_ref(5)?.as_str()?,
        })
    }
}

/// Checks the whole log of a session and gives the number of its events.
pub(super) fn verify(connection: &Connection, session: &SessionId) -> Result<u64, Failure> {
    let known = connection
        .prepare_cached(SESSION)?
        .query_row([session.as_str()], |_| Ok(()))
        .optional()?;
    known.ok_or_else(|| StoreError::NotFound {
        id: session.clone(),
    })?;

    let mut statement = connection.prepare_cached(CHAIN)?;
    let mut rows = statement.query([session.as_str()])?;
    let mut previous: Vec<u8> = Vec::new();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let event = StoredEvent::from_row(session, row)?;
        let hash = row.get_ref(6)?.as_blob().map_err(rusqlite::Error::from)?;
        let damage = if u64::try_from(event.seq) != Ok(count) {
            "events before it are missing"
        } else if hash.is_empty() && previous.is_empty() {
            continue;
        } else if hash != event.hash(&previous) {
            "it does not match its hash"
        } else {
            previous = hash.to_vec();
            continue;
        };
        return Err(damaged(session, event.seq, damage).into());
    }
    Ok(count)
}

fn damaged(session: &SessionId, seq: i64, detail: &str) -> StoreError {
    StoreError::Damaged {
        id: session.clone(),
        seq: seq.unsigned_abs(),
        detail: detail.to_owned(),
    }
}
