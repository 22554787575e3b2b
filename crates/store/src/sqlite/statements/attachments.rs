//! The statements on attachments. Times are in milliseconds since 1970, by the clock of this machine.

/// Stores bytes, unless they are stored.
pub(in crate::sqlite) const INSERT_BYTES: &str =
    "INSERT INTO attachments (user, digest, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";

/// Records a put, at a time that no other put of the same bytes has.
pub(in crate::sqlite) const INSERT_PUT: &str = "INSERT INTO attachment_puts (user, digest, time)
     SELECT ?1, ?2, max(CAST(unixepoch('subsec') * 1000 AS INTEGER), coalesce(max(time) + 1, 0))
       FROM attachment_puts WHERE user = ?1 AND digest = ?2";

/// The bytes of a user under a digest.
pub(in crate::sqlite) const BYTES: &str =
    "SELECT bytes FROM attachments WHERE user = ?1 AND digest = ?2";

/// Refers to bytes from a session, hidden or not; returns its user if it did not before.
pub(in crate::sqlite) const INSERT_REFERENCE: &str =
    "INSERT INTO attachment_references (session, digest, user)
     SELECT id, ?2, CASE substr(user, 1, 1) WHEN char(1) THEN substr(user, 2) ELSE user END
       FROM sessions WHERE id = ?1
         ON CONFLICT DO NOTHING RETURNING user";

/// Uses up the oldest put of bytes.
pub(in crate::sqlite) const USE_PUT: &str =
    "DELETE FROM attachment_puts WHERE user = ?1 AND digest = ?2 AND time =
        (SELECT min(time) FROM attachment_puts WHERE user = ?1 AND digest = ?2)";

/// The first bytes that a session refers to.
pub(in crate::sqlite) const REFERENCES: &str =
    "SELECT digest FROM attachment_references WHERE session = ?1 ORDER BY digest LIMIT ?2";
pub(in crate::sqlite) const DELETE_REFERENCE: &str =
    "DELETE FROM attachment_references WHERE session = ?1 AND digest = ?2";

/// Deletes bytes that no session refers to and that were not put within the last `?3` milliseconds.
pub(in crate::sqlite) const DELETE_UNUSED: &str = "DELETE FROM attachments
      WHERE user = ?1 AND digest = ?2
        AND NOT EXISTS (SELECT 1 FROM attachment_references WHERE user = ?1 AND digest = ?2)
        AND NOT EXISTS (SELECT 1 FROM attachment_puts WHERE user = ?1 AND digest = ?2
                           AND time >= unixepoch('subsec') * 1000 - ?3)";

/// The oldest puts that are older than `?1` milliseconds.
pub(in crate::sqlite) const EXPIRED_PUTS: &str = "SELECT user, digest, time FROM attachment_puts
      WHERE time < unixepoch('subsec') * 1000 - ?1 ORDER BY time LIMIT ?2";
pub(in crate::sqlite) const DELETE_PUT: &str =
    "DELETE FROM attachment_puts WHERE user = ?1 AND digest = ?2 AND time = ?3";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    #[test]
    fn no_statement_on_attachments_scans_a_table_or_sorts() {
        for statement in [
            INSERT_BYTES,
            INSERT_PUT,
            BYTES,
            INSERT_REFERENCE,
            USE_PUT,
            REFERENCES,
            DELETE_REFERENCE,
            DELETE_UNUSED,
            EXPIRED_PUTS,
            DELETE_PUT,
        ] {
            let plan = plan_of(statement);
            assert!(
                !plan.contains("SCAN") && !plan.contains("TEMP B-TREE"),
                "{statement}\n{plan}"
            );
        }
    }
}
