//! The statements on tasks from outside.

/// Keeps a new task; nothing if its message opened one before.
pub(in crate::sqlite) const OPEN: &str =
    "INSERT INTO tasks (id, user, context, state, running, updated, body, revision, attempts, message)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
     ON CONFLICT (user, message) WHERE message IS NOT NULL DO NOTHING";

/// The task that a message opened.
pub(in crate::sqlite) const OPENED_BY: &str =
    "SELECT id FROM tasks WHERE user = ?1 AND message = ?2";

/// Keeps a task, if its revision follows the one that is kept.
pub(in crate::sqlite) const PUT: &str =
    "UPDATE tasks SET context = ?3, state = ?4, running = ?5, updated = ?6, body = ?7,
        revision = ?8, attempts = ?9, cancelled = cancelled AND ?5
      WHERE id = ?1 AND user = ?2 AND revision = ?8 - 1";

/// Whose a task is.
pub(in crate::sqlite) const OWNER: &str = "SELECT user FROM tasks WHERE id = ?1";

/// A user's task.
pub(in crate::sqlite) const GET: &str =
    "SELECT id, user, context, state, running, updated, body, revision, attempts FROM tasks
      WHERE id = ?2 AND user = ?1";

/// A user's tasks after a place in the list.
pub(in crate::sqlite) const BY_USER: &str =
    "SELECT id, user, context, state, running, updated, body, revision, attempts FROM tasks INDEXED BY tasks_by_user
      WHERE user = ?1 AND ?2 IS NULL AND ?3 IS NULL AND updated >= ?4
        AND (updated, id) < (?5, coalesce(?6, char(1114111)))
      ORDER BY updated DESC, id DESC LIMIT ?7";

/// The same within a conversation, and maybe a state.
pub(in crate::sqlite) const BY_CONTEXT: &str =
    "SELECT id, user, context, state, running, updated, body, revision, attempts FROM tasks INDEXED BY tasks_by_context
      WHERE user = ?1 AND context = ?2 AND (?3 IS NULL OR state = ?3) AND updated >= ?4
        AND (updated, id) < (?5, coalesce(?6, char(1114111)))
      ORDER BY updated DESC, id DESC LIMIT ?7";

/// The same within a state.
pub(in crate::sqlite) const BY_STATE: &str =
    "SELECT id, user, context, state, running, updated, body, revision, attempts FROM tasks INDEXED BY tasks_by_state
      WHERE user = ?1 AND ?2 IS NULL AND state = ?3 AND updated >= ?4
        AND (updated, id) < (?5, coalesce(?6, char(1114111)))
      ORDER BY updated DESC, id DESC LIMIT ?7";

/// How many there are.
pub(in crate::sqlite) const COUNT: &str = "SELECT count(*) FROM tasks
      WHERE user = ?1 AND (?2 IS NULL OR context = ?2) AND (?3 IS NULL OR state = ?3) AND updated >= ?4";

/// Tasks that there is work to do on, after a place in their order.
pub(in crate::sqlite) const RUNNING: &str =
    "SELECT id, user, context, updated, revision FROM tasks INDEXED BY tasks_running
      WHERE running AND (updated, id) > (?1, ?2) ORDER BY updated, id LIMIT ?3";

/// Notes that a running task is to be cancelled.
pub(in crate::sqlite) const ASK_TO_CANCEL: &str =
    "UPDATE tasks SET cancelled = 1 WHERE id = ?2 AND user = ?1 AND running";

/// Tasks that are to be cancelled.
pub(in crate::sqlite) const TO_CANCEL: &str = "SELECT id FROM tasks INDEXED BY tasks_to_cancel
      WHERE cancelled AND id > ?1 ORDER BY id LIMIT ?2";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    #[test]
    fn tasks_are_found_by_an_index_and_listed_without_sorting() {
        for statement in [
            OPEN,
            OPENED_BY,
            PUT,
            OWNER,
            GET,
            BY_USER,
            BY_CONTEXT,
            BY_STATE,
            COUNT,
            RUNNING,
            ASK_TO_CANCEL,
            TO_CANCEL,
        ] {
            let plan = plan_of(statement);
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{statement}\n{plan}"
            );
        }
    }
}
