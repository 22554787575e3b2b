//! Tests of the rows in PostgreSQL: they are the same as in SQLite, and text may contain any character.

use super::{at, create, log};
use lango_core::{AgentName, EventBody, FrameId, TurnId};
use lango_core::{
    ApprovalAnswer, BusyPolicy, NewSession, RemoteThread, SessionCatalog, SessionId, SessionStore,
    TaskInsertOutcome, TaskQuery, TaskRecord, TaskStore, Timestamp, UserId,
};
use lango_store::Store;
use lango_testkit::postgres;
use lango_testkit::session_store_contract::{LogBuilder, every_kind_of_event};
use rusqlite::types::Value as Cell;
use tokio_postgres::{NoTls, Row};

/// The tables that are derived from the log, with their columns and order, which are the same in both databases.
const TABLES: [(&str, &str, &str); 5] = [
    ("sessions", r#"id, "user", title, created, updated"#, "id"),
    (
        "events",
        "session, seq, turn, frame, time, body, author, hash",
        "session, seq",
    ),
    (
        "turns",
        "session, ordinal, turn, first_seq, question_seq, delegation_seq, answer_seq, finished",
        "session, ordinal",
    ),
    (
        "approvals",
        r#"session, id, "user", turn, time, request, pattern, folder"#,
        "session, id",
    ),
    (
        "remote_threads",
        "session, agent, context, task",
        "session, agent",
    ),
];

#[tokio::test]
async fn a_log_produces_the_same_rows_as_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lango.db");
    let sqlite = Store::open_sqlite(&path, "test-root".into()).unwrap();
    let address = postgres::fresh_schema();
    let postgres = at(&address);
    for store in [&sqlite as &dyn SessionStore, &postgres] {
        write_all_kinds_of_events(store).await;
    }
    drop(sqlite);
    let file = rusqlite::Connection::open(&path).unwrap();
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    for (table, columns, order) in TABLES {
        let query = format!("SELECT {columns} FROM {table} ORDER BY {order}");
        let width = columns.split(',').count();
        let mut statement = file.prepare(&query).unwrap();
        let expected: Vec<Vec<Cell>> = statement
            .query_map([], |row| (0..width).map(|column| row.get(column)).collect())
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let rows = client.query(&query, &[]).await.unwrap();
        let found: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
        assert!(!found.is_empty(), "{table} was not filled");
        let [found, expected] = [found, expected].map(|rows| normal(table, rows));
        assert_eq!(found, expected, "{table}");
    }
}

async fn write_all_kinds_of_events(store: &dyn SessionStore) {
    for (id, batches) in [
        ("s_all", 1),
        ("s_asked", 4),
        ("s_in_one", 1),
        ("s_turns", 2),
    ] {
        let session = NewSession {
            id: id.into(),
            user: UserId::from("ann"),
            created: Timestamp(7),
        };
        store.create(session).await.unwrap();
        let id = SessionId::from(id);
        let always = ApprovalAnswer::Always {
            pattern: "p*".into(),
            folder: "/f".into(),
        };
        let asked = LogBuilder::new(&id)
            .ask("ask me")
            .request("p_1", Some("p*".into()))
            .request("p_2", Some("p*".into()))
            .request("p_3", None);
        let mut events = match id.as_str() {
            "s_all" => every_kind_of_event(&id).to_vec(),
            "s_turns" => LogBuilder::new(&id)
                .exchange("one", "1")
                .ask("two")
                .batch()
                .iter()
                .chain(
                    LogBuilder::new(&id)
                        .at(5)
                        .exchange("three", "3")
                        .batch()
                        .iter(),
                )
                .cloned()
                .collect(),
            _ => asked
                .answer("p_1", always)
                .answer("p_2", ApprovalAnswer::Once)
                .finish()
                .batch()
                .to_vec(),
        };
        while !events.is_empty() {
            let count = events.len().div_ceil(batches).min(events.len());
            let rest = events.split_off(count);
            store.append(events.into()).await.unwrap();
            events = rest;
        }
    }
}

fn cells(row: &Row) -> Vec<Cell> {
    let columns = row.columns().iter().enumerate();
    let cells = columns.map(|(at, column)| match column.type_().name() {
        "int8" => row.get::<_, Option<i64>>(at).map(Cell::Integer),
        "bytea" => row.get::<_, Option<Vec<u8>>>(at).map(Cell::Blob),
        _ => row.get::<_, Option<String>>(at).map(Cell::Text),
    });
    cells.map(|cell| cell.unwrap_or(Cell::Null)).collect()
}

/// Normalizes the JSON of requests, whose whitespace differs between the databases.
fn normal(table: &str, mut rows: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    for row in rows.iter_mut().filter(|_| table == "approvals") {
        let Cell::Text(request) = &row[5] else {
            panic!("a request is text")
        };
        let request: serde_json::Value = serde_json::from_str(request).unwrap();
        row[5] = Cell::Text(request.to_string());
    }
    rows
}

/// PostgreSQL's text cannot contain NUL, but names from models and remote agents may.
#[tokio::test]
async fn names_with_any_character_are_read_as_they_were_written() {
    let store = at(&postgres::fresh_schema());
    let odd = "\0 and \u{1} and \u{1}0 \u{10ffff}";
    let session = create(&store, odd).await;
    let lease = store.acquire(&session, BusyPolicy::Refuse).await;
    let _lease = lease.unwrap_or_else(|error| panic!("{error}"));
    let mut builder = LogBuilder::new(&session).exchange(odd, odd).ask(odd);
    let thread = RemoteThread {
        context: odd.into(),
        task: Some(odd.into()),
    };
    builder = builder
        .add(
            odd,
            odd,
            EventBody::RemoteAccepted {
                thread: thread.clone(),
            },
        )
        .request(odd, Some(odd.into()));
    let mut events = builder.batch().to_vec();
    for event in &mut events[3..] {
        (event.turn, event.frame) = (TurnId::from(odd), FrameId::from(odd));
    }
    store.append(events.clone().into()).await.unwrap();
    assert_eq!(log(&store, &session).await, events);
    let turn = store.turn_events(&session, &odd.into()).await.unwrap();
    assert_eq!(turn, events[3..]);
    assert_eq!(store.verify(&session).await.unwrap(), events.len() as u64);
    let user = UserId::from("local");
    let found = store.find(&user, "\0 and \u{1}", 9).await.unwrap();
    assert_eq!((found[0].id.as_str(), found[0].title.as_str()), (odd, odd));
    let remote = AgentName::from(odd);
    let found = store.remote_thread(&session, &remote).await.unwrap();
    assert_eq!(found, Some(thread));
    let always = ApprovalAnswer::Always {
        pattern: odd.into(),
        folder: odd.into(),
    };
    let mut builder = LogBuilder::new(&session).at(7).answer(odd, always);
    store.append(builder.batch()).await.unwrap();
    let granted = store.grants(&session, odd).await.unwrap();
    assert_eq!(granted.len(), 1);
    assert_eq!((&*granted[0].pattern, granted[0].id.as_str()), (odd, odd));
    let task = TaskRecord {
        id: odd.into(),
        user: UserId::from(odd),
        context: odd.into(),
        state: odd.into(),
        is_running: true,
        updated: Timestamp(1),
        body: odd.into(),
        revision: 1,
        attempts: 0,
    };
    let opened = store.insert(task.clone(), odd).await;
    assert_eq!(opened.unwrap(), TaskInsertOutcome::New);
    let query = TaskQuery {
        context: Some(odd.into()),
        limit: 9,
        ..TaskQuery::default()
    };
    let found = TaskStore::list(&store, &task.user, query).await.unwrap();
    assert_eq!(found.tasks, [task]);
}
