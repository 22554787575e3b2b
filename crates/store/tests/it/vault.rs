//! Tests of stored vaults, on every database.

use crate::ROOT;
use lango_core::{
    RecordSelection, StoreError, Timestamp, UserId, VaultChange, VaultChangeOutcome, VaultEvent,
    VaultRecord, VaultSnapshot, VaultStore,
};
use lango_store::MAX_VAULT_EVENTS;
use lango_testkit::postgres;
use std::sync::Arc;

macro_rules! over_every_store {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(std::sync::Arc::new(lango_store::Store::in_memory())).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let address = format!("sqlite:{}", folder.path().join("lango.db").display());
                super::$name(super::open(&address)).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(super::open(&super::postgres::fresh_schema())).await;
            })+
        }
    };
}

over_every_store!(
    a_vault_is_read_as_it_was_stored,
    a_change_for_another_revision_changes_nothing,
    a_vault_is_created_once,
    deleting_a_vault_deletes_its_records_but_not_its_log,
    users_do_not_share_vaults,
    only_one_of_many_changes_for_a_revision_is_applied,
    the_oldest_events_are_deleted,
    a_user_without_a_name_cannot_store_anything,
    a_revision_that_does_not_increase_is_refused,
);

type Store = Arc<dyn VaultStore>;

fn open(address: &str) -> Store {
    Arc::new(lango_store::Store::at(address, ROOT.into()).unwrap())
}

fn event(action: &str) -> VaultEvent {
    VaultEvent {
        time: Timestamp(1_700_000_000_000),
        action: action.into(),
        subject: Some("KEY".into()),
        actor: "command line".into(),
    }
}

fn record(name: &str, envelope: &[u8]) -> VaultRecord {
    VaultRecord {
        name: name.into(),
        envelope: envelope.to_vec(),
    }
}

fn change(expected: Option<u64>, revision: u64, head: &[u8]) -> VaultChange {
    VaultChange {
        expected,
        revision,
        head: Some(head.to_vec()),
        put: Vec::new(),
        remove: Vec::new(),
        event: event("changed"),
    }
}

async fn apply(store: &Store, user: &str, change: VaultChange) -> VaultChangeOutcome {
    let user = UserId::from(user);
    store.change_vault(&user, change).await.unwrap()
}

async fn stored(store: &Store, user: &str) -> Option<VaultSnapshot> {
    let user = UserId::from(user);
    let read = store.read_vault(&user, RecordSelection::All);
    read.await.unwrap()
}

async fn events(store: &Store, user: &str, limit: usize) -> Vec<String> {
    let user = UserId::from(user);
    let events = store.vault_events(&user, limit).await.unwrap();
    let actions = events.iter().map(|event| event.action.to_string());
    actions.collect()
}

async fn a_vault_is_read_as_it_was_stored(store: Store) {
    assert_eq!(stored(&store, "ann").await, None);
    let created = VaultChange {
        put: vec![record("b", b"\x00\xff"), record("a", b"")],
        event: event("created"),
        ..change(None, 7, b"head\x00")
    };
    assert_eq!(
        apply(&store, "ann", created).await,
        VaultChangeOutcome::Applied
    );
    let all = VaultSnapshot {
        revision: 7,
        head: b"head\x00".to_vec(),
        records: vec![record("a", b""), record("b", b"\x00\xff")],
    };
    assert_eq!(stored(&store, "ann").await, Some(all.clone()));
    let ann = UserId::from("ann");
    let one = store.read_vault(&ann, RecordSelection::One("b".into()));
    assert_eq!(one.await.unwrap().unwrap().records, all.records[1..]);
    let none = store.read_vault(&ann, RecordSelection::None);
    assert_eq!(none.await.unwrap().unwrap().records, []);
    let replaced = VaultChange {
        put: vec![record("b", b"new")],
        remove: vec!["a".into(), "absent".into()],
        ..change(Some(7), 8, b"head 2")
    };
    assert_eq!(
        apply(&store, "ann", replaced).await,
        VaultChangeOutcome::Applied
    );
    let found = stored(&store, "ann").await.unwrap();
    assert_eq!(found.records, [record("b", b"new")]);
    assert_eq!((found.revision, &found.head[..]), (8, &b"head 2"[..]));
    assert_eq!(events(&store, "ann", 10).await, ["changed", "created"]);
    let log = store.vault_events(&ann, 1).await.unwrap();
    assert_eq!(log, [event("changed")]);
}

async fn a_change_for_another_revision_changes_nothing(store: Store) {
    apply(&store, "ann", change(None, 7, b"head")).await;
    let before = stored(&store, "ann").await;
    for expected in [None, Some(6), Some(8)] {
        let outdated = VaultChange {
            put: vec![record("a", b"x")],
            ..change(expected, 9, b"other")
        };
        let outdated = apply(&store, "ann", outdated).await;
        assert_eq!(outdated, VaultChangeOutcome::Outdated, "{expected:?}");
    }
    let deletion = VaultChange {
        head: None,
        ..change(Some(6), 9, b"")
    };
    assert_eq!(
        apply(&store, "ann", deletion).await,
        VaultChangeOutcome::Outdated
    );
    assert_eq!(stored(&store, "ann").await, before);
    assert_eq!(events(&store, "ann", 10).await.len(), 1);
}

async fn a_vault_is_created_once(store: Store) {
    let first = apply(&store, "ann", change(None, 7, b"first")).await;
    let second = apply(&store, "ann", change(None, 8, b"second")).await;
    assert_eq!(
        (first, second),
        (VaultChangeOutcome::Applied, VaultChangeOutcome::Outdated)
    );
    assert_eq!(stored(&store, "ann").await.unwrap().head, b"first");
}

async fn deleting_a_vault_deletes_its_records_but_not_its_log(store: Store) {
    let created = VaultChange {
        put: vec![record("a", b"x")],
        ..change(None, 7, b"head")
    };
    apply(&store, "ann", created).await;
    let deletion = VaultChange {
        head: None,
        event: event("destroyed"),
        ..change(Some(7), 8, b"")
    };
    assert_eq!(
        apply(&store, "ann", deletion).await,
        VaultChangeOutcome::Applied
    );
    assert_eq!(stored(&store, "ann").await, None);
    apply(&store, "ann", change(None, 9, b"head")).await;
    assert_eq!(stored(&store, "ann").await.unwrap().records, []);
    let log = ["changed", "destroyed", "changed"];
    assert_eq!(events(&store, "ann", 10).await, log);
}

async fn users_do_not_share_vaults(store: Store) {
    let created = VaultChange {
        put: vec![record("a", b"hers")],
        ..change(None, 7, b"head")
    };
    apply(&store, "ann", created).await;
    assert_eq!(stored(&store, "bob").await, None);
    assert!(events(&store, "bob", 10).await.is_empty());
    let created = VaultChange {
        put: vec![record("a", b"his")],
        ..change(None, 7, b"head")
    };
    apply(&store, "bob", created).await;
    let deletion = VaultChange {
        head: None,
        ..change(Some(7), 8, b"")
    };
    apply(&store, "bob", deletion).await;
    let hers = stored(&store, "ann").await.unwrap();
    assert_eq!(hers.records, [record("a", b"hers")]);
}

async fn only_one_of_many_changes_for_a_revision_is_applied(store: Store) {
    apply(&store, "ann", change(None, 1, b"head")).await;
    let tasks = (0..8_u8).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let name = format!("r{number}");
            let change = VaultChange {
                put: vec![record(&name, &[number])],
                ..change(Some(1), 2, &[number])
            };
            apply(&store, "ann", change).await
        })
    });
    let mut applied = 0;
    for task in tasks.collect::<Vec<_>>() {
        applied += usize::from(task.await.unwrap() == VaultChangeOutcome::Applied);
    }
    assert_eq!(applied, 1);
    let found = stored(&store, "ann").await.unwrap();
    assert_eq!(found.records.len(), 1);
    assert_eq!(found.records[0].envelope, found.head);
    assert_eq!(events(&store, "ann", 10).await.len(), 2);
}

async fn the_oldest_events_are_deleted(store: Store) {
    let ann = UserId::from("ann");
    apply(&store, "ann", change(None, 1, b"head")).await;
    const BATCH: u64 = 500;
    for _ in 0..MAX_VAULT_EVENTS / BATCH {
        let appends = (0..BATCH).map(|_| store.append_vault_event(&ann, event("used")));
        for appended in futures_util::future::join_all(appends).await {
            appended.unwrap();
        }
    }
    let left = events(&store, "ann", usize::MAX).await;
    assert_eq!(left.len() as u64, MAX_VAULT_EVENTS);
    assert!(left.iter().all(|action| action == "used"));
}

async fn a_user_without_a_name_cannot_store_anything(store: Store) {
    let user = UserId::from("");
    let refused = store.change_vault(&user, change(None, 1, b"x")).await;
    assert!(matches!(refused, Err(StoreError::Failed { .. })));
    let refused = store.append_vault_event(&user, event("x")).await;
    assert!(matches!(refused, Err(StoreError::Failed { .. })));
}

async fn a_revision_that_does_not_increase_is_refused(store: Store) {
    apply(&store, "ann", change(None, 7, b"head")).await;
    let ann = UserId::from("ann");
    let refused = store.change_vault(&ann, change(Some(7), 7, b"x")).await;
    assert!(matches!(refused, Err(StoreError::Failed { .. })));
}
