//! Appends events to a log and updates the tables that are derived from the events.
//!
//! SQLite writes row by row in the writer's transaction. PostgreSQL gets one statement, which writes only if the guard allows it
//! and the log ends where the batch expects, and reports what it found. If the reply is lost, the same rows are sent again; their
//! hashes show whether they were already stored.

use super::apply::apply;
use super::batch::{EventRows, LogEnd, session_of};
use super::statements::*;
use crate::archive::{HIDDEN_USER, LogRow};
use crate::backend::{BackendError, Result, Row, ToValue as _, Tx, Value, values};
use crate::chain::{LogVerifier, StoredEvent};
use crate::decode::{damaged, not_found};
use crate::projection::without_arguments;
use crate::tasks::{self, TaskWrite, TaskWriteOutcome};
use lango_core::{Event, EventBatch, SessionId, StoreError, TaskInsertOutcome, TaskPutOutcome};
use std::borrow::Cow;

/// Maximum number of attempts for an append whose cached log end is out of date, or that loses a race against another
/// append.
const ATTEMPTS: usize = 4;

/// The condition under which a caller may append to a session.
#[derive(Debug, Clone)]
pub(super) enum Guard {
    /// The caller must own the lease with this fencing token.
    Lease(i64),
    /// Any caller may append, as long as no other replica has the lease.
    Free { replica: String },
    /// The caller must be the import that created this hidden session.
    Hidden,
}

/// The guard for SQLite, where the caller has locked the session.
impl Default for Guard {
    fn default() -> Self {
        Self::Free {
            replica: String::new(),
        }
    }
}

pub(super) struct NewEvents {
    pub events: EventBatch,
    pub guard: Guard,
    /// The cached end of the log.
    pub known: Option<LogEnd>,
    /// A write of the task that these events belong to. The write that ends the task also releases the lease.
    pub task: Option<TaskWrite>,
}

#[derive(Default)]
pub(super) struct AppendOutcome {
    /// The new end of the log. `None` if nothing was stored.
    pub end: Option<LogEnd>,
    pub task: Option<TaskWriteOutcome>,
}

pub(super) async fn append(tx: &mut Tx<'_>, new: &NewEvents) -> Result<AppendOutcome> {
    let Some(session) = session_of(&new.events)? else {
        return Ok(AppendOutcome::default());
    };
    let body = |event: &Event| {
        serde_json::to_string(&event.body).map_err(|error| {
            BackendError::other(format!("event {} cannot be written: {error}", event.seq))
        })
    };
    let bodies: Vec<String> = new.events.iter().map(body).collect::<Result<_, _>>()?;
    let mut rows = EventRows::new(session, &new.events, bodies.iter().map(String::as_str))?;
    complete_grants(tx, &mut rows).await?;
    if !tx.is_sqlite() {
        return send(tx, &rows, new).await;
    }
    let mut written = None;
    if let Some(TaskWrite::Insert { task, message }) = &new.task {
        let opened = tasks::open(tx, task, message).await?;
        let is_known = opened != TaskInsertOutcome::New;
        written = Some(TaskWriteOutcome::Inserted(opened));
        if is_known {
            return Ok(AppendOutcome {
                end: None,
                task: written,
            });
        }
    }
    let end = sqlite_end(tx, session, &new.guard).await?;
    if rows.first_seq.unsigned_abs() != end.seq + 1 {
        return Err(conflict(session).into());
    }
    let end = write(tx, &rows, &rows.hashes_after(&end.hash)).await?;
    if let Some(TaskWrite::Put(task)) = &new.task {
        written = Some(TaskWriteOutcome::Put(tasks::put(tx, task).await?));
    }
    Ok(AppendOutcome {
        end: Some(end),
        task: written,
    })
}

/// Adds exported rows to the log of a hidden session.
pub(crate) async fn import(tx: &mut Tx<'_>, rows: &[LogRow]) -> Result<()> {
    let Some(first) = rows.first() else {
        return Ok(());
    };
    let session = &first.session;
    let end = if tx.is_sqlite() {
        sqlite_end(tx, session, &Guard::Hidden).await?
    } else {
        LogEnd {
            seq: first.seq.saturating_sub(1),
            hash: previous_hash(tx, session, first.seq).await?,
        }
    };
    let mut chain = LogVerifier::after(session, end.seq, end.hash.clone());
    let events = rows.iter().map(|row| Ok(row.event(chain.verify(row)?)));
    let events: Vec<Event> = events.collect::<Result<_, StoreError>>()?;
    let mut new = EventRows::new(session, &events, rows.iter().map(|row| &*row.body))?;
    complete_grants(tx, &mut new).await?;
    let hashes: Vec<&[u8]> = rows.iter().map(|row| &row.hash[..]).collect();
    if tx.is_sqlite() {
        return write(tx, &new, &hashes).await.map(drop);
    }
    let reply = send_once(tx, &new, (&end.hash, &hashes), &Guard::Hidden, None).await?;
    if reply.is_stored(tx, &hashes) {
        return Ok(());
    }
    Err(not_found(session).into())
}

/// Returns the end of a log. Fails if the guard does not let the caller append to it.
async fn sqlite_end(tx: &mut Tx<'_>, session: &SessionId, guard: &Guard) -> Result<LogEnd> {
    let check = match guard {
        Guard::Hidden => HIDDEN_USER,
        _ => IS_VISIBLE,
    };
    if !tx.exists(check, values![session]).await? {
        return Err(not_found(session).into());
    }
    log_end(tx, session).await
}

/// Returns the end of a log, or the default if the log is empty.
pub(crate) async fn log_end(tx: &mut Tx<'_>, session: &SessionId) -> Result<LogEnd> {
    let values = values![session];
    let end = tx.query_opt(LOG_END, values, |row| {
        let (seq, hash) = (row.get(0)?, row.get(1)?);
        Ok(LogEnd { seq, hash })
    });
    Ok(end.await?.unwrap_or_default())
}

async fn write<H: AsRef<[u8]> + Sync>(
    tx: &mut Tx<'_>,
    rows: &EventRows<'_>,
    hashes: &[H],
) -> Result<LogEnd> {
    for (event, hash) in rows.events.iter().zip(hashes) {
        let hash = hash.as_ref();
        let values = values![
            event.session,
            event.seq,
            event.turn,
            event.frame,
            event.time,
            event.body,
            event.author,
            hash,
        ];
        tx.execute(INSERT_EVENT, values).await?;
    }
    apply(tx, rows.session, &rows.changes).await?;
    Ok(rows.end(hashes.last().map(AsRef::as_ref)))
}

/// Copies into each grant the stored request that it answers.
async fn complete_grants(tx: &mut Tx<'_>, rows: &mut EventRows<'_>) -> Result<()> {
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
        if let Some(row) = granted.iter_mut().find(|row| row.id.0 == id) {
            let request = without_arguments(&request);
            row.request = request.map_err(|error| damaged(rows.session, 0, error))?;
        }
    }
    Ok(())
}

/// Repeats the statement until the batch is stored or refused.
async fn send(tx: &mut Tx<'_>, rows: &EventRows<'_>, new: &NewEvents) -> Result<AppendOutcome> {
    let first_seq = rows.first_seq.unsigned_abs();
    // After a lost reply the log may already end with these events.
    let mut known = new.known.as_ref().filter(|_| !tx.is_repeated());
    let mut task = new.task.as_ref();
    for _ in 0..ATTEMPTS {
        let previous = match known.take() {
            Some(end) => end.hash.clone(),
            None => previous_hash(tx, rows.session, first_seq).await?,
        };
        let hashes = rows.hashes_after(&previous);
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
        match send_once(tx, rows, (&previous, &hashes), &new.guard, task).await {
            Ok(reply) if reply.is_stored(tx, &hashes) => {
                return Ok(AppendOutcome {
                    end: Some(rows.end(hashes.last().copied())),
                    task: task_written(tx, new.task.as_ref(), &reply).await?,
                });
            }
            // Otherwise the cached end was out of date, or an earlier delivery of the message has opened a task.
            Ok(reply) => reply.refusal(rows.session, first_seq)?,
            // Another append won the race.
            Err(failure) if failure.violated_constraint() == Some("events_pkey") => {}
            Err(failure) => return Err(failure),
        }
        if let Some(TaskWrite::Insert { task: new, message }) = task {
            match tasks::opened_by(tx, new, message).await? {
                // An earlier attempt stored the task without the events.
                Some(TaskInsertOutcome::New) => task = None,
                Some(known) => {
                    return Ok(AppendOutcome {
                        end: None,
                        task: Some(TaskWriteOutcome::Inserted(known)),
                    });
                }
                None => {}
            }
        }
    }
    Err(conflict(rows.session).into())
}

/// Returns the result of writing a task whose events are stored.
async fn task_written(
    tx: &mut Tx<'_>,
    task: Option<&TaskWrite>,
    reply: &AppendReply,
) -> Result<Option<TaskWriteOutcome>> {
    Ok(match task {
        None => None,
        Some(TaskWrite::Insert { .. }) => Some(TaskWriteOutcome::Inserted(TaskInsertOutcome::New)),
        Some(TaskWrite::Put(_)) if reply.tasks > 0 => {
            Some(TaskWriteOutcome::Put(TaskPutOutcome::Stored))
        }
        Some(TaskWrite::Put(task)) => {
            Some(TaskWriteOutcome::Put(tasks::not_replaced(tx, task).await?))
        }
    })
}

/// Returns the hash of the event before `seq`, or an empty one if there is none.
async fn previous_hash(tx: &mut Tx<'_>, session: &SessionId, seq: u64) -> Result<Vec<u8>> {
    let before = seq.saturating_sub(1);
    let hash = tx.value(PREVIOUS_HASH, values![session, before]).await?;
    Ok(hash.unwrap_or_default())
}

async fn send_once<'a>(
    tx: &mut Tx<'_>,
    rows: &EventRows<'a>,
    (previous, hashes): (&[u8], &[&[u8]]),
    guard: &Guard,
    task: Option<&TaskWrite>,
) -> Result<AppendReply> {
    let (append, owner): (Append, Value<'_>) = match guard {
        Guard::Lease(fence) => (APPEND_LEASED, Value::Int(*fence)),
        Guard::Free { replica } => (APPEND_FREE, replica.to_value()),
        Guard::Hidden => (APPEND_HIDDEN, Value::Int(0)),
    };
    let events = &rows.events;
    let texts = |text: fn(&StoredEvent<'a>) -> &'a str| {
        let texts = events.iter().map(|event| Cow::Borrowed(text(event)));
        Value::Texts(texts.collect())
    };
    let mut values = vec![
        rows.session.to_value(),
        owner,
        Value::Int(rows.first_seq),
        previous.to_value(),
        texts(|event| event.turn),
        texts(|event| event.frame),
        texts(|event| event.author),
        Value::Ints(events.iter().map(|event| event.time).collect()),
        texts(|event| event.body),
        Value::Blobs(hashes.iter().map(|hash| Cow::Borrowed(*hash)).collect()),
    ];
    let changes;
    let statement = if rows.changes.is_empty() && task.is_none() {
        append.log_only
    } else {
        changes = serde_json::to_string(&rows.changes)
            .map_err(|error| BackendError::other(format!("rows cannot be written: {error}")))?;
        values.push(changes.to_value());
        values.extend(task.iter().flat_map(|task| task.values()));
        let forms = match task {
            None => [append.with_turn, append.with_changes],
            Some(_) if !matches!(guard, Guard::Lease(_)) => {
                return Err(BackendError::other("a task and its events need a lease"));
            }
            Some(TaskWrite::Insert { .. }) => APPEND_FIRST,
            Some(TaskWrite::Put(_)) => APPEND_LAST,
        };
        let [with_turn, with_changes] = forms;
        if rows.changes.changes_only_turns() {
            with_turn
        } else {
            with_changes
        }
    };
    let reply = tx
        .query_opt(statement, &values, AppendReply::from_row)
        .await?;
    reply.ok_or_else(|| BackendError::other("PostgreSQL returned no row for an append"))
}

/// The reply of PostgreSQL to the statement that appends.
struct AppendReply {
    has_session: bool,
    is_allowed: bool,
    last_seq: u64,
    written: usize,
    /// The hash stored at the batch's last `seq`, by this append or an earlier one.
    hash: Option<Vec<u8>>,
    /// Number of tasks written.
    tasks: usize,
}

impl AppendReply {
    fn from_row(row: Row<'_>) -> Result<Self> {
        Ok(Self {
            has_session: row.get(0)?,
            is_allowed: row.get(1)?,
            last_seq: row.get::<Option<u64>>(2)?.unwrap_or(0),
            written: row.get(3)?,
            hash: row.get(4)?,
            tasks: row.get(5)?,
        })
    }

    /// Returns whether the batch is stored: by this attempt, or by an earlier one whose reply was lost.
    fn is_stored(&self, tx: &Tx<'_>, hashes: &[&[u8]]) -> bool {
        let is_same = self.hash.as_deref() == hashes.last().copied();
        self.written == hashes.len() || tx.is_repeated() && self.hash.is_some() && is_same
    }

    /// Returns the error of a refused append, or `Ok` if only the cached end of the log was out of date.
    fn refusal(&self, session: &SessionId, first_seq: u64) -> Result<(), StoreError> {
        if !self.has_session {
            Err(not_found(session))
        } else if !self.is_allowed {
            Err(StoreError::LeaseLost {
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
    let id = session.clone();
    StoreError::Conflict { id }
}
