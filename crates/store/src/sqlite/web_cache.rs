//! The table of stored web pages.

use super::SqliteStore;
use super::rows::{bound, unsigned};
use super::statements::web_cache::{EVICT_PAGES, PAGE, REMOVE_PAGE, STORE_PAGE};
use crate::attachments::digest_of;
use crate::web_cache::{USER_CACHE_BYTES, counted_size};
use lango_core::{BoxFuture, CachedPage, StoreError, Timestamp, UserId, WebCache};
use rusqlite::{OptionalExtension as _, params};

impl WebCache for SqliteStore {
    fn cached_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<Option<CachedPage>, StoreError>> {
        let (user, digest) = (user.clone(), digest_of(url.as_bytes()));
        Box::pin(self.readers.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(PAGE)?;
            let page = statement.query_row(params![user.as_str(), digest], |row| {
                Ok(CachedPage {
                    fetched: Timestamp(unsigned(row, 0)?),
                    fresh_until: Timestamp(unsigned(row, 1)?),
                    etag: row.get(2)?,
                    last_modified: row.get(3)?,
                    content: row.get(4)?,
                })
            });
            Ok(page.optional()?)
        }))
    }

    fn store_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
        page: CachedPage,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (user, digest) = (user.clone(), digest_of(url.as_bytes()));
        Box::pin(async move {
            let Some(size) = counted_size(&user, &page)? else {
                return Ok(());
            };
            let change = self.writer.change(move |connection| {
                let user = user.as_str();
                connection.prepare_cached(STORE_PAGE)?.execute(params![
                    user,
                    digest,
                    bound(page.fetched.0),
                    bound(page.fresh_until.0),
                    bound(size),
                    page.etag,
                    page.last_modified,
                    page.content,
                ])?;
                connection
                    .prepare_cached(EVICT_PAGES)?
                    .execute(params![user, bound(USER_CACHE_BYTES)])?;
                Ok(())
            });
            change.await
        })
    }

    fn remove_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (user, digest) = (user.clone(), digest_of(url.as_bytes()));
        Box::pin(self.writer.change(move |connection| {
            connection
                .prepare_cached(REMOVE_PAGE)?
                .execute(params![user.as_str(), digest])?;
            Ok(())
        }))
    }
}
