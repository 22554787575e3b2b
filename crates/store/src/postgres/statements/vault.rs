//! The statements on vaults.

pub(in crate::postgres) const HEAD: &str = r#"SELECT revision, head FROM vaults WHERE "user" = $1"#;

/// The same, while changes of the vault by other replicas wait.
pub(in crate::postgres) const LOCK_HEAD: &str =
    r#"SELECT revision, head FROM vaults WHERE "user" = $1 FOR UPDATE"#;

pub(in crate::postgres) const RECORD: &str =
    r#"SELECT name, envelope FROM vault_records WHERE "user" = $1 AND name = $2"#;

pub(in crate::postgres) const RECORDS: &str =
    r#"SELECT name, envelope FROM vault_records WHERE "user" = $1 ORDER BY name"#;

pub(in crate::postgres) const INSERT_HEAD: &str = r#"INSERT INTO vaults ("user", revision, head)
     VALUES ($1, $2, $3) ON CONFLICT ("user") DO NOTHING"#;

pub(in crate::postgres) const REPLACE_HEAD: &str =
    r#"UPDATE vaults SET revision = $2, head = $3 WHERE "user" = $1"#;

pub(in crate::postgres) const DELETE_HEAD: &str = r#"DELETE FROM vaults WHERE "user" = $1"#;

pub(in crate::postgres) const DELETE_RECORDS: &str =
    r#"DELETE FROM vault_records WHERE "user" = $1"#;

pub(in crate::postgres) const DELETE_RECORD: &str =
    r#"DELETE FROM vault_records WHERE "user" = $1 AND name = $2"#;

pub(in crate::postgres) const PUT_RECORD: &str = r#"INSERT INTO vault_records ("user", name, envelope) VALUES ($1, $2, $3)
     ON CONFLICT ("user", name) DO UPDATE SET envelope = excluded.envelope"#;

pub(in crate::postgres) const APPEND_EVENT: &str = r#"INSERT INTO vault_events ("user", number, time, action, subject, actor)
     SELECT $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5 FROM vault_events WHERE "user" = $1"#;

/// Deletes a user's oldest entries beyond `$2`.
pub(in crate::postgres) const TRIM_EVENTS: &str = r#"DELETE FROM vault_events WHERE "user" = $1
        AND number <= (SELECT max(number) FROM vault_events WHERE "user" = $1) - $2::bigint"#;

pub(in crate::postgres) const EVENTS: &str = r#"SELECT time, action, subject, actor FROM vault_events WHERE "user" = $1
      ORDER BY number DESC LIMIT $2"#;
