//! Sessions that come from elsewhere: hidden until their log is whole.

use super::statements::{DELETE_GRANTS, HIDDEN_USER, SHOW, SHOW_APPROVALS};
use crate::archive::{Intake, LogRow, SessionRecord, hidden_user, must_be_kept};
use crate::postgres::PostgresEngine;
use crate::postgres::asking::{execute, row};
use crate::postgres::effects::stored;
use crate::postgres::failure::Failure;
use crate::postgres::statements::LOG_END;
use crate::postgres::text::{Words, words};
use deadpool_postgres::Transaction;
use lango_core::{BoxFuture, NewSession, StoreError, UserId};

impl Intake for PostgresEngine {
    fn begin(&self, session: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            must_be_kept(&session)?;
            let user = UserId::new(hidden_user(&session.user));
            self.make(NewSession { user, ..session }).await
        })
    }

    fn add(&self, rows: Vec<LogRow>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.appender().take_over(rows))
    }

    fn finish(&self, session: SessionRecord) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.change(session, |transaction, session| {
            Box::pin(finish(transaction, session))
        })
    }
}

async fn finish(transaction: &Transaction<'_>, session: &SessionRecord) -> Result<u64, Failure> {
    let id = Words(session.id.as_str());
    let hidden = row(transaction, HIDDEN_USER, &[&id]).await?;
    let hidden = hidden.as_ref().map(|row| words(row, 0)).transpose()?;
    if hidden.as_deref() != Some(session.user.as_str()) {
        return Err(Failure::Said(StoreError::NotFound {
            id: session.id.clone(),
        }));
    }
    let end = row(transaction, LOG_END, &[&id]).await?;
    let (last, hash): (i64, Vec<u8>) = match &end {
        Some(end) => (end.try_get(0)?, end.try_get(1)?),
        None => Default::default(),
    };
    if last.unsigned_abs() != session.events || hash != session.hash {
        return Err(Failure::Said(StoreError::Damaged {
            id: session.id.clone(),
            seq: last.unsigned_abs(),
            detail: "it is not the last event that there should be".to_owned(),
        }));
    }
    let grants = execute(transaction, DELETE_GRANTS, &[&id]).await?;
    let (user, title) = (Words(session.user.as_str()), Words(&session.title));
    execute(transaction, SHOW_APPROVALS, &[&id, &user]).await?;
    let updated = stored(session.updated.0)?;
    execute(transaction, SHOW, &[&id, &user, &title, &updated]).await?;
    Ok(grants)
}
