//! SQL that runs when a connection opens, and before a schema migration.

use std::time::Duration;

/// Returns the settings of a new connection: timeouts, and commits that wait for the disk even if the server is configured not
/// to. The idle timeout releases the row locks of a stopped replica well before its leases expire.
pub(in crate::postgres) fn set_up(lease: Duration) -> String {
    let idle = (lease / 3).max(Duration::from_secs(1)).as_millis();
    format!(
        "SET statement_timeout = '30s';
         SET idle_in_transaction_session_timeout = '{idle}ms';
         SET jit = off;
         SELECT set_config('synchronous_commit', 'on', false)
          WHERE current_setting('synchronous_commit') IN ('off', 'local')"
    )
}

/// Waits until no other replica migrates the schema. The lock lasts until the end of the transaction.
pub(in crate::postgres) const LOCK_MIGRATIONS: &str = "SET LOCAL statement_timeout = '10min';
     SELECT pg_advisory_xact_lock(hashtextextended('lango ' || current_setting('search_path'), 0))";
