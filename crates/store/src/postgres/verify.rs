//! Checks a log against its hashes.

use super::PostgresStore;
use super::rows::limit;
use super::statements::EVENTS;
use super::text::{Words, words};
use crate::chain::{Chain, StoredEvent};
use lango_core::{SessionId, StoreError};
use tokio_postgres::Row;

/// How many rows are looked at together.
const ROWS: usize = 1000;

impl PostgresStore {
    /// Recomputes the hashes of a session's log. Gives the number of events it holds, or [`StoreError::Damaged`] with
    /// the first one that is not what was once written.
    pub async fn verify(&self, session: &SessionId) -> Result<u64, StoreError> {
        self.must_exist(session).await?;
        let mut chain = Chain::default();
        let mut from = i64::MIN;
        loop {
            let values = (Words(session.as_str()), limit(ROWS));
            let rows = self
                .database
                .query(EVENTS, &[&values.0, &from, &values.1])
                .await?;
            let checked = self.values(&rows, |row| Ok(row.try_get::<_, i64>(0)?))?;
            for row in &rows {
                let link = link(row, session, &mut chain);
                link.map_err(|failure| self.database.said(failure))?;
            }
            match checked.last() {
                Some(last) if rows.len() == ROWS => from = last.saturating_add(1),
                _ => return Ok(chain.count()),
            }
        }
    }
}

fn link(row: &Row, session: &SessionId, chain: &mut Chain) -> Result<(), super::Failure> {
    let event = StoredEvent {
        session: session.as_str(),
        seq: row.try_get(0)?,
        turn: &words(row, 1)?,
        frame: &words(row, 2)?,
        author: &words(row, 3)?,
        time: row.try_get(4)?,
        body: &words(row, 5)?,
    };
    Ok(chain.check(&event, row.try_get(6)?)?)
}
