//! The SQL that configures a connection, and that migrates a schema.

use std::time::Duration;

/// Configures a connection: limits for the server, and commits that wait for the disk even if the server's own setting is
/// weaker. Rows that a stopped replica has locked are unlocked well before a lease expires.
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

/// Lets one replica at a time migrate a schema, until the end of the transaction. That may take a while.
pub(in crate::postgres) const LOCK_MIGRATIONS: &str = "SET LOCAL statement_timeout = '10min';
     SELECT pg_advisory_xact_lock(hashtextextended('lango ' || current_setting('search_path'), 0))";
