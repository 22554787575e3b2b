//! Logs as they are stored, sessions that come from elsewhere, and sessions that are to be gone, in the file.

mod intake;
mod removing;
pub(crate) mod statements;

use super::SqliteEngine;
use super::connection::execute;
use super::failure::Failure;
use super::readers::Reader;
use super::rows::{bound, limit, lossy, unsigned};
use super::statements::LOG_END;
use crate::archive::{Archive, LogRow, PAGE_BYTES, SessionRecord};
use lango_core::{BoxFuture, Page, SessionId, StoreError, Text, Timestamp, UserId};
use rusqlite::{OptionalExtension as _, Row, params};
use statements::{IDS, RECORD, ROWS};

impl Archive for SqliteEngine {
    fn ids(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let user = user.to_string();
        let after = after.map_or_else(String::new, ToString::to_string);
        Box::pin(
            self.readers
                .read(move |reader| ids(reader, &user, &after, limit)),
        )
    }

    fn record(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        let session = session.clone();
        Box::pin(self.readers.read(move |reader| record(reader, &session)))
    }

    fn rows(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<LogRow>, StoreError>> {
        let session = session.clone();
        Box::pin(
            self.readers
                .read(move |reader| rows(reader, &session, page)),
        )
    }
}

fn ids(
    reader: Reader<'_>,
    user: &str,
    after: &str,
    most: usize,
) -> Result<Vec<SessionId>, Failure> {
    let mut statement = reader.connection.prepare_cached(IDS)?;
    let mut found = statement.query(params![user, after, limit(most)])?;
    let mut ids = Vec::new();
    while let Some(row) = found.next()? {
        // An id whose bytes are not text stands elsewhere in the order than the one that is shown for it; whoever goes on
        // after that one must not come by it again.
        let id = lossy(row, 0)?;
        if *id > *after {
            ids.push(SessionId::new(id));
        }
    }
    Ok(ids)
}

/// A session and the end of its log as of one moment.
fn record(reader: Reader<'_>, session: &SessionId) -> Result<SessionRecord, Failure> {
    execute(reader.connection, "BEGIN")?;
    let found = record_of_this_moment(reader, session);
    execute(reader.connection, "COMMIT")?;
    found
}

fn record_of_this_moment(
    reader: Reader<'_>,
    session: &SessionId,
) -> Result<SessionRecord, Failure> {
    let end = reader
        .connection
        .prepare_cached(LOG_END)?
        .query_row([session.as_str()], |row| {
            Ok((unsigned(row, 0)?, row.get(1)?))
        })
        .optional()?;
    let (events, hash) = end.unwrap_or_default();
    let found = reader
        .connection
        .prepare_cached(RECORD)?
        .query_row([session.as_str()], |row| {
            Ok(SessionRecord {
                id: session.clone(),
                user: UserId::new(row.get::<_, Text>(0)?),
                title: row.get(1)?,
                created: Timestamp(unsigned(row, 2)?),
                updated: Timestamp(unsigned(row, 3)?),
                events,
                hash,
            })
        })
        .optional()
        .map_err(|error| Failure::of_row(error, session, 0))?;
    found.ok_or_else(|| {
        StoreError::NotFound {
            id: session.clone(),
        }
        .into()
    })
}

fn rows(reader: Reader<'_>, session: &SessionId, page: Page) -> Result<Vec<LogRow>, Failure> {
    let mut statement = reader.connection.prepare_cached(ROWS)?;
    let values = params![session.as_str(), bound(page.from), limit(page.limit)];
    let mut found = statement.query(values)?;
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(row) = found.next()? {
        let row = log_row(row, session, reader)?;
        bytes += row.body.len();
        rows.push(row);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(rows)
}

fn log_row(row: &Row<'_>, session: &SessionId, reader: Reader<'_>) -> Result<LogRow, Failure> {
    let seq = unsigned(row, 0)?;
    let read = || {
        Ok(LogRow {
            session: session.clone(),
            seq,
            turn: row.get(1)?,
            frame: row.get(2)?,
            author: row.get(3)?,
            time: Timestamp(unsigned(row, 4)?),
            body: row.get(5)?,
            hash: row.get(6)?,
        })
    };
    let row = read().map_err(|error| Failure::of_row(error, session, seq))?;
    Ok(row.with_author(reader.root_agent))
}
