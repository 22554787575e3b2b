//! Tests of the web cache, on every database.

use crate::ROOT;
use lango_core::{CachedPage, StoreError, Timestamp, UserId, WebCache};
use lango_store::{Store, USER_CACHE_BYTES};
use lango_testkit::postgres;
use std::sync::Arc;

macro_rules! over_every_store {
    ($($name:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test] async fn $name() {
                super::$name(&lango_store::Store::in_memory()).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test] async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let address = format!("sqlite:{}", folder.path().join("lango.db").display());
                super::$name(&*super::open(&address)).await;
            })+
        }
        mod postgresql {
            $(#[tokio::test] async fn $name() {
                super::$name(&*super::open(&super::postgres::fresh_schema())).await;
            })+
        }
    };
}

over_every_store!(
    a_page_is_read_as_it_was_stored_and_replaced_by_a_newer_one,
    users_do_not_share_pages,
    a_removed_page_is_not_found,
    the_oldest_pages_of_a_user_are_evicted_but_not_those_of_others,
    a_page_larger_than_the_limit_is_not_stored,
    a_user_without_a_name_cannot_store_anything,
);

fn open(address: &str) -> Arc<dyn WebCache> {
    Arc::new(Store::at(address, ROOT.into()).unwrap())
}

fn page(fetched: u64, content: &str) -> CachedPage {
    CachedPage {
        fetched: Timestamp(fetched),
        fresh_until: Timestamp(fetched + 60_000),
        etag: Some("\"v1\"".into()),
        last_modified: None,
        content: content.into(),
    }
}

async fn stored(store: &dyn WebCache, user: &str, url: &str) -> Option<CachedPage> {
    store.cached_page(&UserId::from(user), url).await.unwrap()
}

async fn put(store: &dyn WebCache, user: &str, url: &str, page: CachedPage) {
    let user = UserId::from(user);
    store.store_page(&user, url, page).await.unwrap();
}

async fn a_page_is_read_as_it_was_stored_and_replaced_by_a_newer_one(store: &dyn WebCache) {
    let url = "https://example.com/a?b=c";
    assert_eq!(stored(store, "ann", url).await, None);
    let first = page(1_700_000_000_000, "text \u{0} of any kind: ä \u{1}");
    put(store, "ann", url, first.clone()).await;
    assert_eq!(stored(store, "ann", url).await, Some(first));
    let second = CachedPage {
        etag: None,
        last_modified: Some("Mon, 16 Nov 2026 05:44:02 GMT".into()),
        ..page(1_700_000_000_001, "other text")
    };
    put(store, "ann", url, second.clone()).await;
    assert_eq!(stored(store, "ann", url).await, Some(second));
    assert_eq!(stored(store, "ann", "https://example.com/a").await, None);
}

async fn users_do_not_share_pages(store: &dyn WebCache) {
    put(store, "ann", "https://a.example/", page(1, "hers")).await;
    assert_eq!(stored(store, "bob", "https://a.example/").await, None);
}

async fn a_removed_page_is_not_found(store: &dyn WebCache) {
    put(store, "ann", "https://a.example/", page(1, "x")).await;
    put(store, "bob", "https://a.example/", page(1, "y")).await;
    let ann = UserId::from("ann");
    for _ in 0..2 {
        store.remove_page(&ann, "https://a.example/").await.unwrap();
    }
    assert_eq!(stored(store, "ann", "https://a.example/").await, None);
    assert!(stored(store, "bob", "https://a.example/").await.is_some());
}

async fn the_oldest_pages_of_a_user_are_evicted_but_not_those_of_others(store: &dyn WebCache) {
    let large = "x".repeat(USER_CACHE_BYTES as usize / 4);
    put(store, "bob", "https://a.example/0", page(0, &large)).await;
    // The pages are not stored in the order of their age.
    for number in [2, 1, 4, 3, 5] {
        let url = format!("https://a.example/{number}");
        put(store, "ann", &url, page(number, &large)).await;
    }
    let mut left = Vec::new();
    for number in 1..=5 {
        let url = format!("https://a.example/{number}");
        if stored(store, "ann", &url).await.is_some() {
            left.push(number);
        }
    }
    assert_eq!(left, [3, 4, 5]);
    assert!(stored(store, "bob", "https://a.example/0").await.is_some());
}

async fn a_page_larger_than_the_limit_is_not_stored(store: &dyn WebCache) {
    put(store, "ann", "https://a.example/1", page(1, "small")).await;
    let large = "x".repeat(USER_CACHE_BYTES as usize + 1);
    put(store, "ann", "https://a.example/2", page(2, &large)).await;
    assert_eq!(stored(store, "ann", "https://a.example/2").await, None);
    assert!(stored(store, "ann", "https://a.example/1").await.is_some());
}

async fn a_user_without_a_name_cannot_store_anything(store: &dyn WebCache) {
    let user = UserId::from("");
    let refused = store.store_page(&user, "https://a.example/", page(1, "x"));
    assert!(matches!(refused.await, Err(StoreError::Failed { .. })));
}
