//! Reading sessions and logs as they are stored.

use super::{LogRow, PAGE_BYTES, SessionArchive, SessionRecord, is_hidden};
use crate::Answer;
use crate::engine::{Failure, Row, Sql, Tx, sql, values};
use crate::store::Store;
use lango_core::{Page, SessionId, StoreError, UserId};

impl SessionArchive for Store {
    fn session_ids(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Answer<'_, Vec<SessionId>> {
        ids(self, user.to_string(), after, limit)
    }

    fn session_record(&self, session: &SessionId) -> Answer<'_, SessionRecord> {
        self.engine.read(session.clone(), |tx, session| {
            Box::pin(async move {
                let values = values![session];
                let found = tx.query_opt(RECORD, values, |row| {
                    record(row, session).map_err(|failure| failure.in_event(session, 0))
                });
                let id = session.clone();
                found
                    .await?
                    .ok_or_else(|| StoreError::NotFound { id }.into())
            })
        })
    }

    fn log_rows(&self, session: &SessionId, page: Page) -> Answer<'_, Vec<LogRow>> {
        let rows = self
            .engine
            .read((session.clone(), page), |tx, (session, page)| {
                Box::pin(rows(tx, session, *page))
            });
        Box::pin(async move {
            let rows = rows.await?.into_iter();
            Ok(rows.map(|row| row.with_author(&self.root_agent)).collect())
        })
    }
}

/// Lists the sessions whose user is stored as `user`, hidden or not.
pub(super) fn ids<'a>(
    store: &'a Store,
    user: String,
    after: Option<&SessionId>,
    limit: usize,
) -> Answer<'a, Vec<SessionId>> {
    let after = after.map_or_else(String::new, ToString::to_string);
    let given = (user, after, limit);
    store.engine.read(given, |tx, (user, after, limit)| {
        Box::pin(async move {
            let values = values![user, after, limit];
            let ids = tx.query(IDS, values, |row| Ok(SessionId::from(&*row.lossy(0)?)));
            let mut ids = ids.await?;
            // An id in SQLite whose bytes are not text is ordered by its bytes, not by the text that is shown for it. The next
            // page must not show it again.
            ids.retain(|id| id.as_str() > after.as_str());
            Ok(ids)
        })
    })
}

fn record(row: Row<'_>, session: &SessionId) -> Result<SessionRecord, Failure> {
    Ok(SessionRecord {
        id: session.clone(),
        user: row.get(0)?,
        title: row.get(1)?,
        created: row.get(2)?,
        updated: row.get(3)?,
        events: row.get::<Option<u64>>(4)?.unwrap_or_default(),
        hash: row.get::<Option<Vec<u8>>>(5)?.unwrap_or_default(),
    })
}

async fn rows(tx: &mut Tx<'_>, session: &SessionId, page: Page) -> Result<Vec<LogRow>, Failure> {
    let values = values![session, page.from, page.limit];
    let rows = tx.query_page(ROWS, values, PAGE_BYTES, |row| {
        let seq = row.get(0)?;
        let row = log_row(row, session, seq).map_err(|failure| failure.in_event(session, seq))?;
        let size = row.body.len();
        Ok((row, size))
    });
    rows.await
}

fn log_row(row: Row<'_>, session: &SessionId, seq: u64) -> Result<LogRow, Failure> {
    Ok(LogRow {
        session: session.clone(),
        seq,
        turn: row.get(1)?,
        frame: row.get(2)?,
        author: row.get(3)?,
        time: row.get(4)?,
        body: row.get(5)?,
        hash: row.get(6)?,
    })
}

pub(super) const IDS: Sql =
    sql!(r#"SELECT id FROM sessions WHERE "user" = $1 AND id > $2 ORDER BY id LIMIT $3"#);

/// A session that is not hidden, and the end of its log.
pub(super) const RECORD: Sql = sql!(concat!(
    r#"SELECT "user", title, created, updated, log_end.seq, log_end.hash
       FROM sessions
       LEFT JOIN events AS log_end ON log_end.session = sessions.id
            AND log_end.seq = (SELECT max(seq) FROM events WHERE events.session = sessions.id)
      WHERE id = $1 AND NOT "#,
    is_hidden!()
));

/// Rows of a log with their hashes.
pub(super) const ROWS: Sql = sql!(
    sqlite: "SELECT seq, turn, frame, author, time, body, hash FROM events
     WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
    postgres: "SELECT seq, turn, frame, author, time, body, hash
       FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS bytes_before
               FROM (SELECT * FROM events WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT $3) AS page) AS page
      WHERE bytes_before < $4 ORDER BY seq"
);
