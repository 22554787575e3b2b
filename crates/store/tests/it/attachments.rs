//! Tests of the lifetime of attachments, on every database: they are stored while a session refers to them or a put waits for its
//! event.

use crate::ROOT;
use crate::archive::{append, session};
use lango_core::{
    Attachment, AttachmentStore, EventBatch, NewSession, SessionId, SessionStore, StoreError, Text,
    Timestamp, UserId,
};
use lango_store::archive::{LogRow, SessionRecord, next_rows, remove_hidden};
use lango_store::tables::tables;
use lango_store::{LogVerifier, Store};
use lango_testkit::postgres;
use lango_testkit::session_store_contract::{LogBuilder, attachment};
use std::path::PathBuf;
use std::sync::Arc;

macro_rules! over_every_database {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(&super::TestStore::sqlite(&folder)).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(&super::TestStore::postgresql()).await;
            })+
        }
    };
}

over_every_database!(
    bytes_are_stored_once_however_often_they_are_put,
    deleting_a_session_deletes_its_attachments,
    bytes_of_two_sessions_stay_until_both_are_deleted,
    bytes_put_for_a_later_event_survive_the_deletion_of_another_session,
    a_put_concurrent_with_a_deletion_keeps_its_bytes,
    bytes_that_no_event_refers_to_are_deleted_after_a_day,
    a_refused_append_adds_no_references,
    users_do_not_share_the_same_bytes,
    an_imported_session_refers_to_its_attachments,
    a_log_whose_attachment_is_missing_or_changed_is_damaged,
);

/// A database, and direct access to it.
struct TestStore {
    store: Arc<Store>,
    direct: Direct,
}

enum Direct {
    Sqlite(PathBuf),
    Postgres(String),
}

impl TestStore {
    fn sqlite(folder: &tempfile::TempDir) -> Self {
        let path = folder.path().join("lango.db");
        let test = format!("sqlite:{}", path.display());
        Self {
            store: Arc::new(Store::at(&test, ROOT.into()).unwrap()),
            direct: Direct::Sqlite(path),
        }
    }

    fn postgresql() -> Self {
        let address = postgres::fresh_schema();
        Self {
            store: Arc::new(Store::at(&address, ROOT.into()).unwrap()),
            direct: Direct::Postgres(address),
        }
    }

    async fn execute(&self, statement: &str) {
        match &self.direct {
            Direct::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.execute_batch(statement).unwrap();
            }
            Direct::Postgres(address) => crate::postgres::execute(address, statement).await,
        }
    }

    /// Makes all puts a little more than a day older.
    async fn wait_a_day(&self) {
        self.execute("UPDATE attachment_puts SET time = time - 86400001")
            .await;
    }

    async fn put(&self, bytes: &[u8]) -> Attachment {
        let digest = AttachmentStore::put(&*self.store, &user(), bytes.into())
            .await
            .unwrap();
        attachment("file.txt", &digest, bytes.len())
    }

    async fn has(&self, file: &Attachment) -> bool {
        let read = AttachmentStore::read(&*self.store, &user(), &file.digest).await;
        read.unwrap().is_some()
    }

    /// Creates a session with a turn that refers to a file.
    async fn session(&self, id: &str, file: &Attachment) -> SessionId {
        let id = session(&self.store, id, 7).await;
        append(&self.store, ask_with_file(&id, 1, file)).await;
        id
    }

    async fn delete(&self, id: &SessionId) {
        assert!(self.store.hide_session(id, None).await.unwrap());
        remove_hidden(&self.store, id).await.unwrap();
    }

    /// Counts the rows of attachments, references and puts.
    async fn rows(&self) -> [u64; 3] {
        let mut rows = [0; 3];
        let names = ["attachments", "attachment_references", "attachment_puts"];
        for (count, name) in rows.iter_mut().zip(names) {
            let table = tables()
                .await
                .unwrap()
                .iter()
                .find(|table| table.name == name)
                .unwrap();
            *count = self.store.count_rows(table).await.unwrap();
        }
        rows
    }
}

fn user() -> UserId {
    UserId::from("local")
}

fn ask_with_file(session: &SessionId, seq: u64, file: &Attachment) -> EventBatch {
    LogBuilder::new(session)
        .at(seq)
        .ask("see")
        .attach(file)
        .batch()
}

async fn bytes_are_stored_once_however_often_they_are_put(test: &TestStore) {
    let file = test.put(b"hello").await;
    assert_eq!(test.rows().await, [1, 0, 1]);
    assert_eq!(test.put(b"hello").await, file);
    let id = test.session("s_1", &file).await;
    append(&test.store, ask_with_file(&id, 2, &file)).await;
    test.session("s_2", &file).await;
    assert_eq!(test.rows().await, [1, 2, 0]);
}

async fn deleting_a_session_deletes_its_attachments(test: &TestStore) {
    let id = session(&test.store, "s_1", 7).await;
    let mut files = Vec::new();
    let mut log = LogBuilder::new(&id).ask("see");
    for number in 0..11_u8 {
        let file = test.put(&[number; 3]).await;
        log = log.attach(&file);
        files.push(file);
    }
    append(&test.store, log.batch()).await;
    assert_eq!(test.rows().await, [11, 11, 0]);
    assert!(test.store.hide_session(&id, None).await.unwrap());
    // The rows that an interrupted deletion leaves are deleted by the next one.
    assert!(!test.store.remove_portion(&id).await.unwrap());
    assert_eq!(test.rows().await, [7, 7, 0]);
    remove_hidden(&test.store, &id).await.unwrap();
    assert_eq!(test.rows().await, [0; 3]);
    assert!(!test.has(&files[0]).await);
}

async fn bytes_of_two_sessions_stay_until_both_are_deleted(test: &TestStore) {
    let (one, two) = (test.put(b"hello").await, test.put(b"hello").await);
    let first = test.session("s_1", &one).await;
    let second = test.session("s_2", &two).await;
    test.delete(&first).await;
    assert!(test.has(&one).await);
    test.delete(&second).await;
    assert_eq!(test.rows().await, [0; 3]);
}

async fn bytes_put_for_a_later_event_survive_the_deletion_of_another_session(test: &TestStore) {
    let file = test.put(b"hello").await;
    let first = test.session("s_1", &file).await;
    // A later event of the same session does not consume the put for another session.
    test.put(b"hello").await;
    append(&test.store, ask_with_file(&first, 2, &file)).await;
    test.delete(&first).await;
    assert!(test.has(&file).await);
    let second = test.session("s_2", &file).await;
    assert_eq!(test.rows().await, [1, 1, 0]);
    test.delete(&second).await;
    assert_eq!(test.rows().await, [0; 3]);
}

async fn a_put_concurrent_with_a_deletion_keeps_its_bytes(test: &TestStore) {
    let mut file = test.put(b"hello").await;
    for round in 0..20 {
        let id = test.session(&format!("s_{round}"), &file).await;
        let (_, again) = tokio::join!(test.delete(&id), test.put(b"hello"));
        assert!(test.has(&again).await, "round {round}");
        file = again;
    }
}

async fn bytes_that_no_event_refers_to_are_deleted_after_a_day(test: &TestStore) {
    let lost = test.put(b"lost").await;
    let used = test.put(b"used").await;
    test.session("s_1", &used).await;
    // This put is never referred to.
    test.put(b"used").await;
    let late = test.put(b"late").await;
    test.wait_a_day().await;
    test.put(b"late").await;
    assert!(!test.has(&lost).await);
    assert!(test.has(&used).await && test.has(&late).await);
    assert_eq!(test.rows().await, [2, 1, 1]);
    // Deleting a session and wiping the database delete them too.
    let other = session(&test.store, "s_2", 7).await;
    test.wait_a_day().await;
    test.delete(&other).await;
    assert_eq!(test.rows().await, [1, 1, 0]);
    for number in 0..9_u8 {
        test.put(&[number]).await;
    }
    test.wait_a_day().await;
    test.store.wipe_deleted().await.unwrap();
    assert_eq!(test.rows().await, [1, 1, 0]);
}

async fn a_refused_append_adds_no_references(test: &TestStore) {
    let file = test.put(b"hello").await;
    let id = session(&test.store, "s_1", 7).await;
    let refused = test.store.append(ask_with_file(&id, 5, &file)).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
    assert_eq!(test.rows().await, [1, 0, 1]);
}

async fn users_do_not_share_the_same_bytes(test: &TestStore) {
    let other = UserId::from("other");
    let file = test.put(b"hello").await;
    let id = test.session("s_1", &file).await;
    AttachmentStore::put(&*test.store, &other, Arc::from(*b"hello"))
        .await
        .unwrap();
    assert_eq!(test.rows().await, [2, 1, 1]);
    test.delete(&id).await;
    assert!(!test.has(&file).await);
    let read = AttachmentStore::read(&*test.store, &other, &file.digest).await;
    assert!(read.unwrap().is_some());
}

async fn exported(test: &TestStore, id: &SessionId) -> (SessionRecord, Vec<LogRow>) {
    let record = test.store.session_record(id).await.unwrap();
    let rows = next_rows(&test.store, &record, &LogVerifier::new(id)).await;
    (record, rows.unwrap())
}

async fn an_imported_session_refers_to_its_attachments(test: &TestStore) {
    let file = test.put(b"hello").await;
    let id = test.session("s_1", &file).await;
    let (record, rows) = exported(test, &id).await;
    test.delete(&id).await;
    for is_finished in [false, true] {
        test.put(b"hello").await;
        let session = NewSession {
            id: id.clone(),
            user: user(),
            created: Timestamp(7),
        };
        test.store.start_import(session).await.unwrap();
        test.store.import_rows(rows.clone()).await.unwrap();
        assert_eq!(test.rows().await, [1, 1, 0]);
        if is_finished {
            test.store.finish_import(record.clone()).await.unwrap();
            test.store.verify(&id).await.unwrap();
            test.delete(&id).await;
        } else {
            remove_hidden(&test.store, &id).await.unwrap();
        }
        assert_eq!(test.rows().await, [0; 3]);
    }
}

async fn a_log_whose_attachment_is_missing_or_changed_is_damaged(test: &TestStore) {
    let file = test.put(b"hello").await;
    let id = test.session("s_1", &file).await;
    assert_eq!(test.store.verify(&id).await.unwrap(), 1);
    let change = match &test.direct {
        Direct::Sqlite(_) => "UPDATE attachments SET bytes = x'00'",
        Direct::Postgres(_) => r"UPDATE attachments SET bytes = '\x00'",
    };
    for (statement, problem) in [
        (change, "does not match"),
        ("DELETE FROM attachments", "is missing"),
    ] {
        test.execute(statement).await;
        let damaged = test.store.verify(&id).await;
        let Err(StoreError::Damaged { seq: 1, detail, .. }) = damaged else {
            panic!("it should be damaged: {damaged:?}");
        };
        let name: &Text = &file.name;
        assert!(
            detail.contains(problem) && detail.contains(&**name),
            "{detail}"
        );
    }
}
