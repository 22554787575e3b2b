//! How the server goes about the statements, in a database with many rows.

use super::append::{APPEND_FREE, APPEND_HELD, APPEND_HIDDEN};
use super::holds::{CLAIM, IS_NEXT, JOIN_LINE, RELEASE, RENEW, RENEW_ALONE, SUCCEEDED};
use super::*;
use crate::Store;
use lango_testkit::postgres;
use tokio_postgres::{Client, NoTls};

/// Appends of imports and of events with attachments.
pub(crate) const RARE_APPENDS: [&str; 4] = [
    APPEND_HIDDEN.plain,
    APPEND_FREE.with_attachments,
    APPEND_HELD.with_attachments,
    APPEND_HIDDEN.with_attachments,
];

const ALL: [&str; 24] = [
    APPEND_FREE.plain,
    APPEND_HELD.plain,
    APPROVALS,
    CLAIM,
    COUNT_WAITING,
    EVENTS,
    EXISTS,
    GRANTS,
    HEAD,
    INSERT_SESSION,
    IS_NEW,
    IS_NEXT,
    JOIN_LINE,
    LOG_END,
    RELEASE,
    REMOTE_THREAD,
    RENEW,
    RENEW_ALONE,
    REQUESTS,
    REVOKE,
    SESSIONS,
    SESSIONS_WITH_PREFIX,
    SUCCEEDED,
    TURN_EVENTS,
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

async fn rows(statements: &str) -> Client {
    let address = postgres::empty();
    let store = Store::postgres(&address, "root".into()).unwrap();
    store.open_now().await.unwrap();
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    client
}

#[tokio::test]
async fn no_everyday_statement_scans_a_table_or_sorts() {
    let client = many_rows().await;
    let mut bad = Vec::new();
    for statement in ALL {
        let plan = plan_of(&client, statement).await;
        // All that a person is asked and granted is listed, so that putting it in order reads no more rows.
        let sorts = plan.contains("Sort") && statement != APPROVALS;
        if plan.contains("Seq Scan") || sorts {
            bad.push(format!("{statement}\n{plan}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
    // An index that holds nothing but what it looks for.
    let plan = plan_of(&client, UNFINISHED).await;
    assert!(plan.contains("using turns_unfinished on turns"), "{plan}");
    // The look back reads each of its events by its key.
    let plan = plan_of(&client, HEAD).await;
    assert_eq!(
        plan.matches("using events_pkey on events").count(),
        4,
        "{plan}"
    );
    // And of the turns, however many there are, the last ones in the order of their key.
    assert_eq!(
        plan.matches("Backward using turns_pkey on turns").count(),
        2,
        "{plan}"
    );
}

/// A session with seven thousand turns, and nothing else: whatever is true of one of its rows is true of all.
const ONE_LONG_SESSION: &str = r#"
INSERT INTO sessions (id, "user", created, updated) VALUES ('s_1', 'u_1', 0, 0);
INSERT INTO events (session, seq, turn, frame, time, body)
SELECT 's_1', n, 't_' || (n - 1) / 3, '', n, repeat('x', 300) FROM generate_series(1, 21000) AS n;
INSERT INTO turns (session, ordinal, turn, first_seq, question_seq, answer_seq, finished)
SELECT 's_1', n, 't_' || n, n * 3 + 1, n * 3 + 1, n * 3 + 2, 1 FROM generate_series(0, 6999) AS n;
ANALYZE sessions, events, turns;
SET plan_cache_mode = force_generic_plan"#;

#[tokio::test]
async fn a_turn_reads_events_and_turns_by_their_keys_even_where_there_is_but_one_session() {
    let client = rows(ONE_LONG_SESSION).await;
    for statement in [
        APPEND_FREE.plain,
        APPEND_HELD.plain,
        HEAD,
        LOG_END,
        TURN_EVENTS,
    ] {
        let plan = plan_of(&client, statement).await;
        let scans = ["Seq Scan on events", "Seq Scan on turns"];
        assert!(
            !scans.iter().any(|scan| plan.contains(scan)),
            "{statement}\n{plan}"
        );
    }
}
