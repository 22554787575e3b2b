//! Everything from one database to another, both ways, interrupted, and refused where it cannot be right.

use crate::archive::{append, attach, postgresql, session, sqlite};
use lango_core::{Patience, UserId};
use lango_store::Database;
use lango_store::moving::{MoveError, Moved, Progress, move_all};
use lango_store::tables::{Cell, Mark, TABLES};
use lango_testkit::session_store_contract::{Sketch, every_kind_of_event};
use std::sync::Arc;

async fn filled(store: &Arc<dyn Database>) {
    for number in 0..5 {
        let id = session(store, &format!("s_{number}"), 7).await;
        append(store, every_kind_of_event(&id)).await;
        let mut more = Sketch::of(&id).at(34);
        for turn in 0..80 {
            more = more.exchange(&format!("question {turn} \u{1}"), "an answer");
        }
        append(store, more.batch()).await;
    }
    attach(store, None, "everywhere the same").await;
}

async fn moved(from: &Arc<dyn Database>, to: &Arc<dyn Database>) -> Result<Moved, MoveError> {
    move_all(&**from, &**to, &mut |_: Progress| ()).await
}

/// All rows of all tables.
async fn all(store: &Arc<dyn Database>) -> Vec<Vec<Vec<Cell>>> {
    let mut all = Vec::new();
    for table in TABLES {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = store.page(table, after, 100).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some(last[..table.key].to_vec());
            rows.extend(page);
        }
        all.push(rows);
    }
    all
}

#[tokio::test]
async fn everything_arrives_in_every_direction_and_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let first = sqlite(&folder, "first.db");
    filled(&first).await;
    let stores = [
        sqlite(&folder, "second.db"),
        postgresql(),
        postgresql(),
        sqlite(&folder, "last.db"),
    ];
    let mut from = &first;
    for to in &stores {
        let report = moved(from, to).await.unwrap();
        assert_eq!(
            (report.sessions, report.events, report.damaged),
            (5, 1365, 0)
        );
        assert_eq!(all(to).await, all(&first).await, "{}", to.place());
        from = to;
    }
    let user = UserId::from("local");
    for store in &stores {
        let id = session(store, "s_more", 8).await;
        append(store, Sketch::of(&id).exchange("one", "1").batch()).await;
        // The words of the library are found, and what is added gets a number of its own.
        let (seen, _) = store.visible(&user, None).await.unwrap();
        let ids = seen.iter().map(|collection| collection.id).collect();
        let found = store
            .lexical(ids, vec!["everywhere".into()], 50)
            .await
            .unwrap();
        assert_eq!(found.hits.len(), 9, "{}", store.place());
        attach(store, Some(&id), "here").await;
    }
}

#[tokio::test]
async fn a_move_goes_on_where_it_was_interrupted_in_every_table() {
    let folder = tempfile::tempdir().unwrap();
    let from = sqlite(&folder, "from.db");
    filled(&from).await;
    for (name, to) in [
        ("sqlite", sqlite(&folder, "to.db")),
        ("postgresql", postgresql()),
    ] {
        // As far as a process came that was killed in the middle of the events.
        let mark = |table: usize, row: &[Cell]| Mark {
            source: from.place(),
            table,
            after: Some(row[..TABLES[table].key].to_vec()),
        };
        let sessions = from.page(&TABLES[0], None, 500).await.unwrap();
        let last = mark(0, sessions.last().unwrap());
        to.arrive(&TABLES[0], sessions, last).await.unwrap();
        let events = from.page(&TABLES[1], None, 500).await.unwrap();
        let last = mark(1, events.last().unwrap());
        to.arrive(&TABLES[1], events, last.clone()).await.unwrap();
        assert_eq!(to.mark().await.unwrap(), Some(last), "{name}");
        let elsewhere = sqlite(&folder, "elsewhere.db");
        let other = moved(&elsewhere, &to).await;
        assert!(matches!(other, Err(MoveError::OtherMove { .. })), "{name}");
        moved(&from, &to).await.unwrap();
        assert_eq!(all(&to).await, all(&from).await, "{name}");
        assert_eq!(to.mark().await.unwrap(), None, "{name}");
        let again = moved(&from, &to).await;
        assert!(matches!(
            again,
            Err(MoveError::NotEmpty {
                table: "sessions",
                ..
            })
        ));
    }
}

#[tokio::test]
async fn what_is_held_or_changes_meanwhile_is_not_moved() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [
        (sqlite(&folder, "from.db"), sqlite(&folder, "to.db")),
        (postgresql(), postgresql()),
    ] {
        filled(&from).await;
        let id = "s_0".into();
        let held = from.hold(&id, Patience::Refuse).await.unwrap();
        let refused = moved(&from, &to).await;
        assert!(
            matches!(refused, Err(MoveError::InUse { sessions: 1, .. })),
            "{refused:?}"
        );
        drop(held);
        // Letting go of a lease takes a moment.
        while from.held().await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let writing = async {
            // When the events were copied, one more is said in a session that was passed.
            while let Some(progress) = receiver.recv().await {
                if matches!(progress, Progress { doing, .. } if format!("{doing:?}").contains("turns"))
                {
                    append(&from, Sketch::of(&id).at(274).exchange("late", "1").batch()).await;
                    return;
                }
            }
        };
        let moving = async {
            let mut seen = |progress: Progress| {
                let _ = sender.send(progress);
            };
            move_all(&*from, &*to, &mut seen).await
        };
        let (result, ()) = tokio::join!(moving, writing);
        assert!(
            matches!(result, Err(MoveError::Changed { .. })),
            "{result:?}"
        );
    }
}
