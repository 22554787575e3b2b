//! Appends to hidden sessions, until the log is written once for both databases.

use super::{SqliteEngine, log};
use crate::archive::LogRow;
use lango_core::{NewSession, StoreError};

impl SqliteEngine {
    pub(crate) async fn create_hidden(&self, session: NewSession) -> Result<(), StoreError> {
        let create = self
            .writer
            .change(move |connection| log::create(connection, &session));
        create.await
    }

    pub(crate) async fn take_over(&self, rows: Vec<LogRow>) -> Result<(), StoreError> {
        let add = self
            .writer
            .change(move |connection| log::take_over(connection, &rows));
        add.await
    }
}
