//! The cache of fetched web pages. It saves a request when an agent continues reading a page or returns to it.

use crate::{BoxFuture, StoreError, Text, Timestamp, UserId};

/// A fetched page. The format of `content` is up to the caller; the cache does not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedPage {
    /// When the server sent the page, or confirmed that it had not changed.
    pub fetched: Timestamp,
    /// The page may be used without revalidation until this time.
    pub fresh_until: Timestamp,
    /// The server's `ETag`, for revalidation.
    pub etag: Option<Text>,
    /// The server's `Last-Modified`, for revalidation.
    pub last_modified: Option<Text>,
    pub content: Text,
}

/// A cache of fetched pages, separate for each user. It evicts old pages, and exports leave it out.
pub trait WebCache: Send + Sync {
    /// Returns the cached page of a URL, even if it is no longer fresh.
    fn cached_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<Option<CachedPage>, StoreError>>;

    /// Stores or replaces the page of a URL, then deletes the user's oldest pages beyond the size limit. A page that alone
    /// exceeds the limit is not stored.
    fn store_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
        page: CachedPage,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes the cached page of a URL, if it exists.
    fn remove_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}
