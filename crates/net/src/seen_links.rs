//! Links that tools returned in a session: search results and links on pages. The server chose the whole URL, so a
//! request for it leaks nothing, and lango opens it without asking the user.
//!
//! Only keyed hashes are stored. The key is random, so a page cannot construct a URL that collides with a seen one.

use lango_core::SessionId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// Number of links stored per session; the oldest are dropped first.
const MOST_LINKS: usize = 20_000;
/// Number of sessions; the least recently used one is dropped first.
const MOST_SESSIONS: usize = 256;
/// Maximum length of a link in bytes; a longer one could carry data out and is never stored.
const LONGEST_LINK: usize = 4096;

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
    /// Stores links of a session; skips what is not an HTTP URL. A link matches with its own fragment and without one,
    /// but not with another fragment, which scripts of the page could read.
    pub fn add<'a>(&self, session: &SessionId, links: impl Iterator<Item = &'a str>) {
        // Hashed before the lock is taken: the iterator may be slow.
        let hashes: Vec<u128> = links
            .take(MOST_LINKS)
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
        if sessions.by_session.len() > MOST_SESSIONS {
            sessions.forget_one();
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
        if self.order.len() > MOST_LINKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
    }
}

/// Parses a link; `None` if it cannot be stored.
fn parse(link: &str) -> Option<Url> {
    if link.len() > LONGEST_LINK {
        return None;
    }
    let url = Url::parse(link).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

impl Sessions {
    fn forget_one(&mut self) {
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
