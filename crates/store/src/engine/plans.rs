//! How both databases go about a statement, for tests.

use super::Sql;
use crate::postgres::statements::plans::{many_rows, plan_of};
use crate::sqlite::statements::tests::plan_of as sqlite_plan_of;
use tokio_postgres::Client;

/// SQLite's plan of a statement, after the statement.
pub(crate) fn sqlite_plan(statement: Sql) -> String {
    let plan = sqlite_plan_of(statement.sqlite);
    format!("{plan}\nof {}", statement.sqlite.replace("SCAN", "scan"))
}

/// A PostgreSQL database with many sessions, events, turns, approvals and tasks of many users.
pub(crate) struct ManyRows(Client);

impl ManyRows {
    /// Makes one, with what these statements add.
    pub(crate) async fn open(more: &str) -> Self {
        let client = many_rows().await;
        client.batch_execute(more).await.unwrap();
        Self(client)
    }

    /// The plan of a statement whatever its values are, and the statement.
    pub(crate) async fn plan(&self, statement: Sql) -> String {
        let plan = plan_of(&self.0, statement.postgres).await;
        format!("{plan}\nof {}", statement.postgres)
    }
}
