//! The cache of fetched web pages, with a size limit per user.

use crate::StoreFuture;
use crate::attachments::digest_of;
use crate::backend::{records, statements, values};
use crate::decode::check_user;
use crate::store::Store;
use lango_core::{CachedPage, UserId, WebCache};

/// Maximum number of bytes of pages stored for one user.
pub const USER_CACHE_BYTES: u64 = 64 << 20;

/// The size of a row without its texts, as it counts towards the limit.
const ROW_BYTES: usize = 256;

/// Returns the number of bytes by which a page counts towards the limit, or `None` if the page is too large to store.
fn counted_size(page: &CachedPage) -> Option<u64> {
    let validators = [&page.etag, &page.last_modified];
    let validators = validators.into_iter().flatten().map(|text| text.len());
    let size = page.content.len() + validators.sum::<usize>() + ROW_BYTES;
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    (size <= USER_CACHE_BYTES).then_some(size)
}

impl WebCache for Store {
    fn cached_page(&self, user: &UserId, url: &str) -> StoreFuture<'_, Option<CachedPage>> {
        let digest = digest_of(url.as_bytes());
        self.backend
            .query_opt(PAGE, values![user, digest], |row| row.read())
    }

    /// Stores a page and evicts old ones. Storing a page twice or evicting late is harmless, so no transaction is needed.
    fn store_page(&self, user: &UserId, url: &str, page: CachedPage) -> StoreFuture<'_, ()> {
        let args = (user.clone(), digest_of(url.as_bytes()), page);
        self.backend
            .write_autocommit(args, |tx, (user, digest, page)| {
                Box::pin(async move {
                    check_user(user, "a web page")?;
                    let Some(size) = counted_size(page) else {
                        return Ok(());
                    };
                    let values = values![
                        user,
                        digest,
                        page.fetched,
                        page.fresh_until,
                        size,
                        page.etag,
                        page.last_modified,
                        page.content
                    ];
                    tx.execute(STORE_PAGE, values).await?;
                    let values = values![user, USER_CACHE_BYTES];
                    tx.execute(EVICT_PAGES, values).await.map(drop)
                })
            })
    }

    fn remove_page(&self, user: &UserId, url: &str) -> StoreFuture<'_, ()> {
        let digest = digest_of(url.as_bytes());
        let removed = self.backend.execute(REMOVE_PAGE, values![user, digest]);
        Box::pin(async move { removed.await.map(drop) })
    }
}

records! {
    CachedPage { fetched, fresh_until, etag, last_modified, content }
}

statements! {
    PAGE: r#"SELECT fetched, fresh_until, etag, last_modified, content FROM web_pages
      WHERE "user" = $1 AND digest = $2"#;

    STORE_PAGE: r#"INSERT INTO web_pages ("user", digest, fetched, fresh_until, size, etag, last_modified, content)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT ("user", digest) DO UPDATE SET fetched = excluded.fetched,
        fresh_until = excluded.fresh_until, size = excluded.size, etag = excluded.etag,
        last_modified = excluded.last_modified, content = excluded.content"#;

    REMOVE_PAGE: r#"DELETE FROM web_pages WHERE "user" = $1 AND digest = $2"#;

    /// Deletes a user's oldest pages beyond `$2` bytes.
    EVICT_PAGES: r#"DELETE FROM web_pages WHERE "user" = $1 AND digest IN
        (SELECT digest FROM
            (SELECT digest, sum(size) OVER (ORDER BY fetched DESC, digest) AS total
               FROM web_pages WHERE "user" = $1) AS pages
          WHERE total > $2::bigint)"#;
}
