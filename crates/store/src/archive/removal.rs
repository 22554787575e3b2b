//! Removes sessions: hides a session first, then deletes its rows from every table in bounded batches. SQLite also overwrites
//! the deleted bytes.

use super::{ExpiredPage, HIDDEN_USER, WipeOutcome, hidden_user};
use crate::StoreFuture;
use crate::attachments::remove_references;
use crate::backend::{Backend, Result, Sql, Tx, sql, statements, values};
use crate::library::remove_document;
use crate::store::Store;
use lango_core::{SessionId, StoreError, Text, Timestamp, UserId};

/// Maximum number of rows that one step removes. It is smaller for SQLite, where all other writes wait for the step.
const REMOVE_BATCH: usize = 500;
const REMOVE_BATCH_SQLITE: usize = 100;

/// Removal of sessions and old tasks. The caller must have the lease of a session that it removes.
impl Store {
    /// Hides a session. If a time is given, hides the session only if it has not been used since then and has no
    /// unfinished turn. Returns whether this call hid the session.
    pub fn hide_session(
        &self,
        session: &SessionId,
        unused_since: Option<Timestamp>,
    ) -> StoreFuture<'_, bool> {
        let fence = match &self.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(postgres) => postgres.lease_of(session).map(|lease| lease.fence),
        };
        let args = (session.clone(), unused_since, fence);
        let hidden = self
            .backend
            .write_autocommit(args, |tx, (session, since, fence)| {
                Box::pin(async move {
                    let values = values![session, since, fence];
                    let found = tx.query_opt(HIDE, values, |row| {
                        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
                    });
                    match found.await? {
                        Some((true, _, _)) => Ok(true),
                        // An earlier attempt may have hidden it.
                        Some((_, true, _)) => Ok(tx.is_repeated()),
                        Some((_, _, false)) => {
                            let id = session.clone();
                            Err(StoreError::LeaseLost { id }.into())
                        }
                        _ => Ok(false),
                    }
                })
            });
        let session = session.clone();
        Box::pin(async move {
            let is_hidden = hidden.await?;
            if is_hidden {
                self.notify_session(&session);
            }
            Ok(is_hidden)
        })
    }

    /// Removes a bounded number of rows of a hidden session and everything that belongs to it. Returns true if nothing
    /// is left to remove, including when the session does not exist or is not hidden.
    pub async fn remove_portion(&self, session: &SessionId) -> Result<bool, StoreError> {
        let removed = self.backend.erase(session.clone(), |tx, session| {
            Box::pin(remove_portion(tx, session.as_str()))
        });
        let is_removed = removed.await?;
        if is_removed {
            self.delete_expired_puts().await?;
        }
        Ok(is_removed)
    }

    pub async fn hidden_sessions(
        &self,
        user: &UserId,
        after: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.session_ids(&hidden_user(user), after, limit).await
    }

    /// Lists a user's sessions that were last used before `unused_since` and have no unfinished turn, oldest first.
    pub async fn expired_sessions(
        &self,
        user: &UserId,
        unused_since: Timestamp,
        page: ExpiredPage,
    ) -> Result<Vec<SessionId>, StoreError> {
        let values = values![user, unused_since, page.limit, page.skip];
        self.backend.query(EXPIRED, values, |row| row.get(0)).await
    }

    /// Removes up to `limit` of a user's A2A tasks that were last updated before `before`, are not running, and have no pending
    /// approval. Returns the number removed.
    pub fn remove_old_tasks(
        &self,
        user: &UserId,
        before: Timestamp,
        limit: usize,
    ) -> StoreFuture<'_, u64> {
        let args = (user.clone(), before, limit);
        self.backend.erase(args, |tx, (user, before, limit)| {
            Box::pin(async move {
                let values = values![user, before, limit];
                tx.execute(DELETE_OLD_TASKS, values).await
            })
        })
    }

    /// Erases the bytes of deleted rows. The duration grows with the size of the database, and turns have to wait.
    pub async fn wipe_deleted(&self) -> Result<WipeOutcome, StoreError> {
        while self.delete_expired_puts().await? > 0 {}
        if let Backend::Sqlite(sqlite) = &self.backend {
            return sqlite.compact().await;
        }
        for statement in [DELETE_OLD_LEASES, DELETE_OLD_TICKETS] {
            let values = values![REMOVE_BATCH];
            while self.backend.execute(statement, values).await? > 0 {}
        }
        Ok(WipeOutcome::LeftToServer)
    }
}

async fn remove_portion(tx: &mut Tx<'_>, session: &str) -> Result<bool> {
    let Some(user) = tx.value::<Text>(HIDDEN_USER, values![session]).await? else {
        return Ok(true);
    };
    let limit = if tx.is_sqlite() {
        REMOVE_BATCH_SQLITE
    } else {
        REMOVE_BATCH
    };
    if remove_library(tx, session).await?
        || remove_references(tx, &user, session).await?
        || remove_turns(tx, &user, session, limit).await?
    {
        return Ok(false);
    }
    for statement in DELETE_MANY {
        if tx.execute(statement, values![session, limit]).await? > 0 {
            return Ok(false);
        }
    }
    for statement in DELETE_FEW {
        if !tx.is_sqlite() || !statement.sqlite.is_empty() {
            tx.execute(statement, values![session]).await?;
        }
    }
    Ok(true)
}

/// Removes one document or empty collection that only this session can search. Returns whether there was one.
async fn remove_library(tx: &mut Tx<'_>, session: &str) -> Result<bool> {
    let values = values![session];
    let found = tx.query_opt(COLLECTION_OF_SESSION, values, |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    let found: Option<(i64, UserId, Option<i64>)> = found.await?;
    let Some((collection, user, document)) = found else {
        return Ok(false);
    };
    match document {
        Some(document) => remove_document(tx, &user, document).await?,
        None => drop(tx.execute(DELETE_COLLECTION, values![collection]).await?),
    }
    Ok(true)
}

/// Removes a batch of the A2A tasks in a context that the session's first turns belong to. If there are no such tasks,
/// removes a batch of turns. Returns whether anything was removed.
async fn remove_turns(tx: &mut Tx<'_>, user: &str, session: &str, limit: usize) -> Result<bool> {
    let context: Option<Text> = tx.value(CONTEXTS, values![session, user, limit]).await?;
    let removed = match context {
        Some(context) => {
            let values = values![user, context, limit];
            tx.execute(DELETE_TASKS, values).await?
        }
        None => tx.execute(DELETE_TURNS, values![session, limit]).await?,
    };
    Ok(removed > 0)
}

/// Hides a session. If a time is given (`$2`), hides the session only if it has not been used since then and has no
/// unfinished turn. If a fencing token is given (`$3`), hides it only if that lease, which PostgreSQL locks, is valid.
/// Returns whether the statement hid the session, whether it was hidden before, and whether the lease is valid.
const HIDE: Sql = sql!(
    sqlite: "UPDATE sessions SET user = char(1) || user
      WHERE id = ?1 AND substr(user, 1, 1) <> char(1) AND ?3 IS NULL
        AND (?2 IS NULL OR updated < ?2 AND NOT EXISTS
             (SELECT 1 FROM turns WHERE turns.session = ?1 AND turns.finished = 0))
      RETURNING 1, 1, 1",
    postgres: r#"WITH leased AS MATERIALIZED (
        SELECT 1 FROM holds WHERE session = $1 AND fence = $3 AND until > clock_timestamp() FOR NO KEY UPDATE),
     hidden AS (
        UPDATE sessions SET "user" = chr(1) || '1' || "user"
         WHERE id = $1 AND NOT starts_with("user", chr(1) || '1')
           AND ($3::bigint IS NULL OR EXISTS (SELECT FROM leased))
           AND ($2::bigint IS NULL OR updated < $2 AND NOT EXISTS
                (SELECT FROM turns WHERE turns.session = $1 AND turns.finished = 0))
        RETURNING 1)
     SELECT EXISTS (SELECT FROM hidden),
            EXISTS (SELECT FROM sessions WHERE id = $1 AND starts_with("user", chr(1) || '1')),
            $3::bigint IS NULL OR EXISTS (SELECT FROM leased)"#
);

/// Tests membership in a subquery. The form `= ANY (ARRAY(…))` makes PostgreSQL look up the rows by key.
macro_rules! in_rows {
    ($select:literal) => {
        concat!(
            " /*sqlite IN (*/ /*postgres = ANY (ARRAY(*/ ",
            $select,
            " /*sqlite )*/ /*postgres ))*/"
        )
    };
}

statements! {
    EXPIRED: r#"SELECT id FROM sessions WHERE "user" = $1 AND updated < $2
        AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = sessions.id AND turns.finished = 0)
      ORDER BY updated, id DESC LIMIT $3 OFFSET $4"#;

    DELETE_OLD_TASKS: concat!(
        "DELETE FROM tasks WHERE id",
        in_rows!(
            r#"SELECT id FROM tasks WHERE "user" = $1 AND updated < $2 AND running = 0
              AND NOT EXISTS (SELECT 1 FROM approvals WHERE approvals."user" = $1
                                 AND approvals.turn = tasks.id AND approvals.pattern IS NULL)
            ORDER BY updated, id LIMIT $3"#
        )
    );

    /// Selects a collection that is visible only in one session, its user, and one of its documents.
    COLLECTION_OF_SESSION: r#"SELECT id, "user",
            (SELECT min(id) FROM library_documents WHERE collection = library_collections.id)
       FROM library_collections WHERE session = $1 AND session <> '' LIMIT 1"#;

    DELETE_COLLECTION: "DELETE FROM library_collections WHERE id = $1";

    /// Selects the A2A contexts of the tasks that a session's first `$3` turns belong to.
    CONTEXTS: r#"SELECT DISTINCT tasks.context
       FROM (SELECT turn FROM turns WHERE session = $1 ORDER BY ordinal LIMIT $3) AS first
       JOIN tasks ON tasks.id = first.turn WHERE tasks."user" = $2"#;

    DELETE_TASKS: concat!(
        "DELETE FROM tasks WHERE id",
        in_rows!(r#"SELECT id FROM tasks WHERE "user" = $1 AND context = $2 LIMIT $3"#)
    );

    DELETE_TURNS: "DELETE FROM turns WHERE session = $1 AND ordinal <= (SELECT max(ordinal) FROM
        (SELECT ordinal FROM turns WHERE session = $1 ORDER BY ordinal LIMIT $2) AS first)";
}

/// Deletes the rows of a session from tables in which a session has few rows, so no batches are needed. The order
/// follows the foreign keys. Only PostgreSQL has tables for leases and queue tickets.
const DELETE_FEW: [Sql; 6] = [
    sql!("DELETE FROM approvals WHERE session = $1"),
    sql!("DELETE FROM remote_threads WHERE session = $1"),
    sql!("DELETE FROM watermarks WHERE session = $1"),
    Sql::only_postgres("DELETE FROM hold_line WHERE session = $1 AND until <= clock_timestamp()"),
    // The caller has this lease. Its fencing token is never reused, because a sequence generates them.
    Sql::only_postgres("DELETE FROM holds WHERE session = $1"),
    sql!("DELETE FROM sessions WHERE id = $1"),
];

/// Deletes a batch of at most `$2` rows of a session from tables in which it may have many.
const DELETE_MANY: [Sql; 3] = [
    sql!(concat!(
        "DELETE FROM recollections WHERE id",
        in_rows!("SELECT id FROM recollections WHERE session = $1 LIMIT $2")
    )),
    sql!(
        "DELETE FROM forgotten_turns WHERE session = $1 AND ordinal <= (SELECT max(ordinal) FROM
        (SELECT ordinal FROM forgotten_turns WHERE session = $1 ORDER BY ordinal LIMIT $2) AS first)"
    ),
    sql!(
        "DELETE FROM events WHERE session = $1 AND seq <= (SELECT max(seq) FROM
        (SELECT seq FROM events WHERE session = $1 ORDER BY seq LIMIT $2) AS first)"
    ),
];

/// Deletes expired leases of sessions that no longer exist. This is rare enough to scan the table.
const DELETE_OLD_LEASES: Sql = Sql::only_postgres(
    "DELETE FROM holds WHERE until <= clock_timestamp() AND session = ANY (ARRAY(
        SELECT session FROM holds WHERE until <= clock_timestamp()
           AND NOT EXISTS (SELECT FROM sessions WHERE sessions.id = holds.session) LIMIT $1))",
);
/// Deletes queue tickets that expired more than a day ago.
const DELETE_OLD_TICKETS: Sql = Sql::only_postgres(
    "DELETE FROM hold_line WHERE ticket = ANY (ARRAY(
        SELECT ticket FROM hold_line WHERE until <= clock_timestamp() - interval '1 day' LIMIT $1))"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{IDS, RECORD, ROWS, import};
    use crate::backend::plans::{ManyRows, assert_sqlite_uses_keys, sqlite_plan};
    use crate::log::statements::RARE_APPENDS;

    /// Inserts the rows of other tables that belong to sessions.
    const MORE: &str = r#"
        INSERT INTO watermarks (session, "user") SELECT 's_' || n, 'u_' || n % 40 FROM generate_series(1, 2000) AS n;
        INSERT INTO forgotten_turns SELECT 's_' || n % 2000 + 1, n / 2000 FROM generate_series(0, 7999) AS n;
        INSERT INTO recollections ("user", session, generation, first_turn, last_turn, text, source, trusted, created)
        SELECT 'u_' || n % 40, 's_' || n % 2000 + 1, 0, n, n, repeat('x', 99), '', 0, n FROM generate_series(0, 7999) AS n;
        INSERT INTO library_collections ("user", name, session)
        SELECT 'u_' || n % 40, 'c', 's_' || n FROM generate_series(1, 2000) AS n;
        INSERT INTO library_documents (collection, source, trust, title, hash, size, added)
        SELECT n % 2000 + 1, n, 'trusted', '', '', 0, 0 FROM generate_series(0, 7999) AS n;
        ANALYZE watermarks, forgotten_turns, recollections, library_collections, library_documents"#;

    const OTHERS: [Sql; 5] = [IDS, RECORD, ROWS, HIDDEN_USER, HIDE];

    /// Returns whether a statement may sort, because it sorts only the rows of one page.
    fn may_sort(statement: Sql) -> bool {
        [CONTEXTS.postgres, ROWS.postgres].contains(&statement.postgres)
    }

    #[tokio::test]
    async fn no_statement_of_the_archive_scans_a_table() {
        let postgres = ManyRows::open(MORE).await;
        let tables = || import::ALL.iter().chain(ALL).copied();
        let sessions = || OTHERS.into_iter().chain(tables());
        let statements = || sessions().chain(DELETE_FEW).chain(DELETE_MANY);
        for statement in statements().chain([RARE_APPENDS[0]]) {
            let plan = postgres.plan(statement).await;
            let sorts = plan.contains("Sort") && !may_sort(statement);
            assert!(!plan.contains("Seq Scan") && !sorts, "{plan}");
        }
        for statement in statements().filter(|statement| !statement.sqlite.is_empty()) {
            if may_sort(statement) {
                let plan = sqlite_plan(statement).replace("SCAN first", "");
                assert!(!plan.contains("SCAN"), "{plan}");
            } else {
                // `first` is a subquery with a limit.
                assert_sqlite_uses_keys(statement, &["first"]);
            }
        }
        let plan = sqlite_plan(EXPIRED);
        let index = "SEARCH sessions USING COVERING INDEX sessions_by_use (user=? AND updated<?)";
        assert!(plan.starts_with(index), "{plan}");
    }
}
