//! Tests of exporting, importing and deleting sessions, on every database.

use crate::ROOT;
use lango_core::{
    ApprovalAnswer, Approvals, BusyPolicy, EventBatch, EventBody, EventRange, NewSession,
    Provenance, SessionCatalog, SessionHead, SessionId, SessionQuery, SessionStore, SessionSummary,
    StoreError, TaskRecord, TaskStore, Timestamp, Trust, TurnId, UserId,
};
use lango_store::archive::line::{self, Line};
use lango_store::archive::{ExpiredPage, LogRow, SessionRecord, next_rows, remove_hidden};
use lango_store::tables::tables;
use lango_store::{DocumentPart, LogVerifier, NewChunk, NewDocument, Store};
use lango_testkit::postgres;
use lango_testkit::session_store_contract::{LogBuilder, every_kind_of_event};
use std::sync::Arc;

macro_rules! over_every_database {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(&super::sqlite(&folder, "lango.db")).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(&super::postgresql()).await;
            })+
        }
    };
}

over_every_database!(
    an_exported_log_can_be_imported_unchanged,
    an_imported_session_is_hidden_until_it_is_complete,
    inconsistent_rows_are_refused,
    a_removed_session_leaves_no_rows_in_any_table,
    only_old_and_finished_sessions_and_tasks_expire,
);

pub(crate) fn sqlite(folder: &tempfile::TempDir, name: &str) -> Arc<Store> {
    let address = format!("sqlite:{}", folder.path().join(name).display());
    Arc::new(Store::at(&address, ROOT.into()).unwrap())
}

pub(crate) fn postgresql() -> Arc<Store> {
    Arc::new(Store::at(&postgres::fresh_schema(), ROOT.into()).unwrap())
}

fn user() -> UserId {
    UserId::from("local")
}

pub(crate) async fn session(store: &Arc<Store>, id: &str, created: u64) -> SessionId {
    let id = SessionId::from(id);
    let session = NewSession {
        id: id.clone(),
        user: user(),
        created: Timestamp(created),
    };
    store.create(session).await.unwrap();
    id
}

pub(crate) async fn append(store: &Arc<Store>, batch: EventBatch) {
    store.append(batch).await.unwrap();
}

/// Exports a session.
async fn exported(store: &Arc<Store>, id: &SessionId) -> (SessionRecord, Vec<LogRow>) {
    let record = store.session_record(id).await.unwrap();
    let mut chain = LogVerifier::new(id);
    let mut rows = Vec::new();
    while chain.count() < record.events {
        for row in next_rows(store, &record, &chain).await.unwrap() {
            chain.verify(&row).unwrap();
            rows.push(row);
        }
    }
    (record, rows)
}

fn new(record: &SessionRecord) -> NewSession {
    let (id, user) = (record.id.clone(), record.user.clone());
    let created = record.created;
    NewSession { id, user, created }
}

/// Returns what readers see of a session and its user.
async fn state(
    store: &Arc<Store>,
    id: &SessionId,
) -> (SessionHead, Approvals, Vec<SessionSummary>) {
    let sessions = SessionCatalog::list(&**store, &user(), SessionQuery::recent(9)).await;
    let approvals = store.approvals(&user()).await.unwrap();
    let head = store.read_head(id).await.unwrap();
    (head, approvals, sessions.unwrap())
}

async fn an_exported_log_can_be_imported_unchanged(store: &Arc<Store>) {
    let id = session(store, "s_1", 7).await;
    append(store, every_kind_of_event(&id)).await;
    let mut more = LogBuilder::new(&id).at(36);
    for turn in 0..100 {
        more = more.exchange(&format!("question {turn} \u{1}\u{202e}"), "an answer");
    }
    for turn in [95, 99] {
        more = more.undo(&format!("t_{}", 36 + 3 * turn), &["a", "b"]);
    }
    let pattern = || "notes/*".into();
    let granted = ApprovalAnswer::Always {
        pattern: pattern(),
        folder: "/x".into(),
    };
    let mut more = more
        .ask("and this?")
        .request("p_granted", Some(pattern()))
        .answer("p_granted", granted)
        .request("p_waits", Some(pattern()));
    append(store, more.batch()).await;
    let (record, rows) = exported(store, &id).await;
    assert_eq!(record.events, 341);
    for row in &rows {
        let text = line::format_event(row).unwrap().unwrap();
        assert_eq!(line::parse(&text), Ok(Line::Event(row.clone())));
        let text = line::format_escaped_event(row).unwrap().to_string();
        assert_eq!(line::parse(&text), Ok(Line::Event(row.clone())));
    }
    let before = state(store, &id).await;
    assert!(before.1.granted.len() == 1 && !before.1.waiting.is_empty());
    let undone = before.0.exchanges.iter();
    assert_eq!(undone.filter(|turn| turn.undone.is_some()).count(), 2);
    assert!(store.hide_session(&id, None).await.unwrap());
    remove_hidden(store, &id).await.unwrap();
    store.start_import(new(&record)).await.unwrap();
    for rows in rows.chunks(70) {
        store.import_rows(rows.to_vec()).await.unwrap();
    }
    assert_eq!(store.finish_import(record.clone()).await.unwrap(), 1);
    assert_eq!(exported(store, &id).await, (record, rows));
    let after = state(store, &id).await;
    assert_eq!(after.0, before.0);
    assert_eq!(after.1.waiting, before.1.waiting);
    assert_eq!(after.1.granted, []);
    assert_eq!(after.2, before.2);
    append(
        store,
        LogBuilder::new(&id)
            .at(342)
            .exchange("on", "and on")
            .batch(),
    )
    .await;
    assert_eq!(store.verify(&id).await.unwrap(), 344);
}

async fn an_imported_session_is_hidden_until_it_is_complete(store: &Arc<Store>) {
    let id = session(store, "s_1", 7).await;
    append(store, LogBuilder::new(&id).ask("one").batch()).await;
    let (record, rows) = exported(store, &id).await;
    assert!(store.hide_session(&id, None).await.unwrap());
    remove_hidden(store, &id).await.unwrap();
    let _lease = store.acquire(&id, BusyPolicy::Refuse).await.unwrap();
    store.start_import(new(&record)).await.unwrap();
    store.import_rows(rows.clone()).await.unwrap();
    let assert_not_found =
        |error: StoreError| assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert_not_found(store.read_head(&id).await.unwrap_err());
    assert_not_found(store.session_record(&id).await.unwrap_err());
    let more = LogBuilder::new(&id).at(2).exchange("two", "2").batch();
    let appended = store.append(more).await.unwrap_err();
    assert!(
        !matches!(appended, StoreError::Conflict { .. }),
        "{appended}"
    );
    let listed = SessionCatalog::list(&**store, &user(), SessionQuery::recent(9));
    assert_eq!(listed.await.unwrap(), []);
    assert_eq!(store.find(&user(), "s_", 9).await.unwrap(), []);
    assert_eq!(store.unfinished(None, 9).await.unwrap(), []);
    assert!(
        store
            .session_ids(&user(), None, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        store.hidden_sessions(&user(), None, 9).await.unwrap(),
        ["s_1"]
    );
    let taken = store.start_import(new(&record)).await.unwrap_err();
    assert!(matches!(taken, StoreError::Exists { .. }), "{taken}");
    let short = SessionRecord {
        events: 2,
        ..record.clone()
    };
    assert!(store.finish_import(short).await.is_err());
    store.finish_import(record).await.unwrap();
    assert_eq!(store.unfinished(None, 9).await.unwrap().len(), 1);
    assert!(
        store
            .hidden_sessions(&user(), None, 9)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn inconsistent_rows_are_refused(store: &Arc<Store>) {
    let id = session(store, "s_1", 7).await;
    append(store, LogBuilder::new(&id).exchange("one", "1").batch()).await;
    let (record, rows) = exported(store, &id).await;
    // Rows cannot be imported into a visible session.
    assert!(store.import_rows(rows.clone()).await.is_err());
    assert!(store.hide_session(&id, None).await.unwrap());
    remove_hidden(store, &id).await.unwrap();
    store.start_import(new(&record)).await.unwrap();
    let changed = |change: fn(&mut LogRow)| {
        let mut rows = rows.clone();
        change(&mut rows[1]);
        rows
    };
    for rows in [
        rows[1..].to_vec(),
        vec![rows[0].clone(), rows[2].clone()],
        changed(|row| row.time = Timestamp(1)),
        changed(|row| row.author = "user".into()),
        changed(|row| row.hash = vec![]),
        changed(|row| row.body.push(' ')),
        changed(|row| row.session = "s_2".into()),
    ] {
        let refused = store.import_rows(rows).await.unwrap_err();
        assert!(matches!(refused, StoreError::Damaged { .. }), "{refused}");
    }
    store.import_rows(rows).await.unwrap();
    assert_eq!(store.finish_import(record).await.unwrap(), 0);
}

/// Adds a document that only one session can search, or all sessions if `session` is `None`.
pub(crate) async fn attach(store: &Arc<Store>, session: Option<&SessionId>, text: &str) {
    let collection = store.collection(&user(), "notes", session).await.unwrap();
    let chunk = |at: u64| NewChunk {
        heading: "Heading".to_owned(),
        text: format!("{text} {at}"),
        position: at,
        words: 2,
        vector: None,
    };
    let document = NewDocument {
        collection,
        source: Provenance {
            name: "notes.md".into(),
            trust: Trust::Trusted,
        },
        title: "Notes".into(),
        hash: [7; 32],
        size: 9,
        added: Timestamp(1),
    };
    let part = DocumentPart {
        document: Arc::new(document),
        before: 0,
        is_last: true,
        chunks: (0..9).map(chunk).collect(),
    };
    store.write_documents(vec![part], None).await.unwrap();
}

fn task(id: &str, context: &str, updated: u64) -> TaskRecord {
    TaskRecord {
        id: id.into(),
        user: user(),
        context: context.into(),
        state: "completed".into(),
        is_running: false,
        updated: Timestamp(updated),
        body: "{}".into(),
        revision: 1,
        attempts: 0,
    }
}

async fn insert_task(store: &Arc<Store>, task: TaskRecord) {
    let message = task.id.to_string();
    store.insert(task, &message).await.unwrap();
}

/// Counts the rows of each table that belong to this session. Counts all rows of tables without a session column.
async fn rows_left(store: &Arc<Store>, id: &str) -> Vec<(&'static str, usize)> {
    let mut counts = Vec::new();
    for table in tables().await.unwrap() {
        let rows = store.table_page(table, None, 1000).await.unwrap();
        let at = table.columns.iter().position(|column| match &*table.name {
            "sessions" => column.name == "id",
            _ => column.name == "session",
        });
        let belongs = |row: &Vec<_>| match at {
            Some(at) => row[at] == lango_store::tables::Cell::Text(id.to_owned()),
            None => true,
        };
        let count = rows.iter().filter(|row| belongs(row)).count();
        counts.extend((count > 0).then_some((table.name.as_str(), count)));
    }
    counts
}

async fn a_removed_session_leaves_no_rows_in_any_table(store: &Arc<Store>) {
    let (one, two) = (
        session(store, "s_1", 7).await,
        session(store, "s_2", 7).await,
    );
    for id in [&one, &two] {
        append(store, every_kind_of_event(id)).await;
        attach(store, Some(id), "only here").await;
    }
    let turn = TurnId::from("t_1");
    let of_turn = store.turn_events(&one, &turn).await.unwrap();
    let turn = of_turn.first().map_or("t_1", |event| event.turn.as_str());
    insert_task(store, task(turn, "conversation", 5)).await;
    insert_task(store, task("rejected", "conversation", 5)).await;
    assert!(!rows_left(store, "s_1").await.is_empty());
    assert!(store.hide_session(&one, None).await.unwrap());
    assert!(
        !store.hide_session(&one, None).await.unwrap(),
        "it is already hidden"
    );
    let mut steps = 0;
    while !store.remove_portion(&one).await.unwrap() {
        steps += 1;
        assert!(steps < 100, "the removal does not end");
    }
    let others: Vec<&str> = rows_left(store, "s_1")
        .await
        .iter()
        .map(|(name, _)| *name)
        .collect();
    // The remaining rows of the library belong to the other session.
    assert_eq!(others, ["library_documents", "library_chunks"]);
    let mut all = tables().await.unwrap().iter();
    let chunks = all.find(|table| table.name == "library_chunks").unwrap();
    assert_eq!(store.count_rows(chunks).await.unwrap(), 9);
    let is_complete = store.remove_portion(&two).await.unwrap();
    assert!(is_complete, "a visible session has nothing to remove");
    assert_eq!(store.verify(&two).await.unwrap(), 35);
    assert!(store.remove_portion(&one).await.unwrap());
    let again = session(store, "s_1", 9).await;
    append(store, LogBuilder::new(&again).exchange("new", "1").batch()).await;
}

async fn only_old_and_finished_sessions_and_tasks_expire(store: &Arc<Store>) {
    let [old, open, new] =
        ["s_old", "s_open", "s_new"].map(|id| async move { session(store, id, 7).await });
    let (old, open, new) = (old.await, open.await, new.await);
    // The builder sets the time of an event to 1000 plus its number.
    append(store, LogBuilder::new(&old).exchange("one", "1").batch()).await;
    append(store, LogBuilder::new(&open).ask("one").batch()).await;
    append(store, LogBuilder::new(&new).exchange("one", "1").batch()).await;
    let late = LogBuilder::new(&new).at(4).exchange("two", "2").batch();
    let late: EventBatch = late
        .iter()
        .cloned()
        .map(|mut event| {
            event.time = Timestamp(9000);
            event
        })
        .collect();
    append(store, late).await;
    let page = ExpiredPage { skip: 0, limit: 9 };
    let before = Timestamp(5000);
    assert_eq!(
        store.expired_sessions(&user(), before, page).await.unwrap(),
        ["s_old"]
    );
    let other = UserId::from("other");

    assert!(
        store
            .expired_sessions(&other, before, page)
            .await
            .unwrap()
            .is_empty()
    );
    for (id, is_hidden) in [(&open, false), (&new, false), (&old, true)] {
        assert_eq!(
            store.hide_session(id, Some(before)).await.unwrap(),
            is_hidden,
            "{id}"
        );
    }
    for (id, updated) in [("old", 4000), ("new", 6000)] {
        insert_task(store, task(id, "c", updated)).await;
    }
    let running = TaskRecord {
        is_running: true,
        ..task("running", "c", 4000)
    };
    insert_task(store, running).await;
    assert_eq!(store.remove_old_tasks(&user(), before, 9).await.unwrap(), 1);
    assert_eq!(store.remove_old_tasks(&user(), before, 9).await.unwrap(), 0);
    assert!(store.get(&user(), "old").await.unwrap().is_none());
    assert!(store.get(&user(), "new").await.unwrap().is_some());
    let page = EventRange { from: 1, limit: 1 };
    let first = SessionStore::read(&**store, &new, page).await.unwrap();
    assert!(matches!(first[0].body, EventBody::UserMessage { .. }));
}
