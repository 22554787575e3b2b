//! Keeping, importing and deleting sessions, the same over every database.

use crate::ROOT;
use lango_core::{
    Answer, Batch, BusyPolicy, EventBody, NewSession, Page, SessionCatalog, SessionId,
    SessionQuery, SessionStore, Source, StoreError, TaskRecord, TaskStore, Timestamp, Trust,
    TurnId, UserId,
};
use lango_store::archive::line::{self, Line};
use lango_store::archive::{ExpiredPage, LogRow, SessionRecord, next_rows, remove_hidden};
use lango_store::tables::tables;
use lango_store::{Chain, DocumentPart, NewChunk, NewDocument, Store};
use lango_testkit::postgres;
use lango_testkit::session_store_contract::{Sketch, every_kind_of_event};
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
    a_log_comes_out_and_goes_in_as_it_is,
    a_session_that_comes_is_not_seen_before_it_is_whole,
    rows_that_do_not_fit_are_refused,
    a_session_is_gone_from_every_table,
    only_what_is_old_and_ended_expires,
);

pub fn sqlite(folder: &tempfile::TempDir, name: &str) -> Arc<Store> {
    let place = format!("sqlite:{}", folder.path().join(name).display());
    Arc::new(Store::at(&place, ROOT.into()).unwrap())
}

pub fn postgresql() -> Arc<Store> {
    Arc::new(Store::at(&postgres::empty(), ROOT.into()).unwrap())
}

fn user() -> UserId {
    UserId::from("local")
}

pub async fn session(store: &Arc<Store>, id: &str, created: u64) -> SessionId {
    let id = SessionId::from(id);
    let session = NewSession {
        id: id.clone(),
        user: user(),
        created: Timestamp(created),
    };
    store.create(session).await.unwrap();
    id
}

pub async fn append(store: &Arc<Store>, batch: Batch) {
    store.append(batch).await.unwrap();
}

/// A session as it is stored.
async fn exported(store: &Arc<Store>, id: &SessionId) -> (SessionRecord, Vec<LogRow>) {
    let record = store.session_record(id).await.unwrap();
    let mut chain = Chain::of(id);
    let mut rows = Vec::new();
    while chain.count() < record.events {
        for row in next_rows(store, &record, &chain).await.unwrap() {
            chain.take(&row).unwrap();
            rows.push(row);
        }
    }
    (record, rows)
}

fn new(record: &SessionRecord) -> NewSession {
    NewSession {
        id: record.id.clone(),
        user: record.user.clone(),
        created: record.created,
    }
}

async fn a_log_comes_out_and_goes_in_as_it_is(store: &Arc<Store>) {
    let id = session(store, "s_1", 7).await;
    append(store, every_kind_of_event(&id)).await;
    let mut more = Sketch::of(&id).at(34);
    for turn in 0..100 {
        more = more.exchange(&format!("question {turn} \u{1}\u{202e}"), "an answer");
    }
    let pattern = || "notes/*".into();
    let granted = Answer::Always {
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
    assert_eq!(record.events, 337);
    for row in &rows {
        let text = line::of_event(row).unwrap().unwrap();
        assert_eq!(line::read(&text), Ok(Line::Event(row.clone())));
        let text = line::spelled_out(row).unwrap().to_string();
        assert_eq!(line::read(&text), Ok(Line::Event(row.clone())));
    }
    let before = (
        store.open(&id).await.unwrap(),
        store.approvals(&user()).await.unwrap(),
        SessionCatalog::list(&**store, &user(), SessionQuery::recent(9))
            .await
            .unwrap(),
    );
    assert_eq!(before.1.granted.len(), 1);
    assert!(!before.1.waiting.is_empty());
    assert!(store.hide_session(&id, None).await.unwrap());
    remove_hidden(store, &id).await.unwrap();
    store.start_import(new(&record)).await.unwrap();
    for rows in rows.chunks(70) {
        store.import_rows(rows.to_vec()).await.unwrap();
    }
    assert_eq!(store.finish_import(record.clone()).await.unwrap(), 1);
    assert_eq!(exported(store, &id).await, (record, rows));
    let after = (
        store.open(&id).await.unwrap(),
        store.approvals(&user()).await.unwrap(),
        SessionCatalog::list(&**store, &user(), SessionQuery::recent(9))
            .await
            .unwrap(),
    );
    assert_eq!(after.0, before.0);
    assert_eq!(after.1.waiting, before.1.waiting);
    assert_eq!(after.1.granted, []);
    assert_eq!(after.2, before.2);
    append(
        store,
        Sketch::of(&id).at(338).exchange("on", "and on").batch(),
    )
    .await;
    assert_eq!(store.verify(&id).await.unwrap(), 340);
}

async fn a_session_that_comes_is_not_seen_before_it_is_whole(store: &Arc<Store>) {
    let id = session(store, "s_1", 7).await;
    append(store, Sketch::of(&id).ask("one").batch()).await;
    let (record, rows) = exported(store, &id).await;
    assert!(store.hide_session(&id, None).await.unwrap());
    remove_hidden(store, &id).await.unwrap();
    let _held = store.acquire(&id, BusyPolicy::Refuse).await.unwrap();
    store.start_import(new(&record)).await.unwrap();
    store.import_rows(rows.clone()).await.unwrap();
    let gone = |error: StoreError| assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    gone(store.open(&id).await.unwrap_err());
    gone(store.session_record(&id).await.unwrap_err());
    let more = Sketch::of(&id).at(2).exchange("two", "2").batch();
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

async fn rows_that_do_not_fit_are_refused(store: &Arc<Store>) {
    let id = session(store, "s_1", 7).await;
    append(store, Sketch::of(&id).exchange("one", "1").batch()).await;
    let (record, rows) = exported(store, &id).await;
    // One that everybody sees takes nothing that comes from elsewhere.
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

/// A document that one session alone can search.
pub async fn attach(store: &Arc<Store>, session: Option<&SessionId>, text: &str) {
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
        source: Source {
            name: "notes.md".into(),
            trust: Trust::Trusted,
        },
        title: "Notes".into(),
        hash: [7; 32],
        size: 9,
        added: Timestamp(1),
    };
    let piece = DocumentPart {
        document: Arc::new(document),
        before: 0,
        is_last: true,
        chunks: (0..9).map(chunk).collect(),
    };
    store.write_documents(vec![piece], None).await.unwrap();
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

async fn keep(store: &Arc<Store>, task: TaskRecord) {
    let message = task.id.to_string();
    store.insert(task, &message).await.unwrap();
}

/// How many rows of each table name this session, or are of a library.
async fn left(store: &Arc<Store>, id: &str) -> Vec<(&'static str, usize)> {
    let mut left = Vec::new();
    for table in tables().await.unwrap() {
        let rows = store.table_page(table, None, 1000).await.unwrap();
        let at = table.columns.iter().position(|column| match &*table.name {
            "sessions" => column.name == "id",
            _ => column.name == "session",
        });
        let is_its = |row: &Vec<_>| match at {
            Some(at) => row[at] == lango_store::tables::Cell::Text(id.to_owned()),
            None => true,
        };
        let count = rows.iter().filter(|row| is_its(row)).count();
        left.extend((count > 0).then_some((table.name.as_str(), count)));
    }
    left
}

async fn a_session_is_gone_from_every_table(store: &Arc<Store>) {
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
    keep(store, task(turn, "conversation", 5)).await;
    keep(store, task("rejected", "conversation", 5)).await;
    assert!(!left(store, "s_1").await.is_empty());
    assert!(store.hide_session(&one, None).await.unwrap());
    assert!(
        !store.hide_session(&one, None).await.unwrap(),
        "it is hidden already"
    );
    let mut steps = 0;
    while !store.remove_portion(&one).await.unwrap() {
        steps += 1;
        assert!(steps < 100, "it does not end");
    }
    let others: Vec<&str> = left(store, "s_1")
        .await
        .iter()
        .map(|(name, _)| *name)
        .collect();
    // What is left of the library is the other session's.
    assert_eq!(others, ["library_documents", "library_chunks"]);
    let mut all = tables().await.unwrap().iter();
    let chunks = all.find(|table| table.name == "library_chunks").unwrap();
    assert_eq!(store.count_rows(chunks).await.unwrap(), 9);
    let is_left = store.remove_portion(&two).await.unwrap();
    assert!(is_left, "it is not hidden");
    assert_eq!(store.verify(&two).await.unwrap(), 33);
    assert!(store.remove_portion(&one).await.unwrap());
    let again = session(store, "s_1", 9).await;
    append(store, Sketch::of(&again).exchange("new", "1").batch()).await;
}

async fn only_what_is_old_and_ended_expires(store: &Arc<Store>) {
    let [old, open, new] =
        ["s_old", "s_open", "s_new"].map(|id| async move { session(store, id, 7).await });
    let (old, open, new) = (old.await, open.await, new.await);
    // The time of a sketch is 1000 and the number of the event.
    append(store, Sketch::of(&old).exchange("one", "1").batch()).await;
    append(store, Sketch::of(&open).ask("one").batch()).await;
    append(store, Sketch::of(&new).exchange("one", "1").batch()).await;
    let late = Sketch::of(&new).at(4).exchange("two", "2").batch();
    let late: Batch = late
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
        keep(store, task(id, "c", updated)).await;
    }
    let running = TaskRecord {
        is_running: true,
        ..task("running", "c", 4000)
    };
    keep(store, running).await;
    assert_eq!(store.remove_old_tasks(&user(), before, 9).await.unwrap(), 1);
    assert_eq!(store.remove_old_tasks(&user(), before, 9).await.unwrap(), 0);
    assert!(store.get(&user(), "old").await.unwrap().is_none());
    assert!(store.get(&user(), "new").await.unwrap().is_some());
    let page = Page { from: 1, limit: 1 };
    let first = SessionStore::read(&**store, &new, page).await.unwrap();
    assert!(matches!(first[0].body, EventBody::UserMessage { .. }));
}

#[test]
fn a_change_of_any_byte_of_an_export_is_seen() {
    let id = SessionId::from("s_1");
    let mut chain_end = Vec::new();
    let mut rows = Vec::new();
    for event in every_kind_of_event(&id).iter() {
        let mut row = LogRow {
            session: id.clone(),
            seq: event.seq,
            turn: event.turn.as_str().into(),
            frame: event.frame.as_str().into(),
            author: event.author.as_str().into(),
            time: event.time,
            body: serde_json::to_string(&event.body).unwrap(),
            hash: Vec::new(),
        };
        row.hash = hash_after(&row, &chain_end);
        chain_end.clone_from(&row.hash);
        rows.push(row);
    }
    let record = SessionRecord {
        id: id.clone(),
        user: user(),
        title: "a title".to_owned(),
        created: Timestamp(7),
        updated: Timestamp(8),
        events: rows.len() as u64,
        hash: chain_end,
    };
    let heading = serde_json::to_string(&line::heading(&record, 0)).unwrap();
    // Other versions of lango read these lines: neither names nor their order change.
    let known = r#"{"lango_session":1,"id":"s_1","user":"local","created":7,"updated":8,"title":"a title","events":33,"hash":""#;
    assert!(heading.starts_with(known), "{heading}");
    let known =
        r#"{"seq":1,"session":"s_1","turn":"t_1","frame":"","author":"user","time":1001,"type":"#;
    let first = line::of_event(&rows[0]).unwrap().unwrap();
    assert!(first.starts_with(known), "{first}");
    let heading = line::sealed(&heading);
    assert_eq!(line::read(&heading), Ok(Line::Session(record)));
    for at in 0..heading.len() {
        let mut bytes = heading.clone().into_bytes();
        bytes[at] ^= 1;
        let text = String::from_utf8(bytes).unwrap();
        assert!(line::read(&text).is_err(), "{text}");
    }
    let mut chain = Chain::of(&id);
    for row in &rows {
        let text = line::of_event(row).unwrap().unwrap();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(text) = String::from_utf8(bytes) else {
                continue;
            };
            let mut chain = chain_copy(&chain, &id, &rows);
            let is_seen = match line::read(&text) {
                Ok(Line::Event(row)) => chain.take(&row).is_err(),
                _ => true,
            };
            assert!(is_seen, "{text}");
        }
        chain.take(row).unwrap();
    }
}

/// The same chain again, which does not let itself be copied.
fn chain_copy(chain: &Chain, id: &SessionId, rows: &[LogRow]) -> Chain {
    let mut copy = Chain::of(id);
    for row in rows.iter().take(chain.count() as usize) {
        copy.take(row).unwrap();
    }
    copy
}

/// The hash of a row, computed by hand: what it covers is part of the form of an export.
fn hash_after(row: &LogRow, previous: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let (seq, time) = (
        (row.seq as i64).to_be_bytes(),
        (row.time.0 as i64).to_be_bytes(),
    );
    let fields: [&[u8]; 8] = [
        previous,
        &seq,
        &time,
        row.session.as_str().as_bytes(),
        row.turn.as_bytes(),
        row.frame.as_bytes(),
        row.author.as_bytes(),
        row.body.as_bytes(),
    ];
    let mut hasher = Sha256::new();
    for field in fields {
        hasher.update((field.len() as u64).to_be_bytes());
        hasher.update(field);
    }
    hasher.finalize().to_vec()
}
