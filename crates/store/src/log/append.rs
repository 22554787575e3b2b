//! Appending to a log, with what follows from the events on other tables.
//!
//! SQLite writes row by row inside the writer's transaction. PostgreSQL gets one statement, which writes only under the guard
//! and only at the end that the batch was made for, and answers what it found. When the answer is lost the same rows
//! are sent again, and their hashes tell whether they are there already.

use super::apply::apply;
use super::batch::{End, Rows, bodies_of, events_of, target_of};
use super::statements::{
    APPEND_FREE, APPEND_HIDDEN, APPEND_LEASED, Append, INSERT_EVENT, IS_VISIBLE, LOG_END,
    PREVIOUS_HASH, REQUESTS,
};
use crate::archive::{HIDDEN_USER, LogRow};
use crate::engine::{Failure, Row, Tx, Value, values};
use crate::projection::without_arguments;
use crate::stored::damaged;
use lango_core::{Batch, SessionId, StoreError};

/// How often a batch is sent because the log did not end as remembered, or another append was faster.
const ATTEMPTS: usize = 4;

/// Who may append.
#[derive(Debug, Clone)]
pub(super) enum Guard {
    /// The owner of the lease with this fence.
    Lease(i64),
    /// Anybody while no other replica than this one has a lease.
    Free { replica: String },
    /// The import that a hidden session belongs to.
    Hidden,
}

/// Whoever appends to a file has locked the session beside it.
impl Default for Guard {
    fn default() -> Self {
        Self::Free {
            replica: String::new(),
        }
    }
}

/// A batch that is to be appended.
pub(super) struct NewEvents {
    pub events: Batch,
    pub guard: Guard,
    /// Where the log is remembered to end.
    pub known: Option<End>,
}

/// Appends events; gives the end of the log then.
pub(super) async fn append(tx: &mut Tx<'_>, new: &NewEvents) -> Result<Option<End>, Failure> {
    let Some((session, _)) = target_of(&new.events)? else {
        return Ok(None);
    };
    let bodies = bodies_of(&new.events)?;
    let mut rows = Rows::of(session, &new.events, bodies.iter().map(String::as_str))?;
    complete_grants(tx, &mut rows).await?;
    let end = if tx.is_sqlite() {
        let end = sqlite_end(tx, session, &new.guard).await?;
        if rows.events.first().map(|event| event.seq.unsigned_abs()) != Some(end.seq + 1) {
            return Err(conflict(session).into());
        }
        let hashes = rows.hashes_after(&end.hash);
        write(tx, &rows, hashes.iter().map(|hash| &hash[..])).await?
    } else {
        send(tx, &rows, new).await?
    };
    Ok(Some(end))
}

/// Adds rows to the log of a hidden session, as they were stored elsewhere.
pub(crate) async fn take_over(tx: &mut Tx<'_>, rows: &[LogRow]) -> Result<(), Failure> {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let session = &first.session;
    let end = if tx.is_sqlite() {
        sqlite_end(tx, session, &Guard::Hidden).await?
    } else {
        let hash = previous_hash(tx, session, first.seq).await?;
        let seq = first.seq.saturating_sub(1);
        End { seq, hash }
    };
    let events = events_of(rows, &end)?;
    let bodies = rows.iter().map(|row| &*row.body);
    let mut new = Rows::of(session, &events, bodies)?;
    complete_grants(tx, &mut new).await?;
    let hashes: Vec<&[u8]> = rows.iter().map(|row| &row.hash[..]).collect();
    if tx.is_sqlite() {
        write(tx, &new, hashes.into_iter()).await?;
        return Ok(());
    }
    let found = send_once(tx, &new, &end.hash, &hashes, &Guard::Hidden).await?;
    if found.is_stored(tx, &hashes) {
        return Ok(());
    }
    Err(not_found(session).into())
}

/// The end of a log that takes events.
async fn sqlite_end(tx: &mut Tx<'_>, session: &SessionId, guard: &Guard) -> Result<End, Failure> {
    let check = match guard {
        Guard::Hidden => HIDDEN_USER,
        _ => IS_VISIBLE,
    };
    let exists = tx.query_opt(check, values![session], |_| Ok(())).await?;
    exists.ok_or_else(|| not_found(session))?;
    let end = tx.query_opt(LOG_END, values![session], end_of).await?;
    Ok(end.unwrap_or_default())
}

pub(super) fn end_of(row: Row<'_>) -> Result<End, Failure> {
    Ok(End {
        seq: row.get(0)?,
        hash: row.get(1)?,
    })
}

async fn write<'h>(
    tx: &mut Tx<'_>,
    rows: &Rows<'_>,
    hashes: impl Iterator<Item = &'h [u8]> + Send,
) -> Result<End, Failure> {
    let mut last = None;
    for (event, hash) in rows.events.iter().zip(hashes) {
        let values = values![
            event.session,
            event.seq,
            event.turn,
            event.frame,
            event.time,
            event.body,
            event.author,
            hash
        ];
        tx.execute(INSERT_EVENT, values).await?;
        last = Some(hash);
    }
    apply(tx, rows.session, &rows.changes).await?;
    Ok(rows.end(last))
}

/// Completes what an answer for later calls leaves of the request that it answers.
async fn complete_grants(tx: &mut Tx<'_>, rows: &mut Rows<'_>) -> Result<(), Failure> {
    let granted = &mut rows.changes.granted;
    if granted.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = granted.iter().map(|row| row.id.0).collect();
    let values = values![rows.session, ids];
    let requests = tx.query(REQUESTS, values, |row| {
        Ok((row.get::<String>(0)?, row.get::<String>(1)?))
    });
    for (id, request) in requests.await? {
        let request = serde_json::from_str(&request);
        let request = request.map_err(|error| damaged(rows.session, 0, &error))?;
        if let Some(row) = granted.iter_mut().find(|row| row.id.0 == id) {
            row.request = without_arguments(request)?;
        }
    }
    Ok(())
}

/// Sends the statement until it was carried out, or is refused.
async fn send(tx: &mut Tx<'_>, rows: &Rows<'_>, new: &NewEvents) -> Result<End, Failure> {
    let first_seq = rows.first_seq.unsigned_abs();
    // After a lost answer the log may end with these very events.
    let mut known = new.known.as_ref().filter(|_| !tx.is_repeated());
    for _ in 0..ATTEMPTS {
        let previous = match known.take() {
            Some(end) => end.hash.clone(),
            None => previous_hash(tx, rows.session, first_seq).await?,
        };
        let hashes = rows.hashes_after(&previous);
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
        match send_once(tx, rows, &previous, &hashes, &new.guard).await {
            Ok(found) if found.is_stored(tx, &hashes) => {
                return Ok(rows.end(hashes.last().copied()));
            }
            // If nothing refuses it, the log ended otherwise than remembered.
            Ok(found) => found.refusal(rows.session, first_seq)?,
            // Another append was faster, between the look at the end and the writing.
            Err(failure) if failure.broken_rule() == Some("events_pkey") => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(conflict(rows.session).into())
}

/// The hash of the event before this one; empty if there is none.
async fn previous_hash(tx: &mut Tx<'_>, session: &SessionId, seq: u64) -> Result<Vec<u8>, Failure> {
    let before = seq.saturating_sub(1);
    let values = values![session, before];
    let hash = tx
        .query_opt(PREVIOUS_HASH, values, |row| row.get(0))
        .await?;
    Ok(hash.unwrap_or_default())
}

async fn send_once(
    tx: &mut Tx<'_>,
    rows: &Rows<'_>,
    previous: &[u8],
    hashes: &[&[u8]],
    guard: &Guard,
) -> Result<Found, Failure> {
    let (append, owner): (Append, Value<'_>) = match guard {
        Guard::Lease(fence) => (APPEND_LEASED, Value::Int(*fence)),
        Guard::Free { replica } => (APPEND_FREE, Value::Text(replica)),
        Guard::Hidden => (APPEND_HIDDEN, Value::Int(0)),
    };
    let events = &rows.events;
    let mut values = vec![
        Value::Text(rows.session.as_str()),
        owner,
        Value::Int(rows.first_seq),
        Value::Bytes(previous),
        Value::Texts(events.iter().map(|event| event.turn).collect()),
        Value::Texts(events.iter().map(|event| event.frame).collect()),
        Value::Texts(events.iter().map(|event| event.author).collect()),
        Value::Ints(events.iter().map(|event| event.time).collect()),
        Value::Texts(events.iter().map(|event| event.body).collect()),
        Value::Blobs(hashes.to_vec()),
    ];
    let changes;
    let statement = if rows.changes.is_empty() {
        append.log_only
    } else {
        changes = serde_json::to_string(&rows.changes)
            .map_err(|error| Failure::other(format!("rows cannot be written: {error}")))?;
        values.push(Value::Text(&changes));
        append.with_changes
    };
    let found = tx.query_opt(statement, &values, Found::of).await?;
    found.ok_or_else(|| Failure::other("an append was not answered"))
}

/// What an append met in PostgreSQL.
struct Found {
    has_session: bool,
    is_allowed: bool,
    last_seq: u64,
    written: usize,
    /// The hash of the event that stands where the last one of the batch belongs.
    hash: Option<Vec<u8>>,
}

impl Found {
    fn of(row: Row<'_>) -> Result<Self, Failure> {
        Ok(Self {
            has_session: row.get(0)?,
            is_allowed: row.get(1)?,
            last_seq: row.get::<Option<u64>>(2)?.unwrap_or(0),
            written: row.get(3)?,
            hash: row.get(4)?,
        })
    }

    /// Whether the batch is there now: it was written, or an earlier try was carried out and its answer was lost.
    fn is_stored(&self, tx: &Tx<'_>, hashes: &[&[u8]]) -> bool {
        let is_there = self.hash.as_deref() == hashes.last().copied();
        self.written == hashes.len() || tx.is_repeated() && self.hash.is_some() && is_there
    }

    /// Why nothing was written; nothing if the end only was another than remembered.
    fn refusal(&self, session: &SessionId, first_seq: u64) -> Result<(), StoreError> {
        if !self.has_session {
            Err(not_found(session))
        } else if !self.is_allowed {
            Err(StoreError::Lost {
                id: session.clone(),
            })
        } else if self.last_seq.checked_add(1) != Some(first_seq) {
            Err(conflict(session))
        } else {
            Ok(())
        }
    }
}

fn conflict(session: &SessionId) -> StoreError {
    StoreError::Conflict {
        id: session.clone(),
    }
}

pub(super) fn not_found(session: &SessionId) -> StoreError {
    StoreError::NotFound {
        id: session.clone(),
    }
}
