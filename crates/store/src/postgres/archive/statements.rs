//! The SQL of keeping, importing and deleting sessions. Like that of everyday work, each statement finds its rows by a key
//! and touches a bounded number of them.
//!
//! The mark in front of a hidden user is U+0001, which texts here have as U+0001 and `1`.

/// A user's sessions after an id.
pub(super) const IDS: &str =
    r#"SELECT id FROM sessions WHERE "user" = $1 AND id > $2 ORDER BY id LIMIT $3"#;

/// A session that is not hidden, and the end of its log.
pub(super) const RECORD: &str = r#"SELECT "user", title, created, updated, log_end.seq, log_end.hash
       FROM sessions
       LEFT JOIN LATERAL (SELECT seq, hash FROM events WHERE events.session = sessions.id
                           ORDER BY seq DESC LIMIT 1) AS log_end ON true
      WHERE id = $1 AND NOT starts_with("user", chr(1) || '1')"#;

/// Rows of a log with their hashes, until they have `$4` bytes together.
pub(super) const ROWS: &str = "SELECT seq, turn, frame, author, time, body, hash
       FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) - octet_length(body) AS bytes_before
               FROM (SELECT * FROM events WHERE session = $1 AND seq >= $2 ORDER BY seq LIMIT $3) AS page) AS page
      WHERE bytes_before < $4 ORDER BY seq";

/// The user of a hidden session, without the mark. It stays as it is until the transaction ends.
pub(in crate::postgres) const HIDDEN_USER: &str = r#"SELECT substr("user", 3) FROM sessions
      WHERE id = $1 AND starts_with("user", chr(1) || '1') FOR NO KEY UPDATE"#;

/// A hidden session is seen from now on.
pub(super) const SHOW: &str = r#"UPDATE sessions SET "user" = $2, title = $3, updated = $4
      WHERE id = $1 AND starts_with("user", chr(1) || '1')"#;
pub(super) const SHOW_APPROVALS: &str = r#"UPDATE approvals SET "user" = $2 WHERE session = $1"#;
pub(super) const DELETE_GRANTS: &str =
    "DELETE FROM approvals WHERE session = $1 AND pattern IS NOT NULL";

/// A session is hidden from now on; if a time is given, only one that was not used since and has no open turn. If the number
/// of a hold is given (`$3`), only as long as that is had, and nobody takes the session over meanwhile. Gives whether it was
/// hidden now, whether it was before, and whether the hold is had.
pub(super) const HIDE: &str = r#"WITH held AS MATERIALIZED (
        SELECT 1 FROM holds WHERE session = $1 AND fence = $3 AND until > clock_timestamp() FOR NO KEY UPDATE),
     hidden AS (
        UPDATE sessions SET "user" = chr(1) || '1' || "user"
         WHERE id = $1 AND NOT starts_with("user", chr(1) || '1')
           AND ($3::bigint IS NULL OR EXISTS (SELECT FROM held))
           AND ($2::bigint IS NULL OR updated < $2 AND NOT EXISTS
                (SELECT FROM turns WHERE turns.session = $1 AND turns.finished = 0))
        RETURNING 1)
     SELECT EXISTS (SELECT FROM hidden),
            EXISTS (SELECT FROM sessions WHERE id = $1 AND starts_with("user", chr(1) || '1')),
            $3::bigint IS NULL OR EXISTS (SELECT FROM held)"#;

/// A user's sessions that were not used since and have no open turn, the oldest first.
pub(super) const EXPIRED: &str = r#"SELECT id FROM sessions WHERE "user" = $1 AND updated < $2
        AND NOT EXISTS (SELECT FROM turns WHERE turns.session = sessions.id AND turns.finished = 0)
      ORDER BY updated, id DESC LIMIT $3 OFFSET $4"#;

/// Old tasks that are not at work and wait for nobody.
pub(super) const DELETE_OLD_TASKS: &str = r#"DELETE FROM tasks WHERE id = ANY (ARRAY(
        SELECT id FROM tasks WHERE "user" = $1 AND updated < $2 AND running = 0
           AND NOT EXISTS (SELECT FROM approvals WHERE approvals."user" = $1
                              AND approvals.turn = tasks.id AND approvals.pattern IS NULL)
         ORDER BY updated, id LIMIT $3))"#;

/// A collection that is seen in one session alone, whose it is, and a document in it.
pub(super) const COLLECTION_OF_SESSION: &str = r#"SELECT id, "user",
            (SELECT min(id) FROM library_documents WHERE collection = library_collections.id)
       FROM library_collections WHERE session = $1 AND session <> '' LIMIT 1"#;
pub(super) const DELETE_COLLECTION: &str = "DELETE FROM library_collections WHERE id = $1";

/// What there are few of.
pub(super) const DELETE_SMALL: [&str; 5] = [
    "DELETE FROM approvals WHERE session = $1",
    "DELETE FROM remote_threads WHERE session = $1",
    "DELETE FROM watermarks WHERE session = $1",
    "DELETE FROM hold_line WHERE session = $1 AND until <= clock_timestamp()",
    // Whoever holds it is the one who deletes it. No number comes back: they are counted elsewhere.
    "DELETE FROM holds WHERE session = $1",
];

/// What is left of who held, or waited for, sessions that are not there, some of it. Rare enough to look through all.
pub(super) const DELETE_OLD_HOLDS: &str =
    "DELETE FROM holds WHERE until <= clock_timestamp() AND session = ANY (ARRAY(
        SELECT session FROM holds WHERE until <= clock_timestamp()
           AND NOT EXISTS (SELECT FROM sessions WHERE sessions.id = holds.session) LIMIT $1))";
pub(super) const DELETE_OLD_LINES: &str = "DELETE FROM hold_line WHERE ticket = ANY (ARRAY(
        SELECT ticket FROM hold_line WHERE until <= clock_timestamp() - interval '1 day' LIMIT $1))";

/// What there may be many of, the first of them.
pub(super) const DELETE_MANY: [&str; 3] = [
    "DELETE FROM recollections WHERE id = ANY
        (ARRAY(SELECT id FROM recollections WHERE session = $1 LIMIT $2))",
    "DELETE FROM forgotten_turns WHERE session = $1 AND ordinal <= (SELECT max(ordinal) FROM
        (SELECT ordinal FROM forgotten_turns WHERE session = $1 ORDER BY ordinal LIMIT $2) AS first)",
    "DELETE FROM events WHERE session = $1 AND seq <= (SELECT max(seq) FROM
        (SELECT seq FROM events WHERE session = $1 ORDER BY seq LIMIT $2) AS first)",
];

/// The first turns, and the conversations of the tasks that they were.
pub(super) const CONTEXTS: &str = r#"SELECT DISTINCT tasks.context
       FROM (SELECT turn FROM turns WHERE session = $1 ORDER BY ordinal LIMIT $3) AS first
       JOIN tasks ON tasks.id = first.turn WHERE tasks."user" = $2"#;
pub(super) const DELETE_TASKS: &str = r#"DELETE FROM tasks WHERE id = ANY
        (ARRAY(SELECT id FROM tasks WHERE "user" = $1 AND context = $2 LIMIT $3))"#;
pub(super) const DELETE_TURNS: &str =
    "DELETE FROM turns WHERE session = $1 AND ordinal <= (SELECT max(ordinal) FROM
        (SELECT ordinal FROM turns WHERE session = $1 ORDER BY ordinal LIMIT $2) AS first)";

pub(super) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE id = $1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::statements::APPEND_HIDDEN;
    use crate::postgres::statements::plans::{many_rows, plan_of};
    use crate::tables::TABLES;

    const ALL: [&str; 17] = [
        APPEND_HIDDEN.log_only.postgres,
        IDS,
        RECORD,
        ROWS,
        HIDDEN_USER,
        SHOW,
        SHOW_APPROVALS,
        DELETE_GRANTS,
        HIDE,
        EXPIRED,
        DELETE_OLD_TASKS,
        COLLECTION_OF_SESSION,
        DELETE_COLLECTION,
        CONTEXTS,
        DELETE_TASKS,
        DELETE_TURNS,
        DELETE_SESSION,
    ];

    /// What else belongs to sessions.
    const MORE: &str = r#"
        INSERT INTO watermarks (session, "user") SELECT 's_' || n, 'u_' || n % 40 FROM generate_series(1, 2000) AS n;
        INSERT INTO forgotten_turns SELECT 's_' || n % 2000 + 1, n / 2000 FROM generate_series(0, 7999) AS n;
        INSERT INTO recollections ("user", session, generation, first_turn, last_turn, text, source, trusted, created)
        SELECT 'u_' || n % 40, 's_' || n % 2000 + 1, 0, n, n, repeat('x', 99), '', 0, n FROM generate_series(0, 7999) AS n;
        INSERT INTO library_collections ("user", name, session)
        SELECT 'u_' || n % 40, 'c', 's_' || n FROM generate_series(1, 2000) AS n;
        INSERT INTO library_documents (collection, source, trust, title, hash, size, added)
        SELECT n % 2000 + 1, n, 'trusted', '', '', 0, 0 FROM generate_series(0, 7999) AS n;
        ANALYZE"#;

    #[tokio::test]
    async fn no_statement_of_the_archive_scans_a_table() {
        let client = many_rows().await;
        client.batch_execute(MORE).await.unwrap();
        let mut bad = Vec::new();
        for statement in ALL.iter().chain(&DELETE_SMALL).chain(&DELETE_MANY) {
            let plan = plan_of(&client, statement).await;
            // A page that is at hand is put in order, not a table.
            let sorts = plan.contains("Sort") && ![CONTEXTS, ROWS].contains(statement);
            if plan.contains("Seq Scan") || sorts {
                bad.push(format!("{statement}\n{plan}"));
            }
        }
        for table in TABLES.iter().filter(|table| table.name == "events") {
            use crate::postgres::tables::statements::{by_keys, page};
            for statement in [page(table, true), page(table, false), by_keys(table)] {
                let plan = plan_of(&client, &statement).await;
                if plan.contains("Seq Scan") {
                    bad.push(format!("{statement}\n{plan}"));
                }
            }
        }
        assert!(bad.is_empty(), "{}", bad.join("\n\n"));
    }
}
