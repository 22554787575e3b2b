//! The rules of the web cache that are the same in every store.

use lango_core::{CachedPage, StoreError, UserId};

/// How many bytes of pages are stored for one user.
pub const USER_CACHE_BYTES: u64 = 64 << 20;

/// What a row costs besides its text.
const ROW_BYTES: usize = 256;

/// How much a page counts towards the limit, or nothing if it is too large to be stored at all.
pub(crate) fn counted_size(user: &UserId, page: &CachedPage) -> Result<Option<u64>, StoreError> {
    if !user.can_be_kept() {
        return Err(StoreError::Failed {
            detail: "a web page belongs to a user whose name cannot be stored: it is empty, too long, or has control characters"
                .to_owned(),
        });
    }
    let validators = [&page.etag, &page.last_modified];
    let validators = validators.into_iter().flatten().map(|text| text.len());
    let size = page.content.len() + validators.sum::<usize>() + ROW_BYTES;
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    Ok((size <= USER_CACHE_BYTES).then_some(size))
}
