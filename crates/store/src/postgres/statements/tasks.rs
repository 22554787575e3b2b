//! The statements on tasks from outside.

/// Keeps a task; one of another user is left alone.
pub(in crate::postgres) const PUT: &str = r#"INSERT INTO tasks (id, "user", context, state, running, updated, body)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (id) DO UPDATE SET context = excluded.context, state = excluded.state,
        running = excluded.running, updated = excluded.updated, body = excluded.body
      WHERE tasks."user" = excluded."user"
     RETURNING 1"#;

/// A user's task.
pub(in crate::postgres) const GET: &str = r#"SELECT id, "user", context, state, running, updated, body FROM tasks
      WHERE id = $2 AND "user" = $1"#;

/// A user's tasks after a place in the list.
pub(in crate::postgres) const BY_USER: &str = r#"SELECT id, "user", context, state, running, updated, body FROM tasks
      WHERE "user" = $1 AND $2::text IS NULL AND $3::text IS NULL AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, chr(1114111)))
      ORDER BY updated DESC, id DESC LIMIT $7"#;

/// The same within a conversation, and maybe a state.
pub(in crate::postgres) const BY_CONTEXT: &str = r#"SELECT id, "user", context, state, running, updated, body FROM tasks
      WHERE "user" = $1 AND context = $2 AND ($3::text IS NULL OR state = $3) AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, chr(1114111)))
      ORDER BY updated DESC, id DESC LIMIT $7"#;

/// The same within a state.
pub(in crate::postgres) const BY_STATE: &str = r#"SELECT id, "user", context, state, running, updated, body FROM tasks
      WHERE "user" = $1 AND $2::text IS NULL AND state = $3 AND updated >= $4
        AND (updated, id) < ($5, coalesce($6, chr(1114111)))
      ORDER BY updated DESC, id DESC LIMIT $7"#;

/// How many there are.
pub(in crate::postgres) const COUNT: &str = r#"SELECT count(*) FROM tasks
      WHERE "user" = $1 AND ($2::text IS NULL OR context = $2) AND ($3::text IS NULL OR state = $3) AND updated >= $4"#;

/// Tasks that somebody was at work on.
pub(in crate::postgres) const RUNNING: &str = r#"SELECT id, "user", context, state, running, updated, body FROM tasks
      WHERE running <> 0 ORDER BY updated, id LIMIT $1"#;
