//! The statements on tasks from outside.

/// Keeps a new task; nothing if its message opened one before.
pub(in crate::postgres) const OPEN: &str = r#"INSERT INTO tasks (id, "user", context, state, running, updated, body, revision, attempts, message)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT ("user", message) WHERE message IS NOT NULL DO NOTHING
     RETURNING 1"#;

/// The task that a message opened.
pub(in crate::postgres) const OPENED_BY: &str =
    r#"SELECT id FROM tasks WHERE "user" = $1 AND message = $2"#;

/// Keeps a task, if its revision follows the one that is kept; one that is not running need not be cancelled any more.
pub(in crate::postgres) const PUT: &str = r#"UPDATE tasks SET context = $3, state = $4, running = $5, updated = $6, body = $7,
        revision = $8, attempts = $9, cancelled = least(cancelled, $5)
      WHERE id = $1 AND "user" = $2 AND revision = $8::bigint - 1
     RETURNING 1"#;

/// Whose a task is.
pub(in crate::postgres) const OWNER: &str = r#"SELECT "user" FROM tasks WHERE id = $1"#;

/// A user's task.
pub(in crate::postgres) const GET: &str = r#"SELECT id, "user", context, state, running, updated, body, revision, attempts FROM tasks
      WHERE id = $2 AND "user" = $1"#;

/// A user's tasks after a place in the list.
pub(in crate::postgres) const BY_USER: &str = r#"SELECT id, "user", context, state, running, updated, body, revision, attempts FROM tasks
      WHERE "user" = $1 AND $2::text IS NULL AND $3::text IS NULL AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, chr(1114111)))
      ORDER BY updated DESC, id DESC LIMIT $7"#;

/// The same within a conversation, and maybe a state.
pub(in crate::postgres) const BY_CONTEXT: &str = r#"SELECT id, "user", context, state, running, updated, body, revision, attempts FROM tasks
      WHERE "user" = $1 AND context = $2 AND ($3::text IS NULL OR state = $3) AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, chr(1114111)))
      ORDER BY updated DESC, id DESC LIMIT $7"#;

/// The same within a state.
pub(in crate::postgres) const BY_STATE: &str = r#"SELECT id, "user", context, state, running, updated, body, revision, attempts FROM tasks
      WHERE "user" = $1 AND $2::text IS NULL AND state = $3 AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, chr(1114111)))
      ORDER BY updated DESC, id DESC LIMIT $7"#;

/// How many there are.
pub(in crate::postgres) const COUNT: &str = r#"SELECT count(*) FROM tasks
      WHERE "user" = $1 AND ($2::text IS NULL OR context = $2) AND ($3::text IS NULL OR state = $3) AND updated >= $4"#;

/// Tasks that there is work to do on, after a place in their order.
pub(in crate::postgres) const RUNNING: &str = r#"SELECT id, "user", context, updated, revision FROM tasks
      WHERE running <> 0 AND (updated, id) > ($1, $2) ORDER BY updated, id LIMIT $3"#;

/// Notes that a running task is to be cancelled.
pub(in crate::postgres) const ASK_TO_CANCEL: &str = r#"UPDATE tasks SET cancelled = 1
      WHERE id = $2 AND "user" = $1 AND running <> 0
     RETURNING 1"#;

/// Tasks that are to be cancelled.
pub(in crate::postgres) const TO_CANCEL: &str =
    "SELECT id FROM tasks WHERE cancelled <> 0 AND id > $1 ORDER BY id LIMIT $2";
