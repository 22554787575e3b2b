//! Keeping and moving what is stored: logs as they are, row by row, with the hashes that tie them together; sessions that
//! come from elsewhere; and sessions that are to be gone.
//!
//! Every step is bounded, so that turns do not wait long behind one, and a session is seen whole or not at all. While one
//! comes or goes it is **hidden**: its user has a mark in front that no user's name has, so that nobody finds it. What a
//! process that died in the middle left hidden is removed by whoever comes next.

pub mod line;

use crate::attachments::digest_of;
use crate::chain::{Chain, StoredEvent};
use crate::stored::{Speaker, author};
use lango_core::{
    AgentName, Attachment, AttachmentStore, BoxFuture, Event, EventBody, FrameId, NewSession, Page,
    SessionId, SessionStore, StoreError, Text, Timestamp, TurnId, UserId,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What stands in front of the user of a session that nobody is to see.
const HIDDEN: char = '\u{1}';

/// The user of a session that nobody is to see.
pub(crate) fn hidden_user(user: &UserId) -> String {
    format!("{HIDDEN}{user}")
}

/// Refuses a session whose user no store keeps.
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

/// How many rows of a log are read at once at most.
pub const ROWS_AT_ONCE: usize = 200;

/// After how many bytes a page of rows is full, however few they are.
pub(crate) const PAGE_BYTES: usize = 4 << 20;

/// A session as an archive keeps it, without its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub user: UserId,
    /// What it is called.
    pub title: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it was used last.
    pub updated: Timestamp,
    /// The `seq` of the last event.
    pub events: u64,
    /// The hash of that event.
    pub hash: Vec<u8>,
}

/// A row of a log, exactly as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// The session.
    pub session: SessionId,
    /// Its place, from 1.
    pub seq: u64,
    /// The turn.
    pub turn: Text,
    /// The frame.
    pub frame: Text,
    /// Who said it; empty in rows that are older than authors.
    pub author: Text,
    /// When.
    pub time: Timestamp,
    /// What happened, as JSON, to the byte.
    pub body: String,
    /// The link to the row before; empty in rows that are older than hashes.
    pub hash: Vec<u8>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

impl LogRow {
    /// The same row with its author filled in, if it has none because it is older than authors.
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

    /// The event that it is, with what its text says.
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

    /// The fields that the hash covers. A number that no database holds matches no hash.
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

/// Logs as they are stored, and the attachments that they refer to.
pub trait Archive: AttachmentStore {
    /// A user's sessions in the order of their ids, after one.
    fn ids(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// A session without its log.
    fn record(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>>;

    /// Rows of a log in their order. There may be fewer than were asked for where they are large, but one at least as long
    /// as there is one. Authors of rows that have none because they are older than authors are filled in.
    fn rows(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<LogRow>, StoreError>>;
}

/// Sessions that come from elsewhere. Each is held by whoever brings it.
pub trait Intake: Send + Sync {
    /// Makes a hidden session. An id that is taken is [`StoreError::Exists`].
    fn begin(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Adds rows to the log of a hidden session, each of them checked as [`Chain::take`] does, and keeps what follows from
    /// them in step.
    fn add(&self, rows: Vec<LogRow>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Shows a session, with this record's title and time. What was granted in it for calls to come does not come along:
    /// the log does not tell what was taken back since. Gives how many such answers there were.
    fn finish(&self, session: SessionRecord) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// Sessions that are to be gone. Each is held by whoever removes it.
pub trait Removing: Send + Sync {
    /// Hides a session; if a time is given, only one that was not used since and has no turn without an outcome. Says
    /// whether it is hidden now.
    fn hide(
        &self,
        session: &SessionId,
        unused_since: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Removes a bounded part of a hidden session and of all that belongs to it. Says whether nothing is left of it, as of
    /// one that is not there; one that is not hidden is left as it is.
    fn remove_some(&self, session: &SessionId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Hidden sessions of a user, after one.
    fn hidden(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// A user's sessions that were not used since then and have no turn without an outcome, the oldest first, without as
    /// many as are passed over.
    fn expired(
        &self,
        user: &UserId,
        unused_since: Timestamp,
        page: Expired,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// Removes some of a user's tasks from outside that are older than that, are not at work, and wait for nobody. Gives
    /// how many.
    fn remove_tasks(
        &self,
        user: &UserId,
        before: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Sees to it that the bytes of what was removed are gone as well. It takes as long as the database is large, and turns
    /// wait meanwhile.
    fn wipe(&self) -> BoxFuture<'_, Result<Wiped, StoreError>>;
}

/// What is left of what was removed, in the bytes of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wiped {
    /// Nothing: the file was written anew.
    Clean,
    /// Somebody was at work there: bytes may be left in the file or its write-ahead log.
    InUse,
    /// What the database's server keeps of it, until it has made use of the space.
    LeftToServer,
}

/// Which of the expired sessions are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// How many are passed over.
    pub skip: usize,
    /// How many at most.
    pub limit: usize,
}

/// Everything that can be done with sessions as they are stored.
pub trait Keeper: SessionStore + Archive + Intake + Removing {}

impl<S: SessionStore + Archive + Intake + Removing> Keeper for S {}

/// Checks a whole log: gap-free, every event with its author, every hash right, every attachment with the bytes that it had.
/// Gives the number of its events, or [`StoreError::Damaged`] with the first one that is not what was once written. `seen` hears how far it is.
pub async fn verify(
    archive: &dyn Archive,
    session: &SessionId,
    seen: &mut (dyn FnMut(u64) + Send),
) -> Result<u64, StoreError> {
    let record = archive.record(session).await?;
    Ok(verify_record(archive, &record, seen).await?.events)
}

/// The contents of a log that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogContents {
    /// Its events.
    pub events: u64,
    /// Attachments that events refer to, each counted once.
    pub attachments: u64,
}

/// The same for a log up to the end that a record has.
pub async fn verify_record(
    archive: &dyn Archive,
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

/// Reads the bytes of an attachment that the event with this `seq` refers to. It is damage if they are missing or are not
/// those that its digest was made of.
pub async fn read_attachment(
    archive: &dyn Archive,
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

/// The next rows of a log up to the end that its record has; that there are none is damage.
pub async fn next_rows(
    archive: &dyn Archive,
    record: &SessionRecord,
    chain: &Chain,
) -> Result<Vec<LogRow>, StoreError> {
    let from = chain.count() + 1;
    let left = usize::try_from(record.events - chain.count()).unwrap_or(usize::MAX);
    let page = Page {
        from,
        limit: left.min(ROWS_AT_ONCE),
    };
    let rows = archive.rows(&record.id, page).await?;
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
pub async fn remove(store: &dyn Removing, session: &SessionId) -> Result<(), StoreError> {
    while !store.remove_some(session).await? {}
    Ok(())
}
