//! Migrates any older SQLite schema to the newest, one numbered file at a time.
//!
//! `user_version` is the number of applied files. Each file is applied and counted in one transaction. So a crash never leaves a
//! file half applied, and two processes that start at the same time apply it only once.

use super::error::place_of;
use crate::backend::Result;
use lango_core::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// The migrations, in the order in which they run. Never change one that has been released; add a new one instead.
const MIGRATIONS: [&str; 19] = [
    include_str!("../../migrations/sqlite/0001_sessions_and_events.sql"),
    include_str!("../../migrations/sqlite/0002_authors_and_hashes.sql"),
    include_str!("../../migrations/sqlite/0003_turns.sql"),
    include_str!("../../migrations/sqlite/0004_approvals.sql"),
    include_str!("../../migrations/sqlite/0005_graph.sql"),
    include_str!("../../migrations/sqlite/0006_memory.sql"),
    include_str!("../../migrations/sqlite/0007_library.sql"),
    include_str!("../../migrations/sqlite/0008_remote_threads.sql"),
    include_str!("../../migrations/sqlite/0009_tasks.sql"),
    include_str!("../../migrations/sqlite/0010_unfinished_turns.sql"),
    include_str!("../../migrations/sqlite/0011_task_copies.sql"),
    include_str!("../../migrations/sqlite/0012_sessions_that_go.sql"),
    include_str!("../../migrations/sqlite/0013_attachments.sql"),
    include_str!("../../migrations/sqlite/0014_web_cache.sql"),
    include_str!("../../migrations/sqlite/0015_vaults.sql"),
    include_str!("../../migrations/sqlite/0016_payments.sql"),
    include_str!("../../migrations/sqlite/0017_event_rows.sql"),
    include_str!("../../migrations/sqlite/0018_access_tokens.sql"),
    include_str!("../../migrations/sqlite/0019_undone_turns.sql"),
];

/// How long to wait while another process migrates the database, which takes minutes for a large one.
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(600);

const KNOWN: u32 = MIGRATIONS.len() as u32;

/// Fails if a newer version of lango has migrated the database.
pub(super) fn refuse_newer(connection: &Connection, path: &Path) -> Result<()> {
    let found = schema(connection)?;
    if found > KNOWN {
        return Err(StoreError::TooNew {
            place: place_of(path),
            found,
            known: KNOWN,
        }
        .into());
    }
    Ok(())
}

pub(super) fn is_current(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(schema(connection)? == KNOWN)
}

pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    if schema(connection)? < KNOWN {
        connection.busy_timeout(MIGRATION_TIMEOUT)?;
    }
    while schema(connection)? < KNOWN {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have applied it while this one waited for the lock.
        let version = schema(&transaction)?;
        if let Some(migration) = MIGRATIONS.get(version as usize) {
            transaction.execute_batch(migration)?;
            transaction.pragma_update(None, "user_version", version + 1)?;
        }
        transaction.commit()?;
    }
    Ok(())
}

fn schema(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}
