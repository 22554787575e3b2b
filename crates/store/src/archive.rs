//! Export, import and removal of sessions: logs as they are stored, row by row, with their hashes.
//!
//! Every step is bounded, so that turns do not wait long behind one, and a session is visible as a whole or not at all. While a
//! session is imported or removed it is **hidden**: its user has a mark in front that no user's name has. What an interrupted
//! import or removal leaves hidden is removed by the next removal.

#![allow(missing_docs, reason = "the names say it")]

mod export;
mod import;
pub mod line;
mod removal;

use crate::Answer;
use crate::attachments::digest_of;
use crate::chain::{Chain, StoredEvent};
use crate::engine::{Sql, sql};
use crate::stored::{Speaker, author};
use lango_core::{
    AgentName, Attachment, AttachmentStore, Event, EventBody, FrameId, NewSession, Page, SessionId,
    StoreError, Text, Timestamp, TurnId, UserId,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The mark in front of the user of a hidden session.
const HIDDEN: char = '\u{1}';

pub(crate) fn hidden_user(user: &UserId) -> String {
    format!("{HIDDEN}{user}")
}

/// Refuses a session whose user cannot be stored.
pub(crate) fn must_be_kept(session: &NewSession) -> Result<(), StoreError> {
    match session.user.can_be_kept() {
        true => Ok(()),
        false => Err(StoreError::Failed {
            detail: format!(
                "the user of session `{}` has a name that cannot be kept: it is empty, too long, or has control characters",
                session.id
            ),
        }),
    }
}

/// The most rows of a log that are read at once.
pub const ROWS_AT_ONCE: usize = 200;

/// The number of bytes at which a page of rows ends.
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// A session without its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: SessionId,
    pub user: UserId,
    pub title: String,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// The `seq` of the last event.
    pub events: u64,
    /// The hash of that event.
    pub hash: Vec<u8>,
}

/// A row of a log, exactly as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    pub session: SessionId,
    /// From 1.
    pub seq: u64,
    pub turn: Text,
    pub frame: Text,
    /// Empty in rows that are older than authors.
    pub author: Text,
    pub time: Timestamp,
    /// The JSON of the event, to the byte.
    pub body: String,
    /// Empty in rows that are older than hashes.
    pub hash: Vec<u8>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

impl LogRow {
    /// Fills in the author of a row that is older than authors.
    pub(crate) fn with_author(mut self, root_agent: &AgentName) -> Self {
        if self.author.is_empty() && self.hash.is_empty() {
            let kind = serde_json::from_str::<Kind<'_>>(&self.body);
            let speaker = match kind {
                Ok(kind) if kind.kind == "user.message" => Speaker::User,
                _ => Speaker::Agent,
            };
            self.author = author("", speaker, root_agent).as_str().into();
        }
        self
    }

    /// Returns the event of this row.
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

    /// Returns the fields that the hash covers. A number that is too large for a database matches no hash.
    pub(crate) fn stored(&self) -> StoredEvent<'_> {
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

/// The condition that a session is hidden. PostgreSQL stores U+0001 as U+0001 and `1`.
macro_rules! is_hidden {
    () => {
        r#"/*sqlite substr("user", 1, 1) = char(1)*/ /*postgres starts_with("user", chr(1) || '1')*/"#
    };
}
pub(crate) use is_hidden;

/// The user of a hidden session, without the mark. PostgreSQL locks the row until the transaction ends.
pub(crate) const HIDDEN_USER: Sql = sql!(concat!(
    r#"SELECT substr("user", /*sqlite 2*/ /*postgres 3*/) FROM sessions WHERE id = $1 AND "#,
    is_hidden!(),
    " /*postgres FOR NO KEY UPDATE*/"
));

/// Logs as they are stored, and the attachments that they refer to.
pub trait SessionArchive: AttachmentStore {
    /// Lists a user's sessions in the order of their ids, after one.
    fn session_ids(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Answer<'_, Vec<SessionId>>;

    /// Reads a session without its log.
    fn session_record(&self, session: &SessionId) -> Answer<'_, SessionRecord>;

    /// Reads rows of a log in their order. A page of large rows has fewer than `limit`, but at least one if there is one.
    /// Rows that are older than authors get theirs.
    fn log_rows(&self, session: &SessionId, page: Page) -> Answer<'_, Vec<LogRow>>;
}

/// Import of sessions. The caller has the lease of the session.
pub trait SessionImport: Send + Sync {
    /// Creates a hidden session. An id that is taken is [`StoreError::Exists`].
    fn start_import(&self, session: NewSession) -> Answer<'_, ()>;

    /// Adds rows to the log of a hidden session, each checked as [`Chain::take`] does, and updates what follows from them.
    fn import_rows(&self, rows: Vec<LogRow>) -> Answer<'_, ()>;

    /// Shows a session, with this record's title and time. Grants for later calls are not imported, because the log does not
    /// say which were revoked since. Returns how many there were.
    fn finish_import(&self, session: SessionRecord) -> Answer<'_, u64>;
}

/// Removal of sessions and of old tasks. The caller has the lease of a session that it removes.
pub trait SessionRemoval: Send + Sync {
    /// Hides a session; if a time is given, only if it was not used since and has no unfinished turn. Returns whether this
    /// call hid it.
    fn hide_session(
        &self,
        session: &SessionId,
        unused_since: Option<Timestamp>,
    ) -> Answer<'_, bool>;

    /// Removes a bounded part of a hidden session and of all that belongs to it. Returns whether nothing is left of it, as
    /// of a session that does not exist. A session that is not hidden stays.
    fn remove_portion(&self, session: &SessionId) -> Answer<'_, bool>;

    /// Lists hidden sessions of a user, after one.
    fn hidden_sessions(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Answer<'_, Vec<SessionId>>;

    /// Lists a user's sessions that were not used since then and have no unfinished turn, the oldest first.
    fn expired_sessions(
        &self,
        user: &UserId,
        unused_since: Timestamp,
        page: ExpiredPage,
    ) -> Answer<'_, Vec<SessionId>>;

    /// Removes some of a user's A2A tasks that are older than that, are not running, and wait for no answer. Returns how
    /// many.
    fn remove_old_tasks(&self, user: &UserId, before: Timestamp, limit: usize) -> Answer<'_, u64>;

    /// Erases the bytes of deleted rows. It takes as long as the database is large, and turns wait meanwhile.
    fn wipe_deleted(&self) -> Answer<'_, WipeOutcome>;
}

/// What is left of deleted rows in the bytes of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WipeOutcome {
    /// Nothing: the file was rewritten.
    Clean,
    /// Another process used the file: bytes may be left in it or in its write-ahead log.
    InUse,
    /// PostgreSQL reclaims the space by itself, in time.
    LeftToServer,
}

/// A page of expired sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiredPage {
    pub skip: usize,
    pub limit: usize,
}

/// Checks a whole log: no gaps, every event with its author, every hash right, every attachment with the bytes that it had.
/// Returns the number of its events, or [`StoreError::Damaged`] with the first one that was changed. `seen` is called with the
/// number of events that were checked.
pub async fn verify(
    archive: &dyn SessionArchive,
    session: &SessionId,
    seen: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, StoreError> {
    let record = archive.session_record(session).await?;
    Ok(verify_record(archive, &record, seen).await?.events)
}

/// The contents of a log that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogContents {
    pub events: u64,
    /// Attachments that events refer to, each counted once.
    pub attachments: u64,
}

/// Checks a log up to the end that a record has.
pub async fn verify_record(
    archive: &dyn SessionArchive,
    record: &SessionRecord,
    seen: &mut (dyn FnMut(u64) + Send),
) -> Result<LogContents, StoreError> {
    let mut chain = Chain::of(&record.id);
    let mut attachments = BTreeSet::new();
    while chain.count() < record.events {
        for row in next_rows(archive, record, &chain).await? {
            let body = chain.take(&row)?;
            for attachment in body.attachments() {
                if attachments.insert(attachment.digest.clone()) {
                    read_attachment(archive, record, row.seq, attachment).await?;
                }
            }
        }
        seen(chain.count());
    }
    Ok(LogContents {
        events: chain.count(),
        attachments: attachments.len() as u64,
    })
}

/// Reads the bytes of an attachment that the event with this `seq` refers to. Missing bytes, and bytes with another digest,
/// are damage.
pub async fn read_attachment(
    archive: &dyn SessionArchive,
    record: &SessionRecord,
    seq: u64,
    attachment: &Attachment,
) -> Result<Arc<[u8]>, StoreError> {
    let (name, digest) = (&attachment.name, &attachment.digest);
    let damaged = |detail: String| StoreError::Damaged {
        id: record.id.clone(),
        seq,
        detail,
    };
    let bytes = AttachmentStore::read(archive, &record.user, digest).await?;
    let bytes = bytes.ok_or_else(|| damaged(format!("its attachment `{name}` is missing")))?;
    if digest_of(&bytes) != *digest {
        let detail = format!("its attachment `{name}` does not match its digest");
        return Err(damaged(detail));
    }
    Ok(bytes)
}

/// Reads the next rows of a log up to the end that its record has. Missing rows are damage.
pub async fn next_rows(
    archive: &dyn SessionArchive,
    record: &SessionRecord,
    chain: &Chain,
) -> Result<Vec<LogRow>, StoreError> {
    let from = chain.count() + 1;
    let left = usize::try_from(record.events - chain.count()).unwrap_or(usize::MAX);
    let page = Page {
        from,
        limit: left.min(ROWS_AT_ONCE),
    };
    let rows = archive.log_rows(&record.id, page).await?;
    if rows.is_empty() {
        return Err(StoreError::Damaged {
            id: record.id.clone(),
            seq: from,
            detail: "it is gone".to_owned(),
        });
    }
    Ok(rows)
}

/// Removes all of a hidden session, in as many steps as that takes.
pub async fn remove_hidden(
    store: &dyn SessionRemoval,
    session: &SessionId,
) -> Result<(), StoreError> {
    while !store.remove_portion(session).await? {}
    Ok(())
}
