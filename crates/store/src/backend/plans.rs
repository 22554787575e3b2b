//! Test helpers that read the query plans of both databases.

use super::Sql;
use crate::log::statements::RARE_APPENDS;
use crate::sqlite::open_in_memory;
use crate::{Store, attachments, payment, tasks, vault, web_cache};
use lango_testkit::postgres;
use rusqlite::types::Null;
use tokio_postgres::{Client, NoTls};

/// Returns SQLite's plan for a statement, followed by the statement.
pub(crate) fn sqlite_plan(statement: Sql) -> String {
    let plan: Vec<String> = explain("EXPLAIN QUERY PLAN", statement, |row| row.get("detail"));
    let plan = plan.join("\n");
    format!("{plan}\nof {}", statement.sqlite.replace("SCAN", "scan"))
}

/// Panics if SQLite scans a table or sorts to run a statement. `may_scan` lists subqueries whose results may be scanned.
pub(crate) fn assert_sqlite_uses_keys(statement: Sql, may_scan: &[&str]) {
    let plan = sqlite_plan(statement);
    let named = may_scan.iter().chain(&["CONSTANT ROW", "json_each"]);
    let rest = named.fold(plan.clone(), |rest, name| {
        rest.replace(&format!("SCAN {name}"), "")
    });
    let scans_or_sorts = rest.contains("SCAN") || rest.contains("TEMP B-TREE");
    assert!(!scans_or_sorts, "{plan}");
}

/// Returns the opcodes of SQLite's bytecode for a statement, each with its parameters P1 and P3.
pub(crate) fn sqlite_program(statement: Sql) -> Vec<(String, i64, i64)> {
    explain("EXPLAIN", statement, |row| {
        Ok((row.get("opcode")?, row.get("p1")?, row.get("p3")?))
    })
}

fn explain<T>(
    explain: &str,
    statement: Sql,
    read: fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Vec<T> {
    let connection = open_in_memory().unwrap();
    let explain = format!("{explain} {}", statement.sqlite);
    let mut explained = connection.prepare(&explain).unwrap();
    let unbound = vec![Null; explained.parameter_count()];
    let rows = explained.query_map(rusqlite::params_from_iter(unbound), read);
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Inserts 20,000 events in 2,000 sessions of 40 users, with their turns, approvals, remote threads, tasks and leases.
const MANY_ROWS: &str = r#"
INSERT INTO sessions (id, "user", created, updated)
SELECT 's_' || n, 'u_' || n % 40, n, n FROM generate_series(1, 2000) AS n;
INSERT INTO events (session, seq, turn, frame, time, body)
SELECT 's_' || n % 2000 + 1, n / 2000 + 1, 't_' || n / 8000, '', n, repeat('x', 300) FROM generate_series(0, 19999) AS n;
INSERT INTO turns (session, ordinal, turn, first_seq, question_seq, finished)
SELECT 's_' || n % 2000 + 1, n / 2000, 't_' || n / 2000, n / 2000 * 4 + 1, n / 2000 * 4 + 1, CASE n % 100 WHEN 0 THEN 0 ELSE 1 END
  FROM generate_series(0, 5999) AS n;
INSERT INTO approvals (session, id, "user", turn, time, request, pattern, folder)
SELECT 's_' || n % 2000 + 1, 'p_' || n, 'u_' || n % 40, 't_0', n, '{}', CASE n % 2 WHEN 0 THEN '*' END, CASE n % 4 WHEN 0 THEN '/f' || n END
  FROM generate_series(0, 3999) AS n;
INSERT INTO remote_threads (session, agent, context)
SELECT 's_' || n, 'remote', 'c' FROM generate_series(1, 2000) AS n;
INSERT INTO tasks (id, "user", context, state, running, updated, body, message, cancelled)
SELECT 'k_' || n, 'u_' || n % 40, 'c_' || n % 400, CASE n % 50 WHEN 0 THEN 'WORKING' ELSE 'COMPLETED' END,
       CASE n % 50 WHEN 0 THEN 1 ELSE 0 END, n, '{}', 'm_' || n, CASE n % 100 WHEN 0 THEN 1 ELSE 0 END FROM generate_series(0, 7999) AS n;
INSERT INTO holds (session, holder, fence, until)
SELECT 's_' || n, 'h_' || n % 4, n, clock_timestamp() FROM generate_series(1, 2000) AS n;
INSERT INTO hold_line (session, holder, until)
SELECT 's_' || n % 2000 + 1, 'h_' || n % 4, clock_timestamp() FROM generate_series(0, 3999) AS n;
ANALYZE sessions, events, turns, approvals, remote_threads, tasks, holds, hold_line;
SET plan_cache_mode = force_generic_plan"#;

/// A PostgreSQL database with enough rows that its query plans are realistic.
pub(crate) struct ManyRows {
    pub store: Store,
    pub client: Client,
}

impl ManyRows {
    /// Creates a database with many sessions, events, turns, approvals and tasks of many users, then runs the statements in `more`.
    pub(crate) async fn open(more: &str) -> Self {
        let rows = Self::only(MANY_ROWS).await;
        rows.client.batch_execute(more).await.unwrap();
        rows
    }

    /// Creates a database with only the rows that `statements` insert.
    pub(crate) async fn only(statements: &str) -> Self {
        let address = postgres::fresh_schema();
        let store = Store::at(&address, "root".into()).unwrap();
        store.open_now().await.unwrap();
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
        Self { store, client }
    }

    /// Panics if PostgreSQL scans a table or sorts to run a statement.
    pub(crate) async fn assert_uses_keys(&self, statement: Sql) {
        let plan = self.plan(statement).await;
        let scans_or_sorts = plan.contains("Seq Scan") || plan.contains("Sort");
        assert!(!scans_or_sorts, "{plan}");
    }

    /// Returns the plan for a statement, followed by the statement.
    pub(crate) async fn plan(&self, statement: Sql) -> String {
        let plan = plan_of(&self.client, statement.postgres).await;
        format!("{plan}\nof {}", statement.postgres)
    }
}

/// Returns PostgreSQL's generic plan for a statement.
pub(crate) async fn plan_of(client: &Client, statement: &str) -> String {
    let prepared = client.prepare(statement).await.unwrap();
    let mut values = vec!["NULL"; prepared.params().len()].join(", ");
    if !values.is_empty() {
        values = format!("({values})");
    }
    let prepare = format!("DEALLOCATE ALL; PREPARE plan AS {statement}");
    client.batch_execute(&prepare).await.unwrap();
    let explain = format!("EXPLAIN EXECUTE plan{values}");
    let lines = client.query(&explain, &[]).await.unwrap();
    let lines: Vec<String> = lines.iter().map(|line| line.get(0)).collect();
    lines.join("\n")
}

/// Inserts vaults of many users with long event logs, payments of a few accounts, most of them settled, and attachments that were
/// put but are not yet referred to by an event.
const MORE_ROWS: &str = r#"
INSERT INTO vaults SELECT 'u_' || n, 1, '' FROM generate_series(1, 2000) AS n;
INSERT INTO vault_records SELECT 'u_' || n % 40, 'k_' || n, '' FROM generate_series(1, 8000) AS n;
INSERT INTO vault_events SELECT 'u_' || n % 40, n, n, 'used', 'k', 'me' FROM generate_series(1, 40000) AS n;
ANALYZE vaults, vault_records, vault_events;
INSERT INTO payment_accounts SELECT 'n', 'w_' || n, 0 FROM generate_series(1, 2000) AS n;
INSERT INTO payments (id, network, wallet, "user", session, recipient, purpose, host, budget, amount, day, state,
    valid_before, detail, revision, created, updated, nonce)
SELECT 'p_' || n, 'n', 'w_' || n % 40, 'u', 's', 'r', 'p', 'h', 'b_' || n % 4000, 1, n / 400,
       CASE n % 100 WHEN 0 THEN 'signed' ELSE 'settled' END, 0, '', 0, n, n, n FROM generate_series(1, 20000) AS n;
INSERT INTO payment_budgets (id, network, wallet, "user", session, host, amount, created)
SELECT 'b_' || n, 'n', 'w_' || n % 40, 'u', 's_' || n % 1000, 'h', 1, n FROM generate_series(1, 4000) AS n;
ANALYZE payment_accounts, payments, payment_budgets;
INSERT INTO attachments SELECT 'u_' || n % 40, 'd_' || n, '' FROM generate_series(0, 7999) AS n;
INSERT INTO attachment_references SELECT 's_' || n % 2000 + 1, 'd_' || n, 'u_' || n % 40 FROM generate_series(0, 7999) AS n;
INSERT INTO attachment_puts SELECT 'u_' || n % 40, 'd_' || n, n FROM generate_series(0, 7999) AS n;
ANALYZE attachments, attachment_references, attachment_puts"#;

#[tokio::test]
async fn no_statement_on_rows_of_users_scans_a_table_or_sorts() {
    let postgres = ManyRows::open(MORE_ROWS).await;
    // These read all rows of a user, so PostgreSQL may scan.
    let all = [vault::RECORDS, vault::DELETE_ORPHANS, vault::DELETE_RECORDS];
    let all = all.map(|statement| statement.postgres);
    let statements = [
        tasks::ALL,
        vault::ALL,
        attachments::ALL,
        &[attachments::PUT],
    ]
    .concat();
    for statement in &statements {
        assert_sqlite_uses_keys(*statement, &[]);
        if !all.contains(&statement.postgres) {
            postgres.assert_uses_keys(*statement).await;
        }
    }
    for statement in RARE_APPENDS {
        postgres.assert_uses_keys(statement).await;
    }
    for statement in payment::ALL {
        assert_sqlite_uses_keys(*statement, &[]);
        let plan = postgres.plan(*statement).await;
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
    assert_sqlite_uses_keys(attachments::RECORD_PUT, &[]);
    for statement in web_cache::ALL {
        let plan = sqlite_plan(*statement);
        let is_scan = plan.contains("SCAN web_pages");
        assert!(!is_scan && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}
