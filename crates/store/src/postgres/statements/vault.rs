//! The statements on vaults.

/// The head, or an empty one of revision 0 if only records are left. Ordered by name, so that the planner takes the index.
pub(in crate::postgres) const HEAD: &str = r#"SELECT revision, head FROM vaults WHERE "user" = $1
     UNION ALL SELECT 0::bigint, ''::bytea WHERE NOT EXISTS (SELECT 1 FROM vaults WHERE "user" = $1)
        AND (SELECT name FROM vault_records WHERE "user" = $1 ORDER BY name LIMIT 1) IS NOT NULL"#;

/// The same, while changes of the vault by other replicas wait.
pub(in crate::postgres) const LOCK_HEAD: &str =
    r#"SELECT revision, head FROM vaults WHERE "user" = $1 FOR UPDATE"#;

pub(in crate::postgres) const RECORD: &str =
    r#"SELECT name, envelope FROM vault_records WHERE "user" = $1 AND name = $2"#;

pub(in crate::postgres) const RECORDS: &str =
    r#"SELECT name, envelope FROM vault_records WHERE "user" = $1 ORDER BY name"#;

/// Inserts the head of a new vault, unless records of another one are left.
pub(in crate::postgres) const INSERT_HEAD: &str = r#"INSERT INTO vaults ("user", revision, head)
     SELECT $1, $2, $3
      WHERE (SELECT name FROM vault_records WHERE "user" = $1 ORDER BY name LIMIT 1) IS NULL
     ON CONFLICT ("user") DO NOTHING"#;

/// Deletes the records of a vault whose head is missing.
pub(in crate::postgres) const DELETE_ORPHANS: &str = r#"DELETE FROM vault_records WHERE "user" = $1
        AND NOT EXISTS (SELECT 1 FROM vaults WHERE "user" = $1)"#;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::statements::plans::{many_rows, plan_of};

    /// Vaults of many users, each with records and a long log.
    const MORE: &str = r#"
        INSERT INTO vaults SELECT 'u_' || n, 1, '' FROM generate_series(1, 2000) AS n;
        INSERT INTO vault_records SELECT 'u_' || n % 40, 'k_' || n, '' FROM generate_series(1, 8000) AS n;
        INSERT INTO vault_events SELECT 'u_' || n % 40, n, n, 'used', 'k', 'me' FROM generate_series(1, 40000) AS n;
        ANALYZE"#;

    #[tokio::test]
    async fn no_statement_on_vaults_scans_a_table() {
        let client = many_rows().await;
        client.batch_execute(MORE).await.unwrap();
        for statement in [
            HEAD,
            INSERT_HEAD,
            LOCK_HEAD,
            RECORD,
            REPLACE_HEAD,
            DELETE_HEAD,
            DELETE_RECORD,
            APPEND_EVENT,
            TRIM_EVENTS,
            EVENTS,
        ] {
            let plan = plan_of(&client, statement).await;
            assert!(
                !plan.contains("Seq Scan") && !plan.contains("Sort"),
                "{statement}\n{plan}"
            );
        }
    }
}
