//! Exports, imports and removes sessions: logs are copied row by row exactly as stored, with their hashes.
//!
//! Every step is bounded, so that turns do not wait long behind it. A session is visible as a whole or not at all.
//! While it is imported or removed, it is **hidden**: its user name gets a prefix that no real user name has. If an
//! import or removal is interrupted, the next removal deletes the hidden sessions.

mod fork;
mod import;
pub mod line;
mod removal;

pub use fork::Fork;

use crate::attachments::digest_of;
use crate::backend::{Result, Row, Sql, records, sql, values};
use crate::chain::{LogVerifier, StoredEvent};
use crate::decode::{author, damaged, not_found};
use crate::store::Store;
use lango_core::{
    AgentName, Attachment, AttachmentStore, Event, EventBody, EventRange, FrameId, SessionId,
    StoreError, Text, Timestamp, TurnId, UserId,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns the user name of a hidden session: the user's name with a prefix.
pub(crate) fn hidden_user(user: &UserId) -> UserId {
    UserId::new(format!("\u{1}{user}"))
}

/// Maximum number of log rows in a page.
pub const ROWS_PER_PAGE: usize = 200;

/// Size in bytes at which a page of rows ends.
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// A session without its log. The fields are the same as in the session's line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub id: SessionId,
    pub user: UserId,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub title: String,
    /// The `seq` of the last event.
    pub events: u64,
    /// The hash of that event.
    #[serde(with = "line::hash")]
    pub hash: Vec<u8>,
}

/// A row of a log, exactly as it is stored. The fields are the same as in the event's line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRow {
    /// Starts at 1.
    pub seq: u64,
    pub session: SessionId,
    pub turn: Text,
    pub frame: Text,
    /// Empty in rows of old versions of lango.
    pub author: Text,
    pub time: Timestamp,
    /// The event's JSON, byte for byte.
    #[serde(rename = "stored", default, skip_serializing)]
    pub body: String,
    /// Empty in rows of old versions of lango.
    #[serde(with = "line::hash", skip_serializing)]
    pub hash: Vec<u8>,
}

impl LogRow {
    /// Fills in the author of an old row that has none.
    pub(crate) fn with_author(mut self, root_agent: &AgentName) -> Self {
        if self.author.is_empty() && self.hash.is_empty() {
            let is_user_message = self.body.starts_with(r#"{"type":"user.message","#);
            self.author = author("", is_user_message, root_agent).as_str().into();
        }
        self
    }

    pub(crate) fn event(&self, body: EventBody) -> Event {
        Event {
            seq: self.seq,
            session: self.session.clone(),
            turn: TurnId::new(self.turn.clone()),
            frame: FrameId::new(self.frame.clone()),
            author: AgentName::new(self.author.clone()),
            time: self.time,
            body,
        }
    }

    /// Returns the fields that the hash covers. A number that is too large for a database is replaced, so the row
    /// matches no hash.
    pub(crate) fn stored_event(&self) -> StoredEvent<'_> {
        StoredEvent {
            session: self.session.as_str(),
            seq: i64::try_from(self.seq).unwrap_or(i64::MAX),
            turn: &self.turn,
            frame: &self.frame,
            author: &self.author,
            time: i64::try_from(self.time.0).unwrap_or(i64::MAX),
            body: &self.body,
        }
    }
}

/// Expands to the SQL condition that a session is hidden. The prefix U+0001 is stored in PostgreSQL as U+0001 and `1`.
macro_rules! is_hidden {
    () => {
        r#"/*sqlite substr("user", 1, 1) = char(1)*/ /*postgres starts_with("user", chr(1) || '1')*/"#
    };
}
pub(crate) use is_hidden;

/// Selects the user of a hidden session, without the prefix. PostgreSQL locks the row until the transaction ends.
pub(crate) const HIDDEN_USER: Sql = sql!(concat!(
    r#"SELECT substr("user", /*sqlite 2*/ /*postgres 3*/) FROM sessions WHERE id = $1 AND "#,
    is_hidden!(),
    " /*postgres FOR NO KEY UPDATE*/"
));

impl Store {
    /// Lists a user's sessions in the order of their ids, starting after the given id.
    pub async fn session_ids(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionId>, StoreError> {
        let after = after.map_or("", SessionId::as_str);
        let values = values![user, after, limit];
        let id = |row: Row<'_>| Ok(SessionId::from(&*row.lossy(0)?));
        let mut ids = self.backend.query(IDS, values, id).await?;
        // SQLite orders an id that is not valid UTF-8 by its bytes, not by the text shown for it. Without this check the next page
        // could list it again.
        ids.retain(|id| id.as_str() > after);
        Ok(ids)
    }

    pub async fn session_record(&self, session: &SessionId) -> Result<SessionRecord, StoreError> {
        let id = session.clone();
        let record = self
            .backend
            .query_opt(RECORD, values![session], move |row| {
                row.read().map_err(|failure| failure.in_event(&id, 0))
            });
        record.await?.ok_or_else(|| not_found(session))
    }

    /// Reads rows of a log in order, and fills in authors that old rows lack. A page of large rows has fewer rows than
    /// `limit`, but at least one unless the log has ended.
    pub async fn log_rows(
        &self,
        session: &SessionId,
        page: EventRange,
    ) -> Result<Vec<LogRow>, StoreError> {
        let args = (session.clone(), page);
        let rows = self.backend.read(args, |tx, (session, page)| {
            Box::pin(async move {
                let values = values![session, page.from, page.limit];
                let rows = tx.query_page(ROWS, values, PAGE_BYTES, |row| {
                    let seq = row.get(0)?;
                    let row: LogRow = row
                        .read()
                        .map_err(|failure| failure.in_event(session, seq))?;
                    let size = row.body.len();
                    Ok((row, size))
                });
                rows.await
            })
        });
        let rows = rows.await?.into_iter();
        Ok(rows.map(|row| row.with_author(&self.root_agent)).collect())
    }
}

records! {
    SessionRecord { id, user, created, updated, title, events, hash }
    LogRow { seq, session, turn, frame, author, time, body, hash }
}

const IDS: Sql =
    sql!(r#"SELECT id FROM sessions WHERE "user" = $1 AND id > $2 ORDER BY id LIMIT $3"#);

/// Selects a visible session, with the `seq` and hash of its last event.
const RECORD: Sql = sql!(concat!(
    r#"SELECT id, "user", created, updated, title, coalesce(log_end.seq, 0),
            coalesce(log_end.hash, /*sqlite x''*/ /*postgres ''::bytea*/)
       FROM sessions
       LEFT JOIN events AS log_end ON log_end.session = sessions.id
            AND log_end.seq = (SELECT max(seq) FROM events WHERE events.session = sessions.id)
      WHERE id = $1 AND NOT "#,
    is_hidden!()
));

const ROWS: Sql = sql!(
    sqlite: "SELECT seq, session, turn, frame, author, time, body, hash FROM events
     WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
    postgres: "SELECT seq, session, turn, frame, author, time, body, hash
       FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS bytes_before
               FROM (SELECT * FROM events WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT $3) AS page) AS page
      WHERE bytes_before < $4 ORDER BY seq"
);

/// The result of erasing the bytes of deleted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WipeOutcome {
    /// The file was rewritten, so no deleted bytes are left.
    Clean,
    /// Another process was using the file, so deleted bytes may be left in it or in its write-ahead log.
    InUse,
    /// PostgreSQL reclaims the space itself, some time later.
    LeftToServer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiredPage {
    pub skip: usize,
    pub limit: usize,
}

/// Counts of what a verified log contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogContents {
    pub events: u64,
    /// Number of distinct attachments that events refer to.
    pub attachments: u64,
}

/// Verifies a log up to the last event of `record`: there are no gaps, every event has an author, and every hash and
/// every attachment's digest match. Fails with [`StoreError::Damaged`] at the first event that violates this. Calls
/// `on_progress` with the number of events verified so far.
pub async fn verify_record(
    store: &Store,
    record: &SessionRecord,
    on_progress: &mut (dyn FnMut(u64) + Send),
) -> Result<LogContents, StoreError> {
    let mut chain = LogVerifier::new(&record.id);
    let mut attachments = BTreeSet::new();
    while chain.count() < record.events {
        for row in next_rows(store, record, &chain).await? {
            let body = chain.verify(&row)?;
            for attachment in body.attachments() {
                if attachments.insert(attachment.digest.clone()) {
                    read_attachment(store, record, row.seq, attachment).await?;
                }
            }
        }
        on_progress(chain.count());
    }
    Ok(LogContents {
        events: chain.count(),
        attachments: attachments.len() as u64,
    })
}

/// Reads an attachment that the event with this `seq` refers to. Fails with [`StoreError::Damaged`] if it is missing or does not
/// match its digest.
pub async fn read_attachment(
    store: &Store,
    record: &SessionRecord,
    seq: u64,
    attachment: &Attachment,
) -> Result<Arc<[u8]>, StoreError> {
    let (name, digest) = (&attachment.name, &attachment.digest);
    let damaged = |detail: String| damaged(&record.id, seq, detail);
    let bytes = AttachmentStore::read(store, &record.user, digest).await?;
    let bytes = bytes.ok_or_else(|| damaged(format!("its attachment `{name}` is missing")))?;
    if digest_of(&bytes) != *digest {
        let detail = format!("its attachment `{name}` does not match its digest");
        return Err(damaged(detail));
    }
    Ok(bytes)
}

/// Reads the next page of a log, at most up to the last event of `record`. Fails with [`StoreError::Damaged`] if rows are missing.
pub async fn next_rows(
    store: &Store,
    record: &SessionRecord,
    chain: &LogVerifier,
) -> Result<Vec<LogRow>, StoreError> {
    let (from, left) = (chain.count() + 1, record.events - chain.count());
    let limit = usize::try_from(left).map_or(ROWS_PER_PAGE, |left| left.min(ROWS_PER_PAGE));
    let rows = store
        .log_rows(&record.id, EventRange { from, limit })
        .await?;
    if rows.is_empty() {
        return Err(damaged(&record.id, from, "it is missing"));
    }
    Ok(rows)
}

/// Removes a hidden session completely, in as many steps as necessary.
pub async fn remove_hidden(store: &Store, session: &SessionId) -> Result<(), StoreError> {
    while !store.remove_portion(session).await? {}
    Ok(())
}
