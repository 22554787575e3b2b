//! The SQL that a connection begins with, and that brings a schema up to date.

use std::time::Duration;

/// What every connection begins with: bounds on what the server does for us, and commits that wait for the disk even where
/// the server's own setting is laxer. What a copy that stopped has locked is free again well before a lease ends.
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

/// How text is encoded, the schema that names without one are looked for in (none if it does not exist), and the server's
/// version.
pub(in crate::postgres) const WHERE_WE_ARE: &str =
    "SELECT current_setting('server_encoding'), current_schema()::text,
            current_setting('server_version_num')::int / 10000";

/// One copy at a time brings a schema up to date, and may take its time. The lock ends with the transaction.
pub(in crate::postgres) const LOCK_MIGRATIONS: &str = "SET LOCAL statement_timeout = '10min';
     SELECT pg_advisory_xact_lock(hashtextextended('lango ' || current_setting('search_path'), 0))";

/// Makes the schema that the search path names first.
pub(in crate::postgres) const CREATE_SCHEMA: &str = "DO $$ BEGIN
     EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I',
        trim(both ' \"' from split_part(current_setting('search_path'), ',', 1)));
     END $$";

/// Whether anything was ever applied.
pub(in crate::postgres) const HAS_MIGRATIONS: &str =
    "SELECT to_regclass('lango_migrations') IS NOT NULL";

/// What was applied.
pub(in crate::postgres) const CREATE_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS lango_migrations (
     version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied TIMESTAMPTZ NOT NULL DEFAULT now())";

/// The newest schema that was made.
pub(in crate::postgres) const APPLIED: &str =
    "SELECT coalesce(max(version), 0) FROM lango_migrations";

/// One more was applied.
pub(in crate::postgres) const NOTE_MIGRATION: &str =
    "INSERT INTO lango_migrations (version, name) VALUES ($1, $2)";
