//! The SQL of keeping, importing and deleting sessions. Like that of everyday work, each statement finds its rows by a key
//! and touches a bounded number of them.

/// A user's sessions after an id.
pub(super) const IDS: &str =
    "SELECT id FROM sessions WHERE user = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

/// A session that is not hidden.
pub(super) const RECORD: &str = "SELECT user, title, created, updated FROM sessions
      WHERE id = ?1 AND substr(user, 1, 1) <> char(1)";

/// Rows of a log with their hashes.
pub(super) const ROWS: &str = "SELECT seq, turn, frame, author, time, body, hash FROM events
     WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";

/// The user of a hidden session, without the mark.
pub(in crate::sqlite) const HIDDEN_USER: &str = "SELECT substr(user, 2) FROM sessions
      WHERE id = ?1 AND substr(user, 1, 1) = char(1)";

/// A hidden session is seen from now on.
pub(super) const SHOW: &str = "UPDATE sessions SET user = ?2, title = ?3, updated = ?4
      WHERE id = ?1 AND substr(user, 1, 1) = char(1)";
pub(super) const SHOW_APPROVALS: &str = "UPDATE approvals SET user = ?2 WHERE session = ?1";
pub(super) const DELETE_GRANTS: &str =
    "DELETE FROM approvals WHERE session = ?1 AND pattern IS NOT NULL";

/// A session is hidden from now on; if a time is given, only one that was not used since and has no open turn.
pub(super) const HIDE: &str = "UPDATE sessions SET user = char(1) || user
      WHERE id = ?1 AND substr(user, 1, 1) <> char(1)
        AND (?2 IS NULL OR updated < ?2 AND NOT EXISTS
             (SELECT 1 FROM turns WHERE turns.session = ?1 AND turns.finished = 0))";

/// A user's sessions that were not used since and have no open turn, the oldest first.
pub(super) const EXPIRED: &str = "SELECT id FROM sessions WHERE user = ?1 AND updated < ?2
        AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = sessions.id AND turns.finished = 0)
      ORDER BY updated, id DESC LIMIT ?3 OFFSET ?4";

/// Old tasks that are not at work and wait for nobody.
pub(super) const DELETE_OLD_TASKS: &str = "DELETE FROM tasks WHERE id IN (
        SELECT id FROM tasks WHERE user = ?1 AND updated < ?2 AND NOT running
           AND NOT EXISTS (SELECT 1 FROM approvals WHERE approvals.user = ?1
                              AND approvals.turn = tasks.id AND approvals.pattern IS NULL)
         ORDER BY updated, id LIMIT ?3)";

/// A collection that is seen in one session alone, and a document in it.
pub(super) const COLLECTION_OF_SESSION: &str = "SELECT id, user,
            (SELECT min(id) FROM library_documents WHERE collection = library_collections.id)
       FROM library_collections WHERE session = ?1 AND session <> '' LIMIT 1";
pub(super) const DELETE_COLLECTION: &str = "DELETE FROM library_collections WHERE id = ?1";

/// What there are few of.
pub(super) const DELETE_SMALL: [&str; 3] = [
    "DELETE FROM approvals WHERE session = ?1",
    "DELETE FROM remote_threads WHERE session = ?1",
    "DELETE FROM watermarks WHERE session = ?1",
];

/// What there may be many of, the first of them.
pub(super) const DELETE_MANY: [&str; 3] = [
    "DELETE FROM recollections WHERE id IN
        (SELECT id FROM recollections WHERE session = ?1 LIMIT ?2)",
    "DELETE FROM forgotten_turns WHERE session = ?1 AND ordinal IN
        (SELECT ordinal FROM forgotten_turns WHERE session = ?1 ORDER BY ordinal LIMIT ?2)",
    "DELETE FROM events WHERE session = ?1 AND seq IN
        (SELECT seq FROM events WHERE session = ?1 ORDER BY seq LIMIT ?2)",
];

/// The first turns, and the conversations of the tasks that they were.
pub(super) const CONTEXTS: &str = "SELECT DISTINCT tasks.context
       FROM (SELECT turn FROM turns WHERE session = ?1 ORDER BY ordinal LIMIT ?3) AS first
       JOIN tasks ON tasks.id = first.turn WHERE tasks.user = ?2";
pub(super) const DELETE_TASKS: &str = "DELETE FROM tasks WHERE id IN
        (SELECT id FROM tasks WHERE user = ?1 AND context = ?2 LIMIT ?3)";
pub(super) const DELETE_TURNS: &str = "DELETE FROM turns WHERE session = ?1 AND ordinal IN
        (SELECT ordinal FROM turns WHERE session = ?1 ORDER BY ordinal LIMIT ?2)";

pub(super) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE id = ?1";

/// What is deleted from now on is wiped from its pages; and no longer.
pub(crate) const BEGIN_WIPING: &str = "PRAGMA secure_delete = ON";
pub(crate) const END_WIPING: &str = "PRAGMA secure_delete = OFF";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    const ALL: [&str; 16] = [
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

    #[test]
    fn no_statement_of_the_archive_scans_a_table_or_sorts() {
        let lists = DELETE_SMALL.iter().chain(&DELETE_MANY);
        for statement in ALL.iter().chain(lists) {
            let plan = plan_of(statement);
            // The rows of a subquery, which a limit bounds, and the values of a list are gone through.
            let plan = plan
                .replace("SCAN first", "")
                .replace("SCAN CONSTANT ROW", "");
            let is_bounded = *statement == CONTEXTS || !plan.contains("TEMP B-TREE");
            assert!(is_bounded && !plan.contains("SCAN"), "{statement}\n{plan}");
        }
    }

    #[test]
    fn expired_sessions_are_found_in_the_order_of_their_use() {
        let plan = plan_of(EXPIRED);
        let index = "SEARCH sessions USING COVERING INDEX sessions_by_use (user=? AND updated<?)";
        assert!(plan.starts_with(index), "{plan}");
    }
}
