//! The lifetime of cached responses, by the rules of RFC 9111 for a private cache. Each user has their own cache, so
//! `private` responses are stored and `s-maxage` is ignored.

use lango_core::{Text, Timestamp};
use lango_net::{HeaderMap, header};
use std::time::{Duration, SystemTime};

/// Lifetime of a page without caching headers. It is not zero, so that the next part of a page comes from the same
/// text.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Maximum lifetime, regardless of the server's headers.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether and for how long a response may be cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    Forbidden,
    Allowed {
        fresh_until: Timestamp,
        etag: Option<Text>,
        last_modified: Option<Text>,
    },
}

/// Derives the cache policy of a response that arrived at `now` from its headers.
pub(crate) fn cache_policy(headers: &HeaderMap, now: Timestamp) -> CachePolicy {
    let directives = Directives::read(headers);
    let varies = text(headers, header::VARY).unwrap_or_default();
    if directives.no_store || varies.split(',').any(|name| name.trim() == "*") {
        return CachePolicy::Forbidden;
    }
    let lifetime = directives.lifetime(headers, now).min(MAX_LIFETIME);
    let age = text(headers, header::AGE).and_then(|age| age.trim().parse().ok());
    let left = lifetime.saturating_sub(Duration::from_secs(age.unwrap_or(0)));
    let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    CachePolicy::Allowed {
        fresh_until: Timestamp(now.0.saturating_add(left)),
        etag: text(headers, header::ETAG).map(Into::into),
        last_modified: text(headers, header::LAST_MODIFIED).map(Into::into),
    }
}

#[derive(Default)]
struct Directives {
    no_store: bool,
    no_cache: bool,
    max_age: Option<u64>,
}

impl Directives {
    fn read(headers: &HeaderMap) -> Self {
        let mut directives = Self::default();
        let values = headers.get_all(header::CACHE_CONTROL).into_iter();
        let values = values.filter_map(|value| value.to_str().ok());
        for directive in values.flat_map(|value| value.split(',')) {
            let (name, value) = match directive.split_once('=') {
                Some((name, value)) => (name, value.trim().trim_matches('"')),
                None => (directive, ""),
            };
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" => directives.no_store = true,
                "no-cache" => directives.no_cache = true,
                // A number that is too large to parse means a long time; an invalid one means zero.
                "max-age"
                    if value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty() =>
                {
                    directives.max_age = Some(value.parse().unwrap_or(u64::MAX));
                }
                "max-age" => directives.max_age = Some(0),
                _ => {}
            }
        }
        if headers.get(header::CACHE_CONTROL).is_none() {
            let pragma = text(headers, header::PRAGMA).unwrap_or_default();
            directives.no_cache = pragma.to_ascii_lowercase().contains("no-cache");
        }
        directives
    }

    fn lifetime(&self, headers: &HeaderMap, now: Timestamp) -> Duration {
        if self.no_cache {
            return Duration::ZERO;
        }
        if let Some(seconds) = self.max_age {
            return Duration::from_secs(seconds);
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(now.0);
        let sent =
            text(headers, header::DATE).and_then(|date| httpdate::parse_http_date(date).ok());
        let sent = sent.unwrap_or(now);
        if let Some(expires) = text(headers, header::EXPIRES) {
            // `0` and other invalid dates mean that the response has already expired.
            let expires = httpdate::parse_http_date(expires).unwrap_or(SystemTime::UNIX_EPOCH);
            return expires.duration_since(sent).unwrap_or_default();
        }
        let modified = text(headers, header::LAST_MODIFIED);
        let modified = modified.and_then(|date| httpdate::parse_http_date(date).ok());
        match modified.and_then(|modified| sent.duration_since(modified).ok()) {
            Some(age) => (age / 10).max(DEFAULT_LIFETIME),
            None => DEFAULT_LIFETIME,
        }
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
