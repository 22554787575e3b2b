//! Forks sessions: copies a log up to the end of a turn to a new session, with new hashes.

use super::{LogRow, ROWS_PER_PAGE, SessionRecord, remove_hidden};
use crate::decode::not_found;
use crate::store::Store;
use lango_core::{
    BusyPolicy, Event, EventBody, EventRange, NewSession, SessionId, SessionStore, StoreError,
    TurnId,
};

/// A session to create from another one.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The new session. Its user must be the user of the source.
    pub session: NewSession,
    /// The title of the new session.
    pub title: String,
    pub source: SessionId,
    /// The last turn to copy.
    pub turn: TurnId,
}

impl Store {
    /// Copies a session up to the end of a turn and what the user undid before the next one, without the grants of the source.
    /// Returns false and copies nothing if the turn is unfinished. Fails if the turn does not exist.
    pub async fn fork_session(&self, fork: Fork) -> Result<bool, StoreError> {
        let events = self.turn_events(&fork.source, &fork.turn).await?;
        let last = events.last().ok_or_else(|| not_found(&fork.source))?;
        let is_end = |event: &Event| matches!(event.body, EventBody::TurnFinished { .. });
        if !events.iter().any(is_end) {
            return Ok(false);
        }
        let id = &fork.session.id;
        let _lease = self.acquire(id, BusyPolicy::Refuse).await?;
        self.start_import(fork.session.clone()).await?;
        let copied = self.copy_log(&fork, last.seq).await;
        if copied.is_err() {
            // If this fails too, the next removal deletes the hidden session.
            let _ = remove_hidden(self, id).await;
        }
        copied?;
        self.notify_session(id);
        Ok(true)
    }

    async fn copy_log(&self, fork: &Fork, last_seq: u64) -> Result<(), StoreError> {
        let NewSession { id, user, created } = fork.session.clone();
        let (mut copied, mut hash) = (0, Vec::new());
        while copied < last_seq {
            let left = usize::try_from(last_seq - copied).unwrap_or(usize::MAX);
            let page = EventRange {
                from: copied + 1,
                limit: left.min(ROWS_PER_PAGE),
            };
            let rows = self.log_rows(&fork.source, page).await?;
            if rows.is_empty() {
                return Err(not_found(&fork.source));
            }
            copied += rows.len() as u64;
            let rows = rows.into_iter().map(|row| {
                let mut row = LogRow {
                    session: id.clone(),
                    ..row
                };
                row.hash = row.stored_event().hash(&hash).to_vec();
                hash.clone_from(&row.hash);
                row
            });
            self.import_rows(rows.collect()).await?;
        }
        let record = SessionRecord {
            id,
            user,
            created,
            updated: created,
            title: fork.title.clone(),
            events: copied,
            hash,
        };
        self.finish_import(record).await.map(drop)
    }
}
