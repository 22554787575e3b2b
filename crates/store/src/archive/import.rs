//! Import of sessions: hidden until their log is complete.

use super::{
    HIDDEN_USER, LogRow, SessionImport, SessionRecord, hidden_user, is_hidden, must_be_kept,
};
use crate::Answer;
use crate::engine::{Failure, Sql, Tx, sql, stored, values};
use crate::log::{self, statements::LOG_END};
use crate::store::Store;
use lango_core::{NewSession, StoreError, UserId};

impl SessionImport for Store {
    fn start_import(&self, session: NewSession) -> Answer<'_, ()> {
        Box::pin(async move {
            must_be_kept(&session)?;
            let user = UserId::new(hidden_user(&session.user));
            let hidden = NewSession { user, ..session };
            let created = self
                .engine
                .write_one(hidden, |tx, session| Box::pin(log::create(tx, session)));
            created.await
        })
    }

    fn import_rows(&self, rows: Vec<LogRow>) -> Answer<'_, ()> {
        self.engine
            .write_one(rows, |tx, rows| Box::pin(log::take_over(tx, rows)))
    }

    fn finish_import(&self, session: SessionRecord) -> Answer<'_, u64> {
        self.engine
            .write(session, |tx, session| Box::pin(finish(tx, session)))
    }
}

async fn finish(tx: &mut Tx<'_>, session: &SessionRecord) -> Result<u64, Failure> {
    let id = &session.id;
    let hidden: Option<String> = tx
        .query_opt(HIDDEN_USER, values![id], |row| row.get(0))
        .await?;
    if hidden.as_deref() != Some(session.user.as_str()) {
        return Err(StoreError::NotFound { id: id.clone() }.into());
    }
    let values = values![id];
    let end = tx.query_opt(LOG_END, values, |row| Ok((row.get(0)?, row.get(1)?)));
    let (seq, hash): (u64, Vec<u8>) = end.await?.unwrap_or_default();
    if seq != session.events || hash != session.hash {
        let (id, detail) = (id.clone(), "it is not the last event of the log".to_owned());
        return Err(StoreError::Damaged { id, seq, detail }.into());
    }
    let grants = tx.execute(DELETE_GRANTS, values![id]).await?;
    tx.execute(SHOW_APPROVALS, values![id, session.user])
        .await?;
    let updated = stored(session.updated.0)?;
    tx.execute(SHOW, values![id, session.user, session.title, updated])
        .await?;
    Ok(grants)
}

pub(super) const SHOW: Sql = sql!(concat!(
    r#"UPDATE sessions SET "user" = $2, title = $3, updated = $4 WHERE id = $1 AND "#,
    is_hidden!()
));
pub(super) const SHOW_APPROVALS: Sql =
    sql!(r#"UPDATE approvals SET "user" = $2 WHERE session = $1"#);
pub(super) const DELETE_GRANTS: Sql =
    sql!("DELETE FROM approvals WHERE session = $1 AND pattern IS NOT NULL");
