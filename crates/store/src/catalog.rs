//! The lists of sessions and approvals that a user sees.

use crate::Answer;
use crate::approvals::{self, APPROVALS, REVOKE};
use crate::archive::is_hidden;
use crate::engine::{Engine, Result, Row, records, statements, values};
use crate::store::Store;
use lango_core::{
    ApprovalId, Approvals, SessionCatalog, SessionId, SessionSummary, StoreError, UnfinishedTurn,
    UserId,
};

impl SessionCatalog for Store {
    fn list(&self, user: &UserId, limit: usize) -> Answer<'_, Vec<SessionSummary>> {
        self.engine.query(SESSIONS, values![user, limit], summary)
    }

    fn find(&self, user: &UserId, prefix: &str, limit: usize) -> Answer<'_, Vec<SessionSummary>> {
        let values = values![user, prefix, limit];
        self.engine.query(SESSIONS_WITH_PREFIX, values, summary)
    }

    fn approvals(&self, user: &UserId) -> Answer<'_, Approvals> {
        self.engine.read(user.clone(), |tx, user| {
            Box::pin(async move { approvals::read(tx, APPROVALS, values![user]).await })
        })
    }

    fn unfinished(
        &self,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Answer<'_, Vec<UnfinishedTurn>> {
        let after = after.map_or("", SessionId::as_str);
        let replica = match &self.engine {
            Engine::Sqlite(_) => "",
            Engine::Postgres(postgres) => postgres.replica(),
        };
        let values = values![after, limit, replica];
        self.engine.query(UNFINISHED, values, |row| row.read())
    }

    fn revoke(&self, user: &UserId, grant: &ApprovalId) -> Answer<'_, ()> {
        let given = (user.clone(), grant.clone());
        self.engine.write_one(given, |tx, (user, id)| {
            Box::pin(async move {
                if tx.execute(REVOKE, values![user, id]).await? == 0 && !tx.is_repeated() {
                    return Err(StoreError::NotGranted { id: id.clone() }.into());
                }
                Ok(())
            })
        })
    }
}

fn summary(row: Row<'_>) -> Result<SessionSummary> {
    Ok(SessionSummary {
        // One whose bytes are not text must not hide the others.
        id: SessionId::new(row.lossy(0)?),
        user: UserId::new(row.lossy(1)?),
        title: row.lossy(2)?.into_owned(),
        created: row.get(3)?,
        updated: row.get(4)?,
        turns: row.get(5)?,
    })
}

records! {
    UnfinishedTurn { session, user, turn, is_waiting }
}

/// Selects what [`summary`] reads.
macro_rules! summaries {
    ($rest:literal) => {
        concat!(
            r#"SELECT id, "user", title, created, updated,
            (SELECT coalesce(max(ordinal) + 1, 0) FROM turns WHERE turns.session = sessions.id)
       FROM sessions WHERE "user" = $1"#,
            $rest
        )
    };
}

statements! {
    SESSIONS: summaries!(" ORDER BY updated DESC, id LIMIT $2");

    /// Sessions in a range of ids: from a prefix to the greatest id that starts with it.
    SESSIONS_WITH_PREFIX: summaries!(" AND id >= $2 AND id <= $2 || /*sqlite char(1114111)*/ /*postgres chr(1114111)*/ ORDER BY id LIMIT $3");

    /// Unfinished turns in sessions after one, without those that another replica than `$3` has leased.
    UNFINISHED: concat!(
        r#"SELECT turns.session, sessions."user", turns.turn,
            EXISTS (SELECT 1 FROM approvals
                     WHERE approvals.session = turns.session AND approvals.turn = turns.turn
                       AND approvals.pattern IS NULL)
       FROM turns JOIN sessions ON sessions.id = turns.session
      WHERE turns.finished = 0 AND turns.session > $1 AND $3::text IS NOT NULL AND NOT ("#,
        is_hidden!(),
        r#") /*postgres AND NOT EXISTS (SELECT FROM holds
                         WHERE holds.session = turns.session AND holds.until > clock_timestamp()
                           AND holds.holder <> $3)*/
      ORDER BY turns.session LIMIT $2"#
    );
}
