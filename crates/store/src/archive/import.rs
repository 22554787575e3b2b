//! Imports sessions. A session is hidden until its log is complete. The caller must have the lease of the session.

use super::{HIDDEN_USER, LogRow, SessionRecord, hidden_user, is_hidden};
use crate::StoreFuture;
use crate::backend::{Result, checked_i64, statements, values};
use crate::decode::{check_user, damaged, not_found};
use crate::log;
use crate::store::Store;
use lango_core::{NewSession, StoreError, UserId};

impl Store {
    /// Creates a hidden session. Fails with [`StoreError::Exists`] if the id is taken.
    pub async fn start_import(&self, session: NewSession) -> Result<(), StoreError> {
        check_user(&session.user, format_args!("session `{}`", session.id))?;
        let user = hidden_user(&session.user);
        let hidden = NewSession { user, ..session };
        let created = self
            .backend
            .write_autocommit(hidden, |tx, session| Box::pin(log::create(tx, session)));
        created.await
    }

    /// Adds rows to the log of a hidden session and updates the tables that are derived from them. Each row is verified as
    /// [`LogVerifier::verify`](crate::LogVerifier::verify) does.
    pub fn import_rows(&self, rows: Vec<LogRow>) -> StoreFuture<'_, ()> {
        self.backend
            .write_autocommit(rows, |tx, rows| Box::pin(log::import(tx, rows)))
    }

    /// Makes an imported session visible, with the record's title and time. Discards grants for later calls, because the log does
    /// not tell which of them were revoked, and returns their number.
    pub fn finish_import(&self, session: SessionRecord) -> StoreFuture<'_, u64> {
        self.backend.write(session, |tx, session| {
            Box::pin(async move {
                let id = &session.id;
                let hidden: Option<UserId> = tx.value(HIDDEN_USER, values![id]).await?;
                if hidden.as_ref() != Some(&session.user) {
                    return Err(not_found(id).into());
                }
                let end = log::log_end(tx, id).await?;
                if end.seq != session.events || end.hash != session.hash {
                    let detail = "it is not the last event of the log";
                    return Err(damaged(id, end.seq, detail).into());
                }
                let grants = tx.execute(DELETE_GRANTS, values![id]).await?;
                let values = values![id, session.user];
                tx.execute(SHOW_APPROVALS, values).await?;
                let updated = checked_i64(session.updated.0)?;
                let values = values![id, session.user, session.title, updated];
                tx.execute(SHOW, values).await?;
                Ok(grants)
            })
        })
    }
}

statements! {
    SHOW: concat!(
        r#"UPDATE sessions SET "user" = $2, title = $3, updated = $4 WHERE id = $1 AND "#,
        is_hidden!()
    );

    SHOW_APPROVALS: r#"UPDATE approvals SET "user" = $2 WHERE session = $1"#;

    DELETE_GRANTS: "DELETE FROM approvals WHERE session = $1 AND pattern IS NOT NULL";
}
