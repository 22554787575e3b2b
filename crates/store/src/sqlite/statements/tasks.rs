//! The statements on tasks from outside.

/// Keeps a task; one of another user is left alone.
pub(in crate::sqlite) const PUT: &str =
    "INSERT INTO tasks (id, user, context, state, running, updated, body)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
     ON CONFLICT (id) DO UPDATE SET context = excluded.context, state = excluded.state,
        running = excluded.running, updated = excluded.updated, body = excluded.body
      WHERE user = excluded.user";

/// A user's task.
pub(in crate::sqlite) const GET: &str =
    "SELECT id, user, context, state, running, updated, body FROM tasks
      WHERE id = ?2 AND user = ?1";

/// A user's tasks after a place in the list.
pub(in crate::sqlite) const BY_USER: &str =
    "SELECT id, user, context, state, running, updated, body FROM tasks INDEXED BY tasks_by_user
      WHERE user = ?1 AND ?2 IS NULL AND ?3 IS NULL AND updated >= ?4
        AND (updated, id) < (?5, coalesce(?6, char(1114111)))
      ORDER BY updated DESC, id DESC LIMIT ?7";

/// The same within a conversation, and maybe a state.
pub(in crate::sqlite) const BY_CONTEXT: &str =
    "SELECT id, user, context, state, running, updated, body FROM tasks INDEXED BY tasks_by_context
      WHERE user = ?1 AND context = ?2 AND (?3 IS NULL OR state = ?3) AND updated >= ?4
        AND (updated, id) < (?5, coalesce(?6, char(1114111)))
      ORDER BY updated DESC, id DESC LIMIT ?7";

/// The same within a state.
pub(in crate::sqlite) const BY_STATE: &str =
    "SELECT id, user, context, state, running, updated, body FROM tasks INDEXED BY tasks_by_state
      WHERE user = ?1 AND ?2 IS NULL AND state = ?3 AND updated >= ?4
        AND (updated, id) < (?5, coalesce(?6, char(1114111)))
      ORDER BY updated DESC, id DESC LIMIT ?7";

/// How many there are.
pub(in crate::sqlite) const COUNT: &str = "SELECT count(*) FROM tasks
      WHERE user = ?1 AND (?2 IS NULL OR context = ?2) AND (?3 IS NULL OR state = ?3) AND updated >= ?4";

/// Tasks that somebody was at work on.
pub(in crate::sqlite) const RUNNING: &str =
    "SELECT id, user, context, state, running, updated, body FROM tasks
      WHERE running ORDER BY updated, id LIMIT ?1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    #[test]
    fn tasks_are_found_by_an_index_and_listed_without_sorting() {
        for statement in [PUT, GET, BY_USER, BY_CONTEXT, BY_STATE, COUNT] {
            let plan = plan_of(statement);
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{statement}\n{plan}"
            );
        }
        // A scan of an index that holds nothing but what it looks for.
        let plan = plan_of(RUNNING);
        assert_eq!(plan, "SCAN tasks USING INDEX tasks_running", "{plan}");
    }
}
