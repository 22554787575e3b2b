//! Tests with a database of an old version without authors: it opens, its rows stay unchanged, and authors are inferred.

use super::{ROOT, append, log, open};
use lango_core::{EventBody, ExchangeAnswer, SessionId, SessionStore};
use lango_testkit::session_store_contract::LogBuilder;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const ROWS: [&str; 2] = [
    "SELECT id || '|' || user || '|' || title || '|' || created || '|' || updated FROM sessions ORDER BY 1",
    "SELECT session || '|' || seq || '|' || turn || '|' || frame || '|' || time || '|' || hex(body) FROM events ORDER BY session, seq",
];

fn old_database() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch(include_str!("../fixtures/schema_1.sql"))
        .unwrap();
    (folder, path)
}

fn texts(path: &Path, query: &str) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

#[tokio::test]
async fn a04_a_database_from_before_authors_opens_and_replays() {
    let (_folder, path) = old_database();
    let store = open(&path);
    let old = SessionId::from("s_old");
    let events = log(&store, &old).await;
    assert_eq!(events.len(), 12);
    assert!(
        matches!(&events[10].body, EventBody::UserMessage { text, origin: None, settings: None, .. } if &**text == "never mind ä\0")
    );

    let head = store.read_head(&old).await.unwrap();
    assert_eq!((head.next_seq, head.turns, head.unfinished), (13, 3, None));
    let answers: Vec<_> = head
        .exchanges
        .into_iter()
        .map(|exchange| exchange.answer)
        .collect();
    let answer = |text: &str, task: Option<&str>| {
        Some(ExchangeAnswer {
            author: ROOT.into(),
            text: text.into(),
            task: task.map(Into::into),
            is_remote: false,
            // Rows of old versions of lango do not record the model.
            is_notice: true,
            trust: lango_core::Trust::Untrusted,
        })
    };
    assert_eq!(
        answers,
        [
            answer("Hello! What can I do?", None),
            answer("It says 42.", Some("read a.txt")),
            None
        ]
    );

    let cut = store.read_head(&SessionId::from("s_cut")).await.unwrap();
    assert_eq!((cut.next_seq, cut.turns, cut.unfinished), (3, 1, Some(1)));
    assert_eq!(cut.exchanges, []);
}

#[tokio::test]
async fn a04_a_migration_does_not_change_any_other_column() {
    let (_folder, path) = old_database();
    let before = ROWS.map(|query| texts(&path, query));
    drop(open(&path));
    drop(open(&path));
    assert_eq!(ROWS.map(|query| texts(&path, query)), before);
    assert_eq!(before[1].len(), 14);
    assert_eq!(
        texts(&path, "SELECT DISTINCT author || hex(hash) FROM events"),
        [""]
    );
}

#[tokio::test]
async fn a04_the_author_is_optional_and_empty_by_default() {
    let (_folder, path) = old_database();
    drop(open(&path));
    let connection = Connection::open(&path).unwrap();
    let row = "INSERT INTO events (session, seq, turn, frame, time, body)
               VALUES ('s_new', 1, 't_1', '', 5, '{\"type\":\"agent.message\",\"text\":\"hi\"}')";
    connection.execute_batch(row).unwrap();
    assert_eq!(
        texts(&path, "SELECT author FROM events WHERE session = 's_new'"),
        [""]
    );
    assert_eq!(
        log(&open(&path), &SessionId::from("s_new")).await[0].author,
        ROOT
    );
}

#[tokio::test]
async fn a_migrated_database_has_the_schema_of_a_new_one() {
    let (folder, path) = old_database();
    let new = folder.path().join("new.db");
    drop((open(&path), open(&new)));
    let schema = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    assert_eq!(texts(&path, schema), texts(&new, schema));
    assert_eq!(
        texts(&path, "SELECT user_version || '' FROM pragma_user_version"),
        ["19"]
    );
}

#[tokio::test]
async fn a02_a_message_without_an_author_is_the_users_or_the_configured_roots() {
    let (_folder, path) = old_database();
    let events = log(&open(&path), &SessionId::from("s_old")).await;
    for event in events {
        let expected = if event.body.kind() == "user.message" {
            "user"
        } else {
            ROOT
        };
        assert_eq!(event.author, expected, "event {}", event.seq);
    }
}

#[tokio::test]
async fn a01_a_stored_author_is_used_unchanged() {
    let (_folder, path) = old_database();
    let store = open(&path);
    let session = SessionId::from("s_old");
    let mut builder = LogBuilder::new(&session)
        .at(13)
        .ask("more")
        .say("lango-orchestrator", "", "gladly")
        .finish();
    append(&store, builder.batch()).await;
    let authors: Vec<_> = log(&store, &session)
        .await
        .into_iter()
        .skip(11)
        .map(|event| event.author)
        .collect();
    assert_eq!(authors, [ROOT, "user", "lango-orchestrator", "test-root"]);
    let head = store.read_head(&session).await.unwrap();
    assert_eq!(
        head.exchanges[3].answer.as_ref().unwrap().author,
        "lango-orchestrator"
    );
}

#[tokio::test]
async fn an_old_session_continues_with_hashes_from_the_first_new_event() {
    let (_folder, path) = old_database();
    let store = open(&path);
    let session = SessionId::from("s_old");
    append(
        &store,
        LogBuilder::new(&session)
            .at(13)
            .exchange("more", "gladly")
            .batch(),
    )
    .await;
    assert_eq!(store.verify(&session).await.unwrap(), 15);
    let hashed = texts(
        &path,
        "SELECT seq || '' FROM events WHERE session = 's_old' AND length(hash) = 32 ORDER BY seq",
    );
    assert_eq!(hashed, ["13", "14", "15"]);
}
