//! Tests of transfers between databases: in all directions, interrupted and resumed, and refused if a database is in use or
//! changes.

use crate::archive::{append, attach, postgresql, session, sqlite};
use lango_core::{
    BusyPolicy, NewSession, SessionCatalog, SessionStore, StoreError, Timestamp, UserId,
};
use lango_store::tables::{CACHES, Cell, OpenMode, RowDigest, TransferCheckpoint, tables};
use lango_store::transfer::{
    TransferError, TransferProgress, TransferReport, TransferStage, transfer_all,
};
use lango_store::{PostgresOptions, QueryWord, Store};
use lango_testkit::session_store_contract::{LogBuilder, every_kind_of_event};
use std::sync::Arc;

async fn fill(store: &Arc<Store>) {
    for number in 0..5 {
        let id = session(store, &format!("s_{number}"), 7).await;
        append(store, every_kind_of_event(&id)).await;
        let mut more = LogBuilder::new(&id).at(36);
        for turn in 0..80 {
            more = more.exchange(&format!("question {turn} \u{1}"), "an answer");
        }
        append(store, more.batch()).await;
    }
    attach(store, None, "everywhere the same").await;
}

/// Inserts rows into every table that sessions and documents leave empty, including values that are hard to copy: NULL, NUL
/// characters, references to rows of the same table, and ids that were used and deleted.
const OTHER_ROWS: &str = "
    INSERT INTO tasks VALUES ('task', 'local', 'c', 'completed', 0, 5, '{}', 3, 1, 'mark', 0),
        ('other', 'a2a', 'c', 'working', 1, 6, '{}', 1, 0, NULL, 1);
    INSERT INTO watermarks VALUES ('s_0', 'local', 3, 4, 0, 1);
    INSERT INTO forgotten_turns VALUES ('s_0', 1), ('s_0', 2);
    INSERT INTO recollections VALUES
        (1, 'local', 's_0', 0, 0, 1, 'one', 'here', 1, 5, NULL), (2, 'local', 's_0', 0, 2, 3, 'two', 'here', 0, 5, NULL),
        (9, 'local', 's_0', 1, 0, 3, 'both', 'here', 0, 6, NULL);
    UPDATE recollections SET part_of = 9 WHERE id < 9;
    INSERT INTO saved_memories VALUES (3, 'local', 'a' || char(0) || 'b' || char(1) || '0', '[]', 'here', 1, 5);
    UPDATE sqlite_sequence SET seq = 50 WHERE name = 'saved_memories';
    INSERT INTO graph_users VALUES (4, 'local');
    INSERT INTO graph_entities VALUES (5, 4, 'k', 'K', NULL), (6, 4, 'l', 'L', 'person');
    INSERT INTO graph_predicates VALUES (5, 4, 'p', 'P');
    INSERT INTO graph_sources VALUES (5, 4, 'here', 1);
    INSERT INTO graph_facts VALUES (5, 5, 5, 6, 5, 0.30000000000000004, 5, 5, NULL), (6, 6, 5, 5, 5, 1, 5, 5, 7);
    INSERT INTO library_maker VALUES (1, '{\"provider\":\"offline\",\"model\":\"m\",\"dimensions\":3,\"version\":1}');
    INSERT INTO library_vectors VALUES (4294967296, x'00ff80'), (4294967297, x'');
    INSERT INTO library_bits VALUES (33554432, x'03', x'0102');
    INSERT INTO knowledge VALUES ('local', 'k', 1, 'c', 'text', '[]', 'here', 'trusted', 5, NULL),
        ('local', 'k', 2, 'c', 'text', '[]', 'here', 'untrusted', 6, 1);
    INSERT INTO learnings VALUES ('local', 'o', 'f', '', 0.5, 'here', 'trusted', 5, NULL), ('local', 'o', 'g', '', 0, 'here', 'trusted', 5, 2);
    INSERT INTO attachments VALUES ('local', 'd', zeroblob(6000000)), ('local', 'e', x'00ff'), ('other', 'd', zeroblob(6000000));
    INSERT INTO attachment_references VALUES ('s_0', 'd', 'local');
    INSERT INTO attachment_puts VALUES ('local', 'e', 5), ('other', 'd', 6);
    INSERT INTO vaults VALUES ('local', 7, x'00ff'), ('other', 8, x'');
    INSERT INTO vault_records VALUES ('local', 'A', x'01'), ('local', 'B', x'02'), ('other', 'A', x'03');
    INSERT INTO vault_events VALUES ('local', 1, 5, 'created', 'A', 'me'), ('local', 2, 6, 'unlocked', NULL, 'me');
    INSERT INTO payment_accounts VALUES ('base', '0xaa', 7);
    INSERT INTO payments VALUES ('01', 'base', '0xaa', 'local', 's_0', '0xbb', 'a domain', NULL, NULL, 5, 20000, 'settled', 9, x'01', 6, x'02ff', 'aa bb', 'paid', 3, 5, 6),
        ('02', 'base', '0xaa', 'local', 's_0', '0xbb', 'a page', 'example.com', '02', 5, 20000, 'reserved', 9, NULL, NULL, NULL, NULL, '', 0, 5, 5);
    INSERT INTO access_tokens VALUES ('k_1', 'local', 'laptop', 'token', 'read run', x'0102', 5, NULL);
    INSERT INTO payment_budgets VALUES ('02', 'base', '0xaa', 'local', 's_0', 'example.com', 9, 5);
";

async fn transfer(from: &Arc<Store>, to: &Arc<Store>) -> Result<TransferReport, TransferError> {
    transfer_all(from, to, &mut |_: TransferProgress| ()).await
}

/// Returns all rows of all tables.
async fn all(store: &Arc<Store>) -> Vec<Vec<Vec<Cell>>> {
    let mut all = Vec::new();
    for table in tables().await.unwrap() {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = store.table_page(table, after, 100).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last[..table.key].to_vec());
            rows.extend(page);
        }
        all.push(rows);
    }
    all
}

#[tokio::test]
async fn everything_is_moved_in_every_direction_and_usable() {
    let folder = tempfile::tempdir().unwrap();
    let first = sqlite(&folder, "first.db");
    fill(&first).await;
    let rest = rusqlite::Connection::open(folder.path().join("first.db")).unwrap();
    rest.execute_batch(OTHER_ROWS).unwrap();
    for table in tables().await.unwrap() {
        let has_rows = first.table_page(table, None, 1).await.unwrap().len() == 1;
        assert!(has_rows, "`{}` should have rows", table.name);
    }
    let stores = [
        sqlite(&folder, "second.db"),
        postgresql(),
        postgresql(),
        sqlite(&folder, "last.db"),
    ];
    let mut from = &first;
    for to in &stores {
        let report = transfer(from, to).await.unwrap();
        assert_eq!(
            (report.sessions, report.events, report.damaged),
            (5, 1375, 0)
        );
        assert_eq!(all(to).await, all(&first).await, "{}", to.place());
        let numbered = tables()
            .await
            .unwrap()
            .iter()
            .find(|table| table.name == "saved_memories");
        let last = to.last_row_id(numbered.unwrap()).await.unwrap();
        assert_eq!(last, Some(50), "{}", to.place());
        from = to;
    }
    let user = UserId::from("local");
    for store in &stores {
        let id = session(store, "s_more", 8).await;
        append(store, LogBuilder::new(&id).exchange("one", "1").batch()).await;
        // The library can be searched, and new documents get new ids.
        let (visible, _) = store.visible_collections(&user, None).await.unwrap();
        let ids = visible.iter().map(|collection| collection.id).collect();
        let found = store
            .search_words(ids, vec![QueryWord::new("everywhere", 1)], 50)
            .await
            .unwrap();
        assert_eq!(found.hits.len(), 9, "{}", store.place());
        attach(store, Some(&id), "here").await;
    }
}

/// Copies as much to the target as a process that was killed while it copied the events.
async fn interrupted_transfer(from: &Arc<Store>, to: &Arc<Store>) -> TransferCheckpoint {
    let mut checkpoint = TransferCheckpoint {
        source: from.place(),
        table: 0,
        after: None,
        copied: Vec::new(),
    };
    for (index, table) in tables().await.unwrap().iter().enumerate().take(2) {
        let rows = from.table_page(table, None, 500).await.unwrap();
        let mut copied = RowDigest::default();
        rows.iter().for_each(|row| copied.add(row));
        checkpoint.table = index;
        checkpoint.after = Some(rows.last().unwrap()[..table.key].to_vec());
        checkpoint.copied.push(copied);
        to.insert_rows(table, rows, checkpoint.clone())
            .await
            .unwrap();
    }
    checkpoint
}

/// Creates empty targets of every kind, each with a function that opens it again.
fn targets(folder: &tempfile::TempDir) -> Vec<(Arc<Store>, Reopen)> {
    let path = folder.path().join("to.db");
    let address = lango_testkit::postgres::fresh_schema();
    let options = PostgresOptions {
        open_mode: OpenMode::TransferTarget,
        ..PostgresOptions::default()
    };
    let on_server = Store::postgres_with(&address, crate::ROOT.into(), options).unwrap();
    vec![
        (
            Arc::new(
                Store::sqlite_with(&path, crate::ROOT.into(), OpenMode::TransferTarget).unwrap(),
            ),
            Box::new(move || Arc::new(Store::sqlite(&path, crate::ROOT.into()).unwrap()) as _),
        ),
        (
            Arc::new(on_server),
            Box::new(move || Arc::new(Store::at(&address, crate::ROOT.into()).unwrap())),
        ),
    ]
}

type Reopen = Box<dyn Fn() -> Arc<Store>>;

#[tokio::test]
async fn a_target_cannot_be_used_before_its_transfer_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let from = sqlite(&folder, "from.db");
    fill(&from).await;
    for (to, reopen) in targets(&folder) {
        interrupted_transfer(&from, &to).await;
        let user = UserId::from("local");
        let refused = [
            reopen().open_now().await.unwrap_err(),
            SessionCatalog::list(&*reopen(), &user, lango_core::SessionQuery::recent(1))
                .await
                .unwrap_err(),
            session_of(&reopen()).await.unwrap_err(),
        ];
        for error in refused {
            let message = error.to_string();
            let command = format!("lango store move '{}' '{}'", from.place(), to.place());
            assert!(message.contains(&command), "{message}");
        }
        transfer(&from, &to).await.unwrap();
        reopen().open_now().await.unwrap();
        session_of(&reopen()).await.unwrap();
    }
}

async fn session_of(store: &Arc<Store>) -> Result<(), StoreError> {
    let session = NewSession {
        id: "s_new".into(),
        user: "local".into(),
        created: Timestamp(1),
    };
    store.create(session).await
}

#[tokio::test]
async fn the_error_names_the_database_that_changed_after_an_interruption() {
    for is_destination in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        for (number, (to, _)) in targets(&folder).into_iter().enumerate() {
            let from = sqlite(&folder, &format!("from_{number}.db"));
            fill(&from).await;
            interrupted_transfer(&from, &to).await;
            // The transfer has already passed this session's position, so its events would not be copied consistently.
            let changed = if is_destination { &to } else { &from };
            session(changed, "s_00", 9).await;
            let mut is_exceeded = false;
            let mut on_progress = |progress: TransferProgress| {
                is_exceeded |= progress.done > progress.total;
            };
            let result = transfer_all(&from, &to, &mut on_progress).await;
            let place = changed.place();
            assert!(
                matches!(&result, Err(TransferError::Changed { table: "sessions", place: at }) if *at == place),
                "{place}: {result:?}"
            );
            assert!(!is_exceeded, "the progress exceeded its total");
        }
    }
}

#[tokio::test]
async fn the_error_names_a_source_that_gains_a_session_during_the_transfer() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (to, _)) in targets(&folder).into_iter().enumerate() {
        let from = sqlite(&folder, &format!("from_{number}.db"));
        fill(&from).await;
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let writing = async {
            // Once the sessions are copied, this creates another one with a turn.
            while let Some(progress) = receiver.recv().await {
                if matches!(
                    progress,
                    TransferProgress {
                        stage: TransferStage::Copying("events"),
                        ..
                    }
                ) {
                    let id = session(&from, "s_zz", 9).await;
                    append(&from, LogBuilder::new(&id).exchange("late", "1").batch()).await;
                    return;
                }
            }
        };
        let moving = async {
            let mut seen = |progress: TransferProgress| {
                let _ = sender.send(progress);
            };
            transfer_all(&from, &to, &mut seen).await
        };
        let (result, ()) = tokio::join!(moving, writing);
        assert!(
            matches!(&result, Err(TransferError::Changed { place, .. }) if *place == from.place()),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn an_interrupted_transfer_resumes_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let from = sqlite(&folder, "from.db");
    fill(&from).await;
    for (name, to) in [
        ("sqlite", sqlite(&folder, "to.db")),
        ("postgresql", postgresql()),
    ] {
        let last = interrupted_transfer(&from, &to).await;
        assert_eq!(to.checkpoint().await.unwrap(), Some(last), "{name}");
        let other_source = sqlite(&folder, "other.db");
        let other = transfer(&other_source, &to).await;
        assert!(
            matches!(other, Err(TransferError::OtherTransfer { .. })),
            "{name}"
        );
        transfer(&from, &to).await.unwrap();
        assert_eq!(all(&to).await, all(&from).await, "{name}");
        assert_eq!(to.checkpoint().await.unwrap(), None, "{name}");
        let again = transfer(&from, &to).await;
        assert!(matches!(
            again,
            Err(TransferError::NotEmpty {
                table: "sessions",
                ..
            })
        ));
    }
}

#[tokio::test]
async fn a_database_that_is_leased_or_changes_is_not_moved() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [
        (sqlite(&folder, "from.db"), sqlite(&folder, "to.db")),
        (postgresql(), postgresql()),
    ] {
        fill(&from).await;
        let id = "s_0".into();
        let lease = from.acquire(&id, BusyPolicy::Refuse).await.unwrap();
        let refused = transfer(&from, &to).await;
        assert!(
            matches!(refused, Err(TransferError::InUse { sessions: 1, .. })),
            "{refused:?}"
        );
        drop(lease);
        // The lease is released in the background.
        while from.count_leases().await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let writing = async {
            // Once the events are copied, this appends another turn to a copied session.
            while let Some(progress) = receiver.recv().await {
                if matches!(progress, TransferProgress { stage, .. } if format!("{stage:?}").contains("turns"))
                {
                    append(
                        &from,
                        LogBuilder::new(&id).at(276).exchange("late", "1").batch(),
                    )
                    .await;
                    return;
                }
            }
        };
        let moving = async {
            let mut seen = |progress: TransferProgress| {
                let _ = sender.send(progress);
            };
            transfer_all(&from, &to, &mut seen).await
        };
        let (result, ()) = tokio::join!(moving, writing);
        assert!(
            matches!(result, Err(TransferError::Changed { .. })),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn both_databases_have_the_same_tables_and_columns() {
    let address = lango_testkit::postgres::fresh_schema();
    let store = Arc::new(lango_store::Store::at(&address, crate::ROOT.into()).unwrap());
    store.open_now().await.unwrap();
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let query = "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns
                  WHERE table_schema = current_schema() ORDER BY 1, 2";
    let rows = client.query(query, &[]).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    // Migrations, leases, and tables that are derived from others are not moved.
    let own = ["lango_migrations", "holds", "hold_line", "library_index"];
    let found: Vec<(String, String, String)> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .filter(|(table, _, _): &(String, String, String)| {
            !own.contains(&table.as_str()) && !CACHES.contains(&table.as_str())
        })
        .collect();
    let mut known: Vec<(String, String, String)> = Vec::new();
    for table in tables().await.unwrap() {
        for column in &table.columns {
            let kind = match column.kind.as_str() {
                "TEXT" => "text",
                "INTEGER" => "bigint",
                "REAL" => "double precision",
                "BLOB" => "bytea",
                other => panic!("`{other}` is not a type of both databases"),
            };
            known.push((table.name.clone(), column.name.clone(), kind.to_owned()));
        }
    }
    known.sort();
    assert_eq!(found, known, "both databases must have the same tables");
}
