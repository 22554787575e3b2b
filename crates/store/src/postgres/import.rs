//! Appends to hidden sessions, until the log is written once for both databases.

use super::PostgresEngine;
use crate::archive::LogRow;
use lango_core::{SessionId, StoreError};

impl PostgresEngine {
    pub(crate) async fn take_over(&self, rows: Vec<LogRow>) -> Result<(), StoreError> {
        self.appender().take_over(rows).await
    }

    /// Returns the address of the database without its password.
    pub(crate) fn shown_place(&self) -> String {
        self.database.shown().to_owned()
    }

    /// Returns the fence of the lease that this replica has of a session.
    pub(crate) fn fence_of(&self, session: &SessionId) -> Option<i64> {
        self.leases().of(session).map(|lease| lease.fence)
    }
}
