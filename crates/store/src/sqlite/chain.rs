//! Checks a log in the file against its hashes.

use super::failure::Failure;
use super::statements::{CHAIN, SESSION};
use crate::chain::{Chain, StoredEvent};
use lango_core::{SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension as _};

/// Checks the whole log of a session and gives the number of its events.
pub(super) fn verify(connection: &Connection, session: &SessionId) -> Result<u64, Failure> {
    let known = connection
        .prepare_cached(SESSION)?
        .query_row([session.as_str()], |_| Ok(()))
        .optional()?;
    known.ok_or_else(|| StoreError::NotFound {
        id: session.clone(),
    })?;

    let mut statement = connection.prepare_cached(CHAIN)?;
    let mut rows = statement.query([session.as_str()])?;
    let mut chain = Chain::default();
    while let Some(row) = rows.next()? {
        let text = |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str()?);
        let event = StoredEvent {
            session: session.as_str(),
            seq: row.get(0)?,
            turn: text(1)?,
            frame: text(2)?,
            author: text(3)?,
            time: row.get(4)?,
            body: text(5)?,
        };
        let hash = row.get_ref(6)?.as_blob().map_err(rusqlite::Error::from)?;
        chain.check(&event, hash)?;
    }
    Ok(chain.count())
}
