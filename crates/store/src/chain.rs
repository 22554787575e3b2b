//! The hashes that tie each row of a log to the one before it.
//!
//! A row's hash covers the hash before it and every field exactly as it is stored, each with its length in front. Rows
//! from before there were hashes have an empty one; the chain begins after them and never turns empty again. It is the
//! same in every database, so that a log can be moved from one to another and still be checked.

use lango_core::{SessionId, StoreError};
use sha2::{Digest as _, Sha256};

/// A row of the log as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredEvent<'a> {
    pub session: &'a str,
    pub seq: i64,
    pub turn: &'a str,
    pub frame: &'a str,
    pub author: &'a str,
    pub time: i64,
    pub body: &'a str,
}

impl StoredEvent<'_> {
    /// The hash of this row after a row with the hash `previous`; empty if there is none.
    pub(crate) fn hash(&self, previous: &[u8]) -> [u8; 32] {
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
}

/// A log that is being checked, row after row from its first.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    previous: Vec<u8>,
    count: u64,
}

impl Chain {
    /// How many rows were checked.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Checks the next row against the hash that is stored with it.
    pub(crate) fn check(&mut self, event: &StoredEvent<'_>, hash: &[u8]) -> Result<(), StoreError> {
        self.count += 1;
        let damage = if u64::try_from(event.seq) != Ok(self.count) {
            "events before it are missing"
        } else if hash.is_empty() && self.previous.is_empty() {
            return Ok(());
        } else if hash != event.hash(&self.previous) {
            "it does not match its hash"
        } else {
            self.previous.clear();
            self.previous.extend_from_slice(hash);
            return Ok(());
        };
        Err(StoreError::Damaged {
            id: SessionId::from(event.session),
            seq: event.seq.unsigned_abs(),
            detail: damage.to_owned(),
        })
    }
}
