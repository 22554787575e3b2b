//! Links that tools returned in a session: search results and links on pages. The model did not make up these URLs, so
//! a request for one of them leaks no data, and lango opens it without asking the user.
//!
//! Only keyed hashes are stored. The key is random, so a page cannot construct a URL that collides with a seen one.

use lango_core::SessionId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// The maximum number of links per session. The oldest ones are dropped first.
const MAX_LINKS: usize = 20_000;
/// The maximum number of sessions. The least recently used one is dropped first.
const MAX_SESSIONS: usize = 256;
/// The maximum length of a link, in bytes. A longer link could be used to leak data, and is not stored.
const MAX_LINK_BYTES: usize = 4096;

/// The seen links of each session. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SeenLinks(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    key: (RandomState, RandomState),
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    by_session: HashMap<SessionId, Links>,
    lookups: u64,
}

#[derive(Debug, Default)]
struct Links {
    hashes: HashSet<u128>,
    order: VecDeque<u128>,
    used_at: u64,
}

impl SeenLinks {
    /// Stores links of a session. Skips those that are not HTTP URLs. A link matches with its own fragment or without a
    /// fragment, but not with another fragment, because scripts of the page could read it.
    pub fn add<'a>(&self, session: &SessionId, links: impl Iterator<Item = &'a str>) {
        // Hash before taking the lock, because the iterator may be slow.
        let hashes: Vec<u128> = links
            .take(MAX_LINKS)
            .filter_map(parse)
            .flat_map(|mut url| {
                let whole = self.hash(&url);
                url.set_fragment(None);
                [whole, self.hash(&url)]
            })
            .collect();
        let mut sessions = self.lock();
        sessions.lookups += 1;
        let used_at = sessions.lookups;
        let links = sessions.by_session.entry(session.clone()).or_default();
        links.used_at = used_at;
        for hash in hashes {
            links.insert(hash);
        }
        if sessions.by_session.len() > MAX_SESSIONS {
            sessions.evict_oldest();
        }
    }

    /// Returns whether this session has seen the link.
    pub fn contains(&self, session: &SessionId, link: &str) -> bool {
        let Some(url) = parse(link) else {
            return false;
        };
        let hash = self.hash(&url);
        let mut sessions = self.lock();
        sessions.lookups += 1;
        let used_at = sessions.lookups;
        sessions.by_session.get_mut(session).is_some_and(|links| {
            links.used_at = used_at;
            links.hashes.contains(&hash)
        })
    }

    fn hash(&self, url: &Url) -> u128 {
        let (high, low) = &self.0.key;
        let high = u128::from(high.hash_one(url.as_str()));
        high << 64 | u128::from(low.hash_one(url.as_str()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sessions> {
        let sessions = &self.0.sessions;
        sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Links {
    fn insert(&mut self, hash: u128) {
        if !self.hashes.insert(hash) {
            return;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_LINKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
    }
}

/// Parses a link. Returns `None` if it is too long or not an HTTP URL.
fn parse(link: &str) -> Option<Url> {
    if link.len() > MAX_LINK_BYTES {
        return None;
    }
    let url = Url::parse(link).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

impl Sessions {
    fn evict_oldest(&mut self) {
        let oldest = self
            .by_session
            .iter()
            .min_by_key(|(_, links)| links.used_at)
            .map(|(session, _)| session.clone());
        if let Some(oldest) = oldest {
            self.by_session.remove(&oldest);
        }
    }
}
