//! The table of stored web pages. Every statement stands alone: a page that is stored twice, or evicted late, does no harm.

use super::PostgresStore;
use super::database::Values;
use super::rows::{text, unsigned};
use super::statements::web_cache::{EVICT_PAGES, PAGE, REMOVE_PAGE, STORE_PAGE};
use super::text::{Words, optional_words};
use crate::attachments::digest_of;
use crate::web_cache::{USER_CACHE_BYTES, counted_size};
use lango_core::{BoxFuture, CachedPage, StoreError, Timestamp, UserId, WebCache};

impl WebCache for PostgresStore {
    fn cached_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<Option<CachedPage>, StoreError>> {
        Box::pin(async move {
            let digest = digest_of(url.as_bytes());
            let values: Values<'_> = &[&Words(user.as_str()), &Words(&digest)];
            let rows = self.database.query(PAGE, values).await?;
            let pages = self.values(&rows, |row| {
                let optional = |column| {
                    Ok::<_, super::failure::Failure>(optional_words(row, column)?.map(Into::into))
                };
                Ok(CachedPage {
                    fetched: Timestamp(unsigned(row, 0)?),
                    fresh_until: Timestamp(unsigned(row, 1)?),
                    etag: optional(2)?,
                    last_modified: optional(3)?,
                    content: text(row, 4)?,
                })
            });
            Ok(pages?.pop())
        })
    }

    fn store_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
        page: CachedPage,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let Some(size) = counted_size(user, &page)? else {
                return Ok(());
            };
            let digest = digest_of(url.as_bytes());
            let user = Words(user.as_str());
            let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
            let (size, limit) = (signed(size), signed(USER_CACHE_BYTES));
            let (fetched, fresh_until) = (signed(page.fetched.0), signed(page.fresh_until.0));
            let values: Values<'_> = &[
                &user,
                &Words(&digest),
                &fetched,
                &fresh_until,
                &size,
                &page.etag.as_deref().map(Words),
                &page.last_modified.as_deref().map(Words),
                &Words(&page.content),
            ];
            self.database.query(STORE_PAGE, values).await?;
            self.database.query(EVICT_PAGES, &[&user, &limit]).await?;
            Ok(())
        })
    }

    fn remove_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let digest = digest_of(url.as_bytes());
            let values: Values<'_> = &[&Words(user.as_str()), &Words(&digest)];
            self.database.query(REMOVE_PAGE, values).await?;
            Ok(())
        })
    }
}
