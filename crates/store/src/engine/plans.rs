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

/// Fails if SQLite scans a table or sorts for a statement. `may_scan` names results of subqueries.
pub(crate) fn assert_sqlite_uses_keys(statement: Sql, may_scan: &[&str]) {
    let plan = sqlite_plan(statement);
    let named = may_scan.iter().chain(&["CONSTANT ROW", "json_each"]);
    let rest = named.fold(plan.clone(), |rest, name| {
        rest.replace(&format!("SCAN {name}"), "")
    });
    let scans_or_sorts = rest.contains("SCAN") || rest.contains("TEMP B-TREE");
    assert!(!scans_or_sorts, "{plan}");
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

    /// Fails if PostgreSQL scans a table or sorts for a statement.
    pub(crate) async fn assert_uses_keys(&self, statement: Sql) {
        let plan = self.plan(statement).await;
        let scans_or_sorts = plan.contains("Seq Scan") || plan.contains("Sort");
        assert!(!scans_or_sorts, "{plan}");
    }

    /// The plan of a statement whatever its values are, and the statement.
    pub(crate) async fn plan(&self, statement: Sql) -> String {
        let plan = plan_of(&self.0, statement.postgres).await;
        format!("{plan}\nof {}", statement.postgres)
    }
}
