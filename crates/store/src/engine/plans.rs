//! How both databases go about a statement, for tests.

use super::Sql;
use crate::postgres::statements::plans::{many_rows, plan_of, rows};
use crate::sqlite::statements::tests::plan_of as sqlite_plan_of;
use tokio_postgres::Client;

/// SQLite's plan of a statement, after the statement.
pub(crate) fn sqlite_plan(statement: Sql) -> String {
    let plan = sqlite_plan_of(statement.sqlite);
    format!("{plan}\nof {}", statement.sqlite.replace("SCAN", "scan"))
}

/// The operations of SQLite's program for a statement, each with its first and third parameter.
pub(crate) fn sqlite_program(statement: Sql) -> Vec<(String, i64, i64)> {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::Store::open_sqlite(folder.path().join("lango.db"), "root".into()).unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(folder.path().join("lango.db")).unwrap();
    let explain = format!("EXPLAIN {}", statement.sqlite);
    let mut explained = connection.prepare(&explain).unwrap();
    let unbound = vec![rusqlite::types::Null; explained.parameter_count()];
    let rows = explained.query_map(rusqlite::params_from_iter(unbound), |row| {
        Ok((row.get("opcode")?, row.get("p1")?, row.get("p3")?))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
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

    /// A database with nothing but the rows of these statements.
    pub(crate) async fn only(statements: &str) -> Self {
        Self(rows(statements).await)
    }

    /// The plan of a statement whatever its values are, and the statement.
    pub(crate) async fn plan(&self, statement: Sql) -> String {
        let plan = plan_of(&self.0, statement.postgres).await;
        format!("{plan}\nof {}", statement.postgres)
    }
}
