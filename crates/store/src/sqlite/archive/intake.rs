//! Sessions that come from elsewhere: hidden until their log is whole.

use super::statements::{DELETE_GRANTS, HIDDEN_USER, SHOW, SHOW_APPROVALS};
use crate::archive::{Intake, LogRow, SessionRecord, hidden_user, must_be_kept};
use crate::sqlite::SqliteEngine;
use crate::sqlite::failure::Failure;
use crate::sqlite::log;
use crate::sqlite::statements::LOG_END;
use lango_core::{BoxFuture, NewSession, StoreError, UserId};
use rusqlite::{Connection, OptionalExtension as _, params};

impl Intake for SqliteEngine {
    fn begin(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            must_be_kept(&session)?;
            let hidden = NewSession {
                user: UserId::new(hidden_user(&session.user)),
                ..session
            };
            self.writer
                .change(move |connection| log::create(connection, &hidden))
                .await
        })
    }

    fn add(&self, rows: Vec<LogRow>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(
            self.writer
                .change(move |connection| log::take_over(connection, &rows)),
        )
    }

    fn finish(&self, session: SessionRecord) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(
            self.writer
                .change(move |connection| finish(connection, &session)),
        )
    }
}

fn finish(connection: &Connection, session: &SessionRecord) -> Result<u64, Failure> {
    let id = session.id.as_str();
    let hidden: Option<String> = connection
        .prepare_cached(HIDDEN_USER)?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if hidden.as_deref() != Some(session.user.as_str()) {
        return Err(StoreError::NotFound {
            id: session.id.clone(),
        }
        .into());
    }
    let end: Option<(i64, Vec<u8>)> = connection
        .prepare_cached(LOG_END)?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (last, hash) = end.unwrap_or_default();
    if last.unsigned_abs() != session.events || hash != session.hash {
        return Err(StoreError::Damaged {
            id: session.id.clone(),
            seq: last.unsigned_abs(),
            detail: "it is not the last event that there should be".to_owned(),
        }
        .into());
    }
    let grants = connection.prepare_cached(DELETE_GRANTS)?.execute([id])?;
    let user = session.user.as_str();
    connection
        .prepare_cached(SHOW_APPROVALS)?
        .execute(params![id, user])?;
    let updated = i64::try_from(session.updated.0)
        .map_err(|_| Failure::other("the time of its last use is more than can be stored"))?;
    connection
        .prepare_cached(SHOW)?
        .execute(params![id, user, session.title, updated])?;
    Ok(grants as u64)
}
