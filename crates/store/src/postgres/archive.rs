//! Logs as they are stored, sessions that come from elsewhere, and sessions that are to be gone, in PostgreSQL.

mod intake;
mod removing;
pub(super) mod statements;

use super::PostgresEngine;
use super::database::Values;
use super::failure::Failure;
use super::rows::{bound, limit, text, unsigned};
use super::text::{Words, words};
use crate::archive::{Archive, LogRow, PAGE_BYTES, SessionRecord};
use lango_core::{BoxFuture, Page, SessionId, StoreError, Timestamp, UserId};
use statements::{IDS, RECORD, ROWS};
use tokio_postgres::Row;

impl PostgresEngine {
    async fn ids_of(
        &self,
        user: &str,
        after: &str,
        most: usize,
    ) -> Result<Vec<SessionId>, StoreError> {
        let values: Values<'_> = &[&Words(user), &Words(after), &limit(most)];
        let rows = self.database.query(IDS, values).await?;
        self.values(&rows, |row| Ok(SessionId::new(text(row, 0)?)))
    }
}

impl Archive for PostgresEngine {
    fn ids(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        let user = user.clone();
        let after = after.map_or_else(String::new, ToString::to_string);
        Box::pin(async move { self.ids_of(user.as_str(), &after, limit).await })
    }

    fn record(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let id = Words(session.as_str());
            let rows = self.database.query(RECORD, &[&id]).await?;
            let found = self.values(&rows, |row| record(row, &session))?.pop();
            found.ok_or(StoreError::NotFound { id: session })
        })
    }

    fn rows(
        &self,
        session: &SessionId,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<LogRow>, StoreError>> {
        let session = session.clone();
        Box::pin(async move {
            let (id, from) = (Words(session.as_str()), bound(page.from));
            let values: Values<'_> = &[&id, &from, &limit(page.limit), &limit(PAGE_BYTES)];
            let rows = self.database.query(ROWS, values).await?;
            let row = |row: &Row| Ok(log_row(row, &session)?.with_author(&self.root_agent));
            self.values(&rows, row)
        })
    }
}

fn record(row: &Row, session: &SessionId) -> Result<SessionRecord, Failure> {
    let last: Option<i64> = row.try_get(4)?;
    Ok(SessionRecord {
        id: session.clone(),
        user: UserId::new(text(row, 0)?),
        title: words(row, 1)?.into_owned(),
        created: Timestamp(unsigned(row, 2)?),
        updated: Timestamp(unsigned(row, 3)?),
        events: last.unwrap_or(0).unsigned_abs(),
        hash: row.try_get::<_, Option<Vec<u8>>>(5)?.unwrap_or_default(),
    })
}

fn log_row(row: &Row, session: &SessionId) -> Result<LogRow, Failure> {
    Ok(LogRow {
        session: session.clone(),
        seq: unsigned(row, 0)?,
        turn: text(row, 1)?,
        frame: text(row, 2)?,
        author: text(row, 3)?,
        time: Timestamp(unsigned(row, 4)?),
        body: words(row, 5)?.into_owned(),
        hash: row.try_get(6)?,
    })
}
