//! The statements on attachments. Times are in milliseconds since 1970, by the clock of the server.
//!
//! A put changes the row of its bytes, and a deletion locks that row before it looks for other uses. So of a put and a
//! deletion that meet, the later one sees what the earlier one did.

/// This moment.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

/// Stores bytes, unless they are stored, and records a put at a time that no other put of the same bytes has.
pub(in crate::postgres) const PUT: &str = concat!(
    r#"WITH stored AS (
        INSERT INTO attachments ("user", digest, bytes) VALUES ($1, $2, $3)
            ON CONFLICT ("user", digest) DO UPDATE SET digest = excluded.digest
        RETURNING "user", digest)
     INSERT INTO attachment_puts ("user", digest, time)
     SELECT "user", digest, greatest("#,
    now!(),
    r#", (SELECT max(time) + 1 FROM attachment_puts WHERE "user" = $1 AND digest = $2))
       FROM stored
         ON CONFLICT ("user", digest, time) DO NOTHING"#
);

/// The bytes of a user under a digest.
pub(in crate::postgres) const BYTES: &str =
    r#"SELECT bytes FROM attachments WHERE "user" = $1 AND digest = $2"#;

/// The first bytes that a session refers to.
pub(in crate::postgres) const REFERENCES: &str =
    "SELECT digest FROM attachment_references WHERE session = $1 ORDER BY digest LIMIT $2";
pub(in crate::postgres) const DELETE_REFERENCE: &str =
    "DELETE FROM attachment_references WHERE session = $1 AND digest = $2";

/// Locks bytes of a user until the transaction ends.
pub(in crate::postgres) const LOCK_BYTES: &str =
    r#"SELECT FROM attachments WHERE "user" = $1 AND digest = $2 FOR UPDATE"#;

/// Deletes bytes that no session refers to and that were not put within the last `$3` milliseconds.
pub(in crate::postgres) const DELETE_UNUSED: &str = concat!(
    r#"DELETE FROM attachments
      WHERE "user" = $1 AND digest = $2
        AND NOT EXISTS (SELECT FROM attachment_references WHERE "user" = $1 AND digest = $2)
        AND NOT EXISTS (SELECT FROM attachment_puts WHERE "user" = $1 AND digest = $2
                           AND time >= "#,
    now!(),
    " - $3::bigint)"
);

/// The oldest puts that are older than `$1` milliseconds.
pub(in crate::postgres) const EXPIRED_PUTS: &str = concat!(
    r#"SELECT "user", digest, time FROM attachment_puts
      WHERE time < (SELECT "#,
    now!(),
    " - $1::bigint) ORDER BY time LIMIT $2"
);
pub(in crate::postgres) const DELETE_PUT: &str =
    r#"DELETE FROM attachment_puts WHERE "user" = $1 AND digest = $2 AND time = $3"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::statements::plans::{many_rows, plan_of};

    /// Attachments of forty users, and puts that no event refers to.
    const MORE: &str = r#"
        INSERT INTO attachments SELECT 'u_' || n % 40, 'd_' || n, '' FROM generate_series(0, 7999) AS n;
        INSERT INTO attachment_references SELECT 's_' || n % 2000 + 1, 'd_' || n, 'u_' || n % 40 FROM generate_series(0, 7999) AS n;
        INSERT INTO attachment_puts SELECT 'u_' || n % 40, 'd_' || n, n FROM generate_series(0, 7999) AS n;
        ANALYZE"#;

    #[tokio::test]
    async fn no_statement_on_attachments_scans_a_table() {
        use crate::postgres::statements::append::{APPEND_FREE, APPEND_HELD, APPEND_HIDDEN};
        let client = many_rows().await;
        client.batch_execute(MORE).await.unwrap();
        for statement in [
            APPEND_FREE.with_attachments,
            APPEND_HELD.with_attachments,
            APPEND_HIDDEN.with_attachments,
            PUT,
            BYTES,
            REFERENCES,
            DELETE_REFERENCE,
            LOCK_BYTES,
            DELETE_UNUSED,
            EXPIRED_PUTS,
            DELETE_PUT,
        ] {
            let plan = plan_of(&client, statement).await;
            assert!(
                !plan.contains("Seq Scan") && !plan.contains("Sort"),
                "{statement}\n{plan}"
            );
        }
    }
}
