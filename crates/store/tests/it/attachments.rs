//! How long the bytes of attachments are kept: as long as a session refers to them, or a put waits for its event. The same
//! over every database.

use crate::ROOT;
use crate::archive::{append, session};
use lango_core::{
    Attachment, AttachmentStore, Batch, NewSession, SessionId, SessionStore, StoreError, Text,
    Timestamp, UserId,
};
use lango_store::archive::{LogRow, SessionRecord, next_rows, remove_hidden};
use lango_store::tables::tables;
use lango_store::{Chain, Store};
use lango_testkit::postgres;
use lango_testkit::session_store_contract::{Sketch, attachment};
use std::path::PathBuf;
use std::sync::Arc;

macro_rules! over_every_database {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(&super::Place::sqlite(&folder)).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(&super::Place::postgresql()).await;
            })+
        }
    };
}

over_every_database!(
    bytes_are_stored_once_however_often_they_are_put,
    a_session_that_is_deleted_takes_its_attachments_along,
    bytes_that_two_sessions_refer_to_stay_until_the_second_is_deleted,
    bytes_that_were_put_for_an_event_to_come_are_not_deleted_with_another_session,
    a_put_that_meets_a_deletion_keeps_its_bytes,
    bytes_that_no_event_refers_to_are_deleted_after_a_day,
    an_append_that_is_refused_refers_to_nothing,
    the_same_bytes_of_two_users_are_apart,
    a_session_that_is_imported_refers_to_its_attachments,
    a_log_whose_attachment_is_missing_or_changed_is_damaged,
);

/// A database, and a way past it.
struct Place {
    store: Arc<Store>,
    direct: Direct,
}

enum Direct {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Place {
    fn sqlite(folder: &tempfile::TempDir) -> Self {
        let path = folder.path().join("lango.db");
        let place = format!("sqlite:{}", path.display());
        Self {
            store: Arc::new(Store::at(&place, ROOT.into()).unwrap()),
            direct: Direct::Sqlite(path),
        }
    }

    fn postgresql() -> Self {
        let address = postgres::empty();
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

    /// Makes all puts older by a bit more than a day.
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

    /// Makes a session with a turn that refers to a file.
    async fn session(&self, id: &str, file: &Attachment) -> SessionId {
        let id = session(&self.store, id, 7).await;
        append(&self.store, asked(&id, 1, file)).await;
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

fn asked(session: &SessionId, seq: u64, file: &Attachment) -> Batch {
    Sketch::of(session).at(seq).ask("see").attach(file).batch()
}

async fn bytes_are_stored_once_however_often_they_are_put(place: &Place) {
    let file = place.put(b"hello").await;
    assert_eq!(place.rows().await, [1, 0, 1]);
    assert_eq!(place.put(b"hello").await, file);
    let id = place.session("s_1", &file).await;
    append(&place.store, asked(&id, 2, &file)).await;
    place.session("s_2", &file).await;
    assert_eq!(place.rows().await, [1, 2, 0]);
}

async fn a_session_that_is_deleted_takes_its_attachments_along(place: &Place) {
    let id = session(&place.store, "s_1", 7).await;
    let mut files = Vec::new();
    let mut log = Sketch::of(&id).ask("see");
    for number in 0..11_u8 {
        let file = place.put(&[number; 3]).await;
        log = log.attach(&file);
        files.push(file);
    }
    append(&place.store, log.batch()).await;
    assert_eq!(place.rows().await, [11, 11, 0]);
    assert!(place.store.hide_session(&id, None).await.unwrap());
    // A deletion that is interrupted leaves what the next one deletes.
    assert!(!place.store.remove_portion(&id).await.unwrap());
    assert_eq!(place.rows().await, [7, 7, 0]);
    remove_hidden(&place.store, &id).await.unwrap();
    assert_eq!(place.rows().await, [0; 3]);
    assert!(!place.has(&files[0]).await);
}

async fn bytes_that_two_sessions_refer_to_stay_until_the_second_is_deleted(place: &Place) {
    let (one, two) = (place.put(b"hello").await, place.put(b"hello").await);
    let first = place.session("s_1", &one).await;
    let second = place.session("s_2", &two).await;
    place.delete(&first).await;
    assert!(place.has(&one).await);
    place.delete(&second).await;
    assert_eq!(place.rows().await, [0; 3]);
}

async fn bytes_that_were_put_for_an_event_to_come_are_not_deleted_with_another_session(
    place: &Place,
) {
    let file = place.put(b"hello").await;
    let first = place.session("s_1", &file).await;
    // A later event of the session does not use up what was put for another one.
    place.put(b"hello").await;
    append(&place.store, asked(&first, 2, &file)).await;
    place.delete(&first).await;
    assert!(place.has(&file).await);
    let second = place.session("s_2", &file).await;
    assert_eq!(place.rows().await, [1, 1, 0]);
    place.delete(&second).await;
    assert_eq!(place.rows().await, [0; 3]);
}

async fn a_put_that_meets_a_deletion_keeps_its_bytes(place: &Place) {
    let mut file = place.put(b"hello").await;
    for round in 0..20 {
        let id = place.session(&format!("s_{round}"), &file).await;
        let (_, again) = tokio::join!(place.delete(&id), place.put(b"hello"));
        assert!(place.has(&again).await, "round {round}");
        file = again;
    }
}

async fn bytes_that_no_event_refers_to_are_deleted_after_a_day(place: &Place) {
    let lost = place.put(b"lost").await;
    let used = place.put(b"used").await;
    place.session("s_1", &used).await;
    // Put again, and never referred to again.
    place.put(b"used").await;
    let late = place.put(b"late").await;
    place.wait_a_day().await;
    place.put(b"late").await;
    assert!(!place.has(&lost).await);
    assert!(place.has(&used).await && place.has(&late).await);
    assert_eq!(place.rows().await, [2, 1, 1]);
    // Deleting a session and cleaning the database up delete them too.
    let other = session(&place.store, "s_2", 7).await;
    place.wait_a_day().await;
    place.delete(&other).await;
    assert_eq!(place.rows().await, [1, 1, 0]);
    for number in 0..9_u8 {
        place.put(&[number]).await;
    }
    place.wait_a_day().await;
    place.store.wipe_deleted().await.unwrap();
    assert_eq!(place.rows().await, [1, 1, 0]);
}

async fn an_append_that_is_refused_refers_to_nothing(place: &Place) {
    let file = place.put(b"hello").await;
    let id = session(&place.store, "s_1", 7).await;
    let refused = place.store.append(asked(&id, 5, &file)).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
    assert_eq!(place.rows().await, [1, 0, 1]);
}

async fn the_same_bytes_of_two_users_are_apart(place: &Place) {
    let other = UserId::from("other");
    let file = place.put(b"hello").await;
    let id = place.session("s_1", &file).await;
    AttachmentStore::put(&*place.store, &other, Arc::from(*b"hello"))
        .await
        .unwrap();
    assert_eq!(place.rows().await, [2, 1, 1]);
    place.delete(&id).await;
    assert!(!place.has(&file).await);
    let kept = AttachmentStore::read(&*place.store, &other, &file.digest).await;
    assert!(kept.unwrap().is_some());
}

async fn exported(place: &Place, id: &SessionId) -> (SessionRecord, Vec<LogRow>) {
    let record = place.store.session_record(id).await.unwrap();
    let rows = next_rows(&place.store, &record, &Chain::of(id)).await;
    (record, rows.unwrap())
}

async fn a_session_that_is_imported_refers_to_its_attachments(place: &Place) {
    let file = place.put(b"hello").await;
    let id = place.session("s_1", &file).await;
    let (record, rows) = exported(place, &id).await;
    place.delete(&id).await;
    for is_finished in [false, true] {
        place.put(b"hello").await;
        let session = NewSession {
            id: id.clone(),
            user: user(),
            created: Timestamp(7),
        };
        place.store.start_import(session).await.unwrap();
        place.store.import_rows(rows.clone()).await.unwrap();
        assert_eq!(place.rows().await, [1, 1, 0]);
        if is_finished {
            place.store.finish_import(record.clone()).await.unwrap();
            place.store.verify(&id).await.unwrap();
            place.delete(&id).await;
        } else {
            remove_hidden(&place.store, &id).await.unwrap();
        }
        assert_eq!(place.rows().await, [0; 3]);
    }
}

async fn a_log_whose_attachment_is_missing_or_changed_is_damaged(place: &Place) {
    let file = place.put(b"hello").await;
    let id = place.session("s_1", &file).await;
    assert_eq!(place.store.verify(&id).await.unwrap(), 1);
    let change = match &place.direct {
        Direct::Sqlite(_) => "UPDATE attachments SET bytes = x'00'",
        Direct::Postgres(_) => r"UPDATE attachments SET bytes = '\x00'",
    };
    for (statement, said) in [
        (change, "does not match"),
        ("DELETE FROM attachments", "is missing"),
    ] {
        place.execute(statement).await;
        let damaged = place.store.verify(&id).await;
        let Err(StoreError::Damaged { seq: 1, detail, .. }) = damaged else {
            panic!("it should be damaged: {damaged:?}");
        };
        let name: &Text = &file.name;
        assert!(
            detail.contains(said) && detail.contains(&**name),
            "{detail}"
        );
    }
}
