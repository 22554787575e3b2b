//! An in-memory database: one connection behind a lock, used on the caller's thread.

use super::connection::open_in_memory;
use crate::backend::Result;
use lango_core::StoreError;
use rusqlite::Connection;
use std::sync::{Mutex, PoisonError};

/// The connection, which is opened on first use. The lock is never held across an await.
#[derive(Default)]
pub(super) struct InMemory(Mutex<Option<Connection>>);

impl InMemory {
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T, StoreError> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = || {
            let connection = match &mut *open {
                Some(connection) => connection,
                None => open.insert(open_in_memory()?),
            };
            if !connection.is_autocommit() {
                // Earlier work panicked and left its transaction open.
                connection.execute_batch("ROLLBACK")?;
            }
            work(connection)
        };
        result().map_err(|failure| failure.about(":memory:"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn an_in_memory_database_opens_in_less_than_five_milliseconds() {
        let open = |_| {
            let start = Instant::now();
            let count = |connection: &mut Connection| {
                let sessions = "SELECT count(*) FROM sessions";
                Ok(connection.query_row(sessions, [], |row| row.get::<_, i64>(0))?)
            };
            assert_eq!(InMemory::default().with(count).unwrap(), 0);
            start.elapsed()
        };
        let fastest = (0..20).map(open).min().unwrap();
        assert!(fastest < Duration::from_millis(5), "{fastest:?}");
    }
}
