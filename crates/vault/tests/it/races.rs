//! Concurrent changes with separate connections: no acknowledged change is lost.

use crate::{key_file, name, new, set, value, vault_of};
use lango_core::VaultStore;
use lango_store::Store;
use lango_testkit::postgres;
use lango_vault::VaultError;
use std::sync::Arc;

fn open_store(place: &str) -> Arc<dyn VaultStore> {
    Arc::new(Store::at(place, "lango-orchestrator".into()).unwrap())
}

macro_rules! test_with_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                super::$name(format!("sqlite:{}", folder.path().join("lango.db").display())).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)] async fn $name() {
                super::$name(super::postgres::fresh_schema()).await;
            })+
        }
    };
}

test_with_both_databases!(
    concurrent_writers_lose_no_secrets,
    only_one_of_several_concurrent_creators_succeeds,
    values_set_while_the_master_key_is_replaced_are_refused_or_kept,
);

const WRITERS: usize = 8;
const WRITES_PER_WRITER: usize = 4;

async fn concurrent_writers_lose_no_secrets(place: String) {
    let (vault, _) = vault_of("ann", open_store(&place));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    let writers = (0..WRITERS).map(|writer| {
        let place = place.clone();
        tokio::spawn(async move {
            let (vault, _) = vault_of("ann", open_store(&place));
            let open = vault.unlock(key_file(1)).await.unwrap();
            for number in 0..WRITES_PER_WRITER {
                let own = format!("K{writer}.{number}");
                set(&open, &own, &own).await;
                set(&open, "SHARED", &own).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(
        open.entries().await.unwrap().len(),
        WRITERS * WRITES_PER_WRITER + 1
    );
    for writer in 0..WRITERS {
        for number in 0..WRITES_PER_WRITER {
            let own = format!("K{writer}.{number}");
            assert_eq!(value(&open, &own).await.unwrap(), own);
        }
    }
    let entries = open.entries().await.unwrap();
    let shared = entries.iter().find(|entry| entry.name == name("SHARED"));
    assert_eq!(
        shared.unwrap().version,
        (WRITERS * WRITES_PER_WRITER) as u64
    );
    assert!(open.check().await.unwrap().is_empty());
    let events = vault.events(usize::MAX).await.unwrap();
    assert_eq!(events.len(), 1 + WRITERS + 2 * WRITERS * WRITES_PER_WRITER);
}

async fn only_one_of_several_concurrent_creators_succeeds(place: String) {
    // Creates the tables first, because that is a race of its own.
    let (vault, _) = vault_of("ann", open_store(&place));
    vault.events(1).await.unwrap();
    let creators = (0..WRITERS as u8).map(|number| {
        let place = place.clone();
        tokio::spawn(async move {
            let (vault, _) = vault_of("ann", open_store(&place));
            match vault.create(vec![key_file(number)]).await {
                Ok(open) => {
                    set(&open, "KEY", "value").await;
                    Some(number)
                }
                Err(VaultError::Exists) => None,
                Err(error) => panic!("{error}"),
            }
        })
    });
    let mut created = Vec::new();
    for creator in creators.collect::<Vec<_>>() {
        created.extend(creator.await.unwrap());
    }
    assert_eq!(created.len(), 1);
    let open = vault.unlock(key_file(created[0])).await.unwrap();
    assert_eq!(value(&open, "KEY").await.unwrap(), "value");
}

async fn values_set_while_the_master_key_is_replaced_are_refused_or_kept(place: String) {
    let (vault, _) = vault_of("ann", open_store(&place));
    let open = vault.create(vec![key_file(1)]).await.unwrap();
    let writer = tokio::spawn({
        let (vault, _) = vault_of("ann", open_store(&place));
        async move {
            let mut acknowledged = Vec::new();
            for number in 0..20 {
                let own = format!("K{number}");
                loop {
                    let open = vault.unlock(key_file(1)).await.unwrap();
                    match open.set(&name(&own), new(&own)).await {
                        Ok(_) => break acknowledged.push(own),
                        Err(VaultError::KeyOutdated) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            acknowledged
        }
    });
    let mut current = open;
    for _ in 0..5 {
        current = current.rotate_master(vec![key_file(1)], &[]).await.unwrap();
    }
    for own in writer.await.unwrap() {
        assert_eq!(value(&current, &own).await.unwrap(), own);
    }
    assert!(current.check().await.unwrap().is_empty());
}
