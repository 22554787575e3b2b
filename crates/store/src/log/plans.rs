//! Tests of the query plans for sessions: every statement finds its rows by key, so its cost does not grow with the length of a
//! session or the number of sessions.

use super::apply;
use super::history::{EXCHANGES, HEAD, TURN};
use super::statements::{self, *};
use crate::access_tokens;
use crate::approvals::{self, APPROVALS};
use crate::backend::Sql;
use crate::backend::plans::{ManyRows, assert_sqlite_uses_keys, sqlite_plan};
use crate::catalog::{self, UNFINISHED};

fn shared_statements() -> impl Iterator<Item = Sql> {
    let history = &[HEAD, TURN, EXCHANGES];
    let all = [
        statements::ALL,
        access_tokens::ALL,
        approvals::ALL,
        catalog::ALL,
        history,
    ];
    all.into_iter().flatten().copied()
}

#[test]
fn sqlite_scans_no_table_and_sorts_nothing() {
    for statement in shared_statements().chain(apply::ALL.iter().copied()) {
        assert_sqlite_uses_keys(statement, &[]);
    }
    let plan = sqlite_plan(HEAD);
    let by_key = "USING INDEX sqlite_autoindex_events_1 (session=? AND seq=?)";
    assert_eq!(plan.matches(by_key).count(), 4, "{plan}");
    let turns = "SEARCH shown USING PRIMARY KEY (session=? AND ordinal>?)";
    assert!(plan.contains(turns), "{plan}");
}

#[tokio::test]
async fn postgresql_scans_no_table_and_sorts_nothing() {
    let postgres = ManyRows::open("").await;
    let appends = [APPEND_FREE.log_only, APPEND_LEASED.log_only];
    for statement in shared_statements().chain(appends) {
        let plan = postgres.plan(statement).await;
        // All approvals of a user are listed, so sorting them reads no extra rows. Unfinished turns are few and have their own
        // index.
        let is_listed = [APPROVALS, UNFINISHED].map(|listed| listed.postgres);
        let is_listed = is_listed.contains(&statement.postgres);
        let sorts = plan.contains("Sort") && !is_listed;
        let scans = plan.contains("Seq Scan") && statement.postgres != UNFINISHED.postgres;
        assert!(!sorts && !scans, "{plan}");
    }
    for append in [APPEND_FREE, APPEND_LEASED] {
        let plan = postgres.plan(append.with_changes).await;
        // That table is empty here; the tests of attachments cover it.
        let plan = plan.replace("Seq Scan on attachment_puts", "");
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
    let plan = postgres.plan(UNFINISHED).await;
    assert!(plan.contains("using turns_unfinished on turns"), "{plan}");
    // The history reads each event by its key, and the last turns in the order of their key.
    let plan = postgres.plan(HEAD).await;
    let by_key = "using events_pkey on events";
    assert_eq!(plan.matches(by_key).count(), 5, "{plan}");
    let last = "Backward using turns_pkey on turns";
    assert_eq!(plan.matches(last).count(), 2, "{plan}");
}

/// Inserts only one session, with 7,000 turns. PostgreSQL's statistics then say that every row matches any session.
const ONE_LONG_SESSION: &str = r#"
INSERT INTO sessions (id, "user", created, updated) VALUES ('s_1', 'u_1', 0, 0);
INSERT INTO events (session, seq, turn, frame, time, body)
SELECT 's_1', n, 't_' || (n - 1) / 3, '', n, repeat('x', 300) FROM generate_series(1, 21000) AS n;
INSERT INTO turns (session, ordinal, turn, first_seq, question_seq, answer_seq, finished)
SELECT 's_1', n, 't_' || n, n * 3 + 1, n * 3 + 1, n * 3 + 2, 1 FROM generate_series(0, 6999) AS n;
ANALYZE sessions, events, turns;
SET plan_cache_mode = force_generic_plan"#;

#[tokio::test]
async fn a_turn_reads_events_and_turns_by_key_even_if_only_one_session_exists() {
    let postgres = ManyRows::only(ONE_LONG_SESSION).await;
    for statement in [
        APPEND_FREE.log_only,
        APPEND_FREE.with_changes,
        APPEND_LEASED.log_only,
        APPEND_LEASED.with_changes,
        HEAD,
        LOG_END,
        PREVIOUS_HASH,
        TURN_EVENTS,
        UNDONE_SEQ,
    ] {
        let plan = postgres.plan(statement).await;
        let scans = ["Seq Scan on events", "Seq Scan on turns"];
        assert!(!scans.iter().any(|scan| plan.contains(scan)), "{plan}");
    }
}
