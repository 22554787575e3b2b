//! How the server goes about statements, in a database with many rows.

use super::leases::{CLAIM, IS_NEXT, JOIN_QUEUE, RELEASE, RENEW, RENEW_ALONE, SUCCEEDED};
use crate::Store;
use lango_testkit::postgres;
use tokio_postgres::{Client, NoTls};

const ALL: [&str; 7] = [
    CLAIM.postgres,
    IS_NEXT.postgres,
    JOIN_QUEUE.postgres,
    RELEASE,
    RENEW,
    RENEW_ALONE,
    SUCCEEDED.postgres,
];

/// Twenty thousand events in two thousand sessions of forty users, and all that goes with them.
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

/// The plan of a statement whatever its values are.
pub(crate) async fn plan_of(client: &Client, statement: &str) -> String {
    let values = client.prepare(statement).await.unwrap().params().len();
    let values = vec!["NULL"; values].join(", ");
    let prepared = format!("DEALLOCATE ALL; PREPARE plan AS {statement}");
    client.batch_execute(&prepared).await.unwrap();
    let values = if values.is_empty() {
        values
    } else {
        format!("({values})")
    };
    let lines = client
        .query(&format!("EXPLAIN EXECUTE plan{values}"), &[])
        .await
        .unwrap();
    let lines: Vec<String> = lines.iter().map(|line| line.get(0)).collect();
    lines.join("\n")
}

/// A connection to a database with many rows.
pub(crate) async fn many_rows() -> Client {
    rows(MANY_ROWS).await
}

/// A connection to a database with the rows of these statements.
pub(crate) async fn rows(statements: &str) -> Client {
    let address = postgres::empty();
    let store = Store::postgres(&address, "root".into()).unwrap();
    store.open_now().await.unwrap();
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    client
}

#[tokio::test]
async fn no_statement_on_leases_scans_a_table_or_sorts() {
    let client = many_rows().await;
    for statement in ALL {
        let plan = plan_of(&client, statement).await;
        let is_bad = plan.contains("Seq Scan") || plan.contains("Sort");
        assert!(!is_bad, "{statement}\n{plan}");
    }
}
