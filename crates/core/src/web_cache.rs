//! The seam to stored web pages, so that reading on in a page, or coming back to it, costs no second request.

use crate::{BoxFuture, StoreError, Text, Timestamp, UserId};

/// A page as it was fetched. What `content` contains is the business of whoever stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedPage {
    /// When the server sent it, or confirmed that it had not changed.
    pub fetched: Timestamp,
    /// Until when it may be used without asking the server.
    pub fresh_until: Timestamp,
    /// The server's `ETag`, for asking whether it changed.
    pub etag: Option<Text>,
    /// The server's `Last-Modified`, likewise.
    pub last_modified: Option<Text>,
    /// The content.
    pub content: Text,
}

/// Pages that were fetched, apart for each user. It is a cache: pages disappear when there are too many, and no export
/// contains them.
pub trait WebCache: Send + Sync {
    /// Returns the page stored under an address, fresh or not.
    fn cached_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<Option<CachedPage>, StoreError>>;

    /// Stores a page in place of an older one, and deletes the user's oldest pages beyond the limit. A page that is larger
    /// than the limit is not stored.
    fn store_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
        page: CachedPage,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes the page under an address, if there is one.
    fn remove_page<'a>(
        &'a self,
        user: &'a UserId,
        url: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}
