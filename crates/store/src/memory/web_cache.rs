//! Web pages of sessions in memory.

use super::MemoryStore;
use crate::web_cache::{USER_CACHE_BYTES, counted_size};
use lango_core::{BoxFuture, CachedPage, StoreError, Text, UserId, WebCache};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

/// Pages by user and address, with what each counts towards the limit.
pub(super) type Pages = BTreeMap<(UserId, Text), (CachedPage, u64)>;

impl WebCache for MemoryStore {
    fn cached_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<Option<CachedPage>, StoreError>> {
        let key = (user.clone(), Text::from(url));
        let page = self.pages().get(&key).map(|(page, _)| page.clone());
        Box::pin(std::future::ready(Ok(page)))
    }

    fn store_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
        page: CachedPage,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let stored = counted_size(user, &page).map(|size| {
            if let Some(size) = size {
                let mut pages = self.pages();
                pages.insert((user.clone(), url.into()), (page, size));
                evict(&mut pages, user);
            }
        });
        Box::pin(std::future::ready(stored))
    }

    fn remove_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.pages().remove(&(user.clone(), url.into()));
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Deletes the user's oldest pages beyond the limit.
fn evict(pages: &mut Pages, user: &UserId) {
    let own = pages.iter().filter(|((owner, _), _)| owner == user);
    let mut own: Vec<_> = own
        .map(|(key, (page, size))| (Reverse(page.fetched), key.clone(), *size))
        .collect();
    own.sort();
    let mut total = 0;
    for (_, key, size) in own {
        total += size;
        if total > USER_CACHE_BYTES {
            pages.remove(&key);
        }
    }
}

impl MemoryStore {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
