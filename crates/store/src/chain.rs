//! The hash chain of a log, in which each row's hash covers the row before it.
//!
//! A row's hash covers the previous hash and every field exactly as it is stored, each prefixed with its length. Rows of old
//! versions of lango have an empty hash; the chain starts after them. The hashes are the same in every database, so a log can be
//! verified after it was moved to another one.

use crate::archive::LogRow;
use crate::decode::damaged;
use lango_core::{EventBody, SessionId, StoreError};
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
    /// Computes the hash of this row. `previous` is the hash of the row before it, or empty if there is none.
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

/// A verification of a log, row by row.
#[derive(Debug)]
pub struct LogVerifier {
    session: SessionId,
    count: u64,
    hash: Vec<u8>,
}

impl LogVerifier {
    /// Starts at the first row of the session's log.
    pub fn new(session: &SessionId) -> Self {
        Self::after(session, 0, Vec::new())
    }

    /// Starts after `count` rows, the last of which has this hash.
    pub(crate) fn after(session: &SessionId, count: u64, hash: Vec<u8>) -> Self {
        Self {
            session: session.clone(),
            count,
            hash,
        }
    }

    /// Returns the number of rows verified so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the hash of the last verified row, or an empty one if there is none.
    pub fn hash(&self) -> &[u8] {
        &self.hash
    }

    /// Verifies the next row and returns its event. The row must follow the one before, have an author and match its hash.
    pub fn verify(&mut self, row: &LogRow) -> Result<EventBody, StoreError> {
        let damaged = |detail: &str| damaged(&self.session, row.seq, detail);
        if row.session != self.session {
            let detail = format!("it belongs to session `{}`", row.session);
            return Err(damaged(&detail));
        }
        if row.seq <= self.count {
            return Err(damaged("it is a duplicate"));
        }
        if row.seq != self.count + 1 {
            return Err(damaged("events before it are missing"));
        }
        let is_older_than_hashes = row.hash.is_empty() && self.hash.is_empty();
        if !is_older_than_hashes {
            if row.hash != row.stored_event().hash(&self.hash) {
                return Err(damaged("it does not match its hash"));
            }
            if row.author.is_empty() {
                return Err(damaged("its author is missing"));
            }
        }
        let body = serde_json::from_str(&row.body)
            .map_err(|error| damaged(&format!("it is not an event: {error}")))?;
        self.count += 1;
        self.hash.clone_from(&row.hash);
        Ok(body)
    }
}
