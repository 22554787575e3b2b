//! The statements on vaults.

/// The head, or an empty one of revision 0 if only records are left.
pub(in crate::sqlite) const HEAD: &str = "SELECT revision, head FROM vaults WHERE user = ?1
     UNION ALL SELECT 0, x'' WHERE NOT EXISTS (SELECT 1 FROM vaults WHERE user = ?1)
        AND EXISTS (SELECT 1 FROM vault_records WHERE user = ?1)";

pub(in crate::sqlite) const RECORD: &str =
    "SELECT name, envelope FROM vault_records WHERE user = ?1 AND name = ?2";

pub(in crate::sqlite) const RECORDS: &str =
    "SELECT name, envelope FROM vault_records WHERE user = ?1 ORDER BY name";

/// Inserts the head of a new vault, unless records of another one are left.
pub(in crate::sqlite) const INSERT_HEAD: &str = "INSERT INTO vaults (user, revision, head)
     SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM vault_records WHERE user = ?1)
     ON CONFLICT (user) DO NOTHING";

/// Deletes the records of a vault whose head is missing.
pub(in crate::sqlite) const DELETE_ORPHANS: &str = "DELETE FROM vault_records WHERE user = ?1
        AND NOT EXISTS (SELECT 1 FROM vaults WHERE user = ?1)";

/// Replaces the head if it still has revision `?4`.
pub(in crate::sqlite) const REPLACE_HEAD: &str =
    "UPDATE vaults SET revision = ?2, head = ?3 WHERE user = ?1 AND revision = ?4";

/// Deletes the head if it still has revision `?2`.
pub(in crate::sqlite) const DELETE_HEAD: &str =
    "DELETE FROM vaults WHERE user = ?1 AND revision = ?2";

pub(in crate::sqlite) const DELETE_RECORDS: &str = "DELETE FROM vault_records WHERE user = ?1";

pub(in crate::sqlite) const DELETE_RECORD: &str =
    "DELETE FROM vault_records WHERE user = ?1 AND name = ?2";

pub(in crate::sqlite) const PUT_RECORD: &str =
    "INSERT INTO vault_records (user, name, envelope) VALUES (?1, ?2, ?3)
     ON CONFLICT (user, name) DO UPDATE SET envelope = excluded.envelope";

pub(in crate::sqlite) const APPEND_EVENT: &str =
    "INSERT INTO vault_events (user, number, time, action, subject, actor)
     SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?5 FROM vault_events WHERE user = ?1";

/// Deletes a user's oldest entries beyond `?2`.
pub(in crate::sqlite) const TRIM_EVENTS: &str = "DELETE FROM vault_events WHERE user = ?1
        AND number <= (SELECT max(number) FROM vault_events WHERE user = ?1) - ?2";

pub(in crate::sqlite) const EVENTS: &str =
    "SELECT time, action, subject, actor FROM vault_events WHERE user = ?1
      ORDER BY number DESC LIMIT ?2";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::statements::tests::plan_of;

    #[test]
    fn no_statement_on_vaults_scans_the_rows_of_other_users_or_sorts() {
        for statement in [
            HEAD,
            RECORD,
            RECORDS,
            REPLACE_HEAD,
            DELETE_HEAD,
            DELETE_ORPHANS,
            INSERT_HEAD,
            DELETE_RECORDS,
            DELETE_RECORD,
            APPEND_EVENT,
            TRIM_EVENTS,
            EVENTS,
        ] {
            let plan = plan_of(statement);
            let is_scan = plan.replace("SCAN CONSTANT ROW", "").contains("SCAN");
            assert!(!is_scan && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
