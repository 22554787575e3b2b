//! The statements on attachments. Times are in milliseconds since 1970, by the clock of the database.
//!
//! A put changes the row of its bytes, and a deletion locks that row before it looks for other uses. So of a put and a
//! deletion that meet, the later one sees what the earlier one did.

use crate::engine::{Sql, sql};

/// This moment.
macro_rules! now {
    () => {
        "/*sqlite CAST(unixepoch('subsec') * 1000 AS INTEGER)*/ /*postgres (extract(epoch FROM clock_timestamp()) * 1000)::bigint*/"
    };
}

/// Stores bytes, unless they are stored. In PostgreSQL it records the put as well, as [`RECORD_PUT`] does in SQLite.
pub(super) const PUT: Sql = sql!(
    r#"/*postgres WITH stored AS (*/
        INSERT INTO attachments ("user", digest, bytes) VALUES ($1, $2, $3)
            ON CONFLICT ("user", digest) DO /*sqlite NOTHING*/ /*postgres UPDATE SET digest = excluded.digest
        RETURNING "user", digest)
     INSERT INTO attachment_puts ("user", digest, time)
     SELECT "user", digest, greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint,
            (SELECT max(time) + 1 FROM attachment_puts WHERE "user" = $1 AND digest = $2))
       FROM stored
         ON CONFLICT ("user", digest, time) DO NOTHING*/"#
);

/// Records a put, at a time that no other put of the same bytes has.
pub(super) const RECORD_PUT: Sql = sql!(
    sqlite: "INSERT INTO attachment_puts (user, digest, time)
     SELECT ?1, ?2, max(CAST(unixepoch('subsec') * 1000 AS INTEGER), coalesce(max(time) + 1, 0))
       FROM attachment_puts WHERE user = ?1 AND digest = ?2",
    postgres: "",
);

/// The bytes of a user under a digest.
pub(super) const BYTES: Sql =
    sql!(r#"SELECT bytes FROM attachments WHERE "user" = $1 AND digest = $2"#);

/// The first bytes that a session refers to.
pub(super) const REFERENCES: Sql =
    sql!("SELECT digest FROM attachment_references WHERE session = $1 ORDER BY digest LIMIT $2");
pub(super) const DELETE_REFERENCE: Sql =
    sql!("DELETE FROM attachment_references WHERE session = $1 AND digest = $2");

/// Locks bytes of a user until the transaction ends.
pub(super) const LOCK_BYTES: Sql =
    sql!(r#"SELECT 1 FROM attachments WHERE "user" = $1 AND digest = $2 /*postgres FOR UPDATE*/"#);

/// Deletes bytes that no session refers to and that were not put within the last `$3` milliseconds.
pub(super) const DELETE_UNUSED: Sql = sql!(concat!(
    r#"DELETE FROM attachments
      WHERE "user" = $1 AND digest = $2
        AND NOT EXISTS (SELECT 1 FROM attachment_references WHERE "user" = $1 AND digest = $2)
        AND NOT EXISTS (SELECT 1 FROM attachment_puts WHERE "user" = $1 AND digest = $2
                           AND time >= "#,
    now!(),
    " - $3::bigint)"
));

/// The oldest puts that are older than `$1` milliseconds.
pub(super) const EXPIRED_PUTS: Sql = sql!(concat!(
    r#"SELECT "user", digest, time FROM attachment_puts
      WHERE time < (SELECT "#,
    now!(),
    " - $1::bigint) ORDER BY time LIMIT $2"
));
pub(super) const DELETE_PUT: Sql =
    sql!(r#"DELETE FROM attachment_puts WHERE "user" = $1 AND digest = $2 AND time = $3"#);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plans::{ManyRows, sqlite_plan};
    use crate::postgres::statements::append::{APPEND_FREE, APPEND_HELD, APPEND_HIDDEN};

    /// Attachments of forty users, and puts that no event refers to.
    const MORE: &str = r#"
        INSERT INTO attachments SELECT 'u_' || n % 40, 'd_' || n, '' FROM generate_series(0, 7999) AS n;
        INSERT INTO attachment_references SELECT 's_' || n % 2000 + 1, 'd_' || n, 'u_' || n % 40 FROM generate_series(0, 7999) AS n;
        INSERT INTO attachment_puts SELECT 'u_' || n % 40, 'd_' || n, n FROM generate_series(0, 7999) AS n;
        ANALYZE attachments, attachment_references, attachment_puts"#;

    #[tokio::test]
    async fn no_statement_on_attachments_scans_a_table_or_sorts() {
        let postgres = ManyRows::open(MORE).await;
        let appends = [APPEND_FREE, APPEND_HELD, APPEND_HIDDEN].map(|append| Sql {
            sqlite: RECORD_PUT.sqlite,
            postgres: append.with_attachments,
        });
        let others = [
            PUT,
            BYTES,
            REFERENCES,
            DELETE_REFERENCE,
            LOCK_BYTES,
            DELETE_UNUSED,
            EXPIRED_PUTS,
            DELETE_PUT,
        ];
        for statement in appends.into_iter().chain(others) {
            let plan = sqlite_plan(statement).replace("SCAN CONSTANT ROW", "");
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{plan}"
            );
            let plan = postgres.plan(statement).await;
            assert!(
                !plan.contains("Seq Scan") && !plan.contains("Sort"),
                "{plan}"
            );
        }
    }
}
