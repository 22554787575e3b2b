//! Forks of sessions: a copy of a log up to the end of a turn, under a new id and with hashes of its own.

use super::{LogRow, ROWS_AT_ONCE, SessionRecord, remove_hidden};
use crate::store::Store;
use crate::stored::not_found;
use lango_core::{
    BusyPolicy, EventBody, NewSession, Page, SessionId, SessionStore, StoreError, TurnId,
};

/// A session to create from another one.
#[derive(Debug, Clone)]
pub struct Fork {
    /// The new session. Its user must be that of the source.
    pub session: NewSession,
    /// Its title.
    pub title: String,
    /// The session to copy from.
    pub source: SessionId,
    /// The last turn to copy.
    pub turn: TurnId,
}

impl Store {
    /// Copies a session up to the end of a turn. Grants of the source are not copied. Returns false, and copies nothing, if the
    /// turn has no outcome yet; fails if there is no such turn.
    pub async fn fork_session(&self, fork: Fork) -> Result<bool, StoreError> {
        let last = self.turn_events(&fork.source, &fork.turn).await?;
        let last = last.last().ok_or_else(|| not_found(&fork.source))?;
        if !matches!(last.body, EventBody::TurnFinished { .. }) {
            return Ok(false);
        }
        let id = &fork.session.id;
        let _lease = self.acquire(id, BusyPolicy::Refuse).await?;
        self.start_import(fork.session.clone()).await?;
        let copied = self.copy_log(&fork, last.seq).await;
        if copied.is_err() {
            // If this fails too, the next removal finds what is left.
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
            let page = Page {
                from: copied + 1,
                limit: left.min(ROWS_AT_ONCE),
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
                row.hash = row.stored().hash(&hash).to_vec();
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
