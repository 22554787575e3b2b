//! The browsers of sessions: at most one per session, started on first use, closed when idle, and limited in number.

mod guard;

pub(crate) use guard::{BrowserGuard, describe_refusal};

use crate::launch::{BrowserLauncher, ChromiumSandbox, StartedBrowser};
use crate::{Browser, BrowserError};
use lango_core::{Caller, SessionId};
use lango_net::SeenLinks;
use lango_secrets::SecretSource;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Maximum number of browsers per lango process.
const MAX_BROWSERS: usize = 4;

/// The settings of the sessions' browsers.
#[derive(Debug, Clone)]
pub struct BrowserSetup {
    pub launcher: BrowserLauncher,
    /// The links that each session has seen.
    pub seen_links: SeenLinks,
    /// Idle time after which a browser is closed.
    pub idle_time: Duration,
    /// The URL of the search engine, with `{query}` as placeholder.
    pub search_url: String,
}

/// The browsers of all sessions of this process. Clones share them; dropping the last clone ends them.
#[derive(Debug, Clone)]
pub struct BrowserSessions {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    setup: BrowserSetup,
    /// Determined when the first browser starts.
    chromium_sandbox: OnceCell<ChromiumSandbox>,
    entries: Mutex<HashMap<SessionId, SessionEntry>>,
    secrets: OnceLock<Arc<dyn SecretSource>>,
    /// The sessions in which a secret was typed into a page, which may now show it.
    typed_secrets: Mutex<HashSet<SessionId>>,
}

#[derive(Debug)]
struct SessionEntry {
    state: BrowserState,
    /// Serializes the calls of the session.
    calls: Arc<tokio::sync::Mutex<()>>,
    last_used: Instant,
    /// The last handle number of the crashed browser. The next browser continues from it, so no handle is reused.
    last_handle: u32,
}

#[derive(Debug)]
enum BrowserState {
    Starting,
    Open(Arc<StartedBrowser>),
    /// The browser crashed and has not been replaced yet.
    Lost,
}

/// What a call requires of the session's browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BrowserNeed {
    /// The call opens a URL itself, so a browser is started if none is running.
    StartIfNone,
    /// The browser must already be running, because the call uses its open page.
    MustBeOpen,
}

impl BrowserSessions {
    /// Creates an empty registry; no browser is started.
    pub fn new(setup: BrowserSetup) -> Self {
        Self {
            shared: Arc::new(Shared {
                setup,
                chromium_sandbox: OnceCell::new(),
                entries: Mutex::default(),
                secrets: OnceLock::new(),
                typed_secrets: Mutex::default(),
            }),
        }
    }

    /// Sets the source of secrets that `browser_act` may type into pages. Only the first call has an effect.
    pub fn set_secrets(&self, source: Arc<dyn SecretSource>) {
        // An error means that a source is already set.
        let _ = self.shared.secrets.set(source);
    }

    pub(crate) fn secrets(&self) -> Option<&Arc<dyn SecretSource>> {
        self.shared.secrets.get()
    }

    /// Records that a secret was typed. From now on screenshots are refused, because a page can show a typed password.
    pub(crate) fn note_typed_secret(&self, session: &SessionId) {
        let typed = &self.shared.typed_secrets;
        let mut typed = typed.lock().unwrap_or_else(PoisonError::into_inner);
        typed.insert(session.clone());
    }

    /// Returns whether a secret was typed into a page of this session.
    pub(crate) fn has_typed_secret(&self, session: &SessionId) -> bool {
        let typed = &self.shared.typed_secrets;
        let typed = typed.lock().unwrap_or_else(PoisonError::into_inner);
        typed.contains(session)
    }

    pub(crate) fn setup(&self) -> &BrowserSetup {
        &self.shared.setup
    }

    /// Returns the running browser of a session; never starts one.
    pub fn browser(&self, session: &SessionId) -> Option<Browser> {
        match &self.lock().get(session)?.state {
            BrowserState::Open(open) if open.browser.is_running() => Some(open.browser.clone()),
            BrowserState::Open(_) | BrowserState::Starting | BrowserState::Lost => None,
        }
    }

    /// Gives a call exclusive use of the session's browser, after waiting for earlier calls.
    pub(crate) async fn acquire(
        &self,
        caller: &Caller,
        need: BrowserNeed,
    ) -> Result<BrowserGuard, BrowserError> {
        let session = &caller.session;
        let calls = {
            let mut entries = self.lock();
            match entries.get(session) {
                Some(entry) => Arc::clone(&entry.calls),
                None if need == BrowserNeed::MustBeOpen => return Err(BrowserError::NoPage),
                None => {
                    let evicted = evict_if_full(&mut entries)?;
                    let entry = SessionEntry::starting();
                    let calls = Arc::clone(&entry.calls);
                    entries.insert(session.clone(), entry);
                    drop(entries);
                    drop(evicted);
                    calls
                }
            }
        };
        let call_lock = calls.lock_owned().await;
        let mut notice = None;
        let open = match self.current(session, &mut notice) {
            Some(open) => open,
            None if need == BrowserNeed::MustBeOpen => return Err(BrowserError::Crashed),
            None => self.start(caller).await?,
        };
        let budgets = self.shared.setup.launcher.egress.budgets();
        open.proxy.set_budget(budgets.of(session, &caller.turn));
        open.browser.start_call();
        Ok(BrowserGuard::new(
            self.clone(),
            session.clone(),
            open,
            call_lock,
            notice,
        ))
    }

    /// Closes a session's browser; returns whether one was open.
    pub async fn close(&self, session: &SessionId) -> bool {
        let entry = self.lock().remove(session);
        let Some(entry) = entry else { return false };
        // Waits for a running call to end.
        let _call_lock = entry.calls.lock().await;
        match entry.state {
            BrowserState::Open(open) => {
                open.browser.clone().close().await;
                true
            }
            BrowserState::Starting | BrowserState::Lost => false,
        }
    }

    /// Returns the number of open browsers.
    pub fn count(&self) -> usize {
        let entries = self.lock();
        let is_lost = |entry: &&SessionEntry| matches!(entry.state, BrowserState::Lost);
        entries.len() - entries.values().filter(is_lost).count()
    }

    fn current(
        &self,
        session: &SessionId,
        notice: &mut Option<&str>,
    ) -> Option<Arc<StartedBrowser>> {
        let mut entries = self.lock();
        let entry = entries.get_mut(session)?;
        entry.last_used = Instant::now();
        if let BrowserState::Open(open) = &entry.state {
            if open.browser.is_running() {
                return Some(Arc::clone(open));
            }
            entry.last_handle = open.browser.tabs().last_handle;
            entry.state = BrowserState::Lost;
        }
        if matches!(entry.state, BrowserState::Lost) {
            *notice = Some(
                "the browser had crashed and was restarted; its open pages are lost, and earlier handles are invalid",
            );
        }
        None
    }

    async fn start(&self, caller: &Caller) -> Result<Arc<StartedBrowser>, BrowserError> {
        let setup = &self.shared.setup;
        let budget = setup.launcher.egress.budgets();
        let budget = budget.of(&caller.session, &caller.turn);
        let launcher = &setup.launcher;
        let chromium_sandbox = self
            .shared
            .chromium_sandbox
            .get_or_try_init(|| launcher.check_chromium_sandbox());
        let started = match chromium_sandbox.await {
            Ok(chromium_sandbox) => launcher.start(*chromium_sandbox, budget).await,
            Err(error) => Err(error),
        };
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&caller.session) else {
            // The session's browser was closed in the meantime.
            return Err(BrowserError::NoPage);
        };
        match started {
            Ok(started) => {
                let open = Arc::new(started);
                open.browser.tabs().last_handle = entry.last_handle;
                entry.state = BrowserState::Open(Arc::clone(&open));
                entry.last_used = Instant::now();
                tokio::spawn(close_when_idle(
                    Arc::downgrade(&self.shared),
                    caller.session.clone(),
                    Arc::downgrade(&open),
                    setup.idle_time,
                ));
                Ok(open)
            }
            Err(error) => {
                entries.remove(&caller.session);
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, SessionEntry>> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, SessionEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionEntry {
    fn starting() -> Self {
        Self {
            state: BrowserState::Starting,
            calls: Arc::default(),
            last_used: Instant::now(),
            last_handle: 0,
        }
    }

    /// Returns whether no call is using or waiting for the browser.
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.calls) == 1
    }
}

/// Removes the least recently used idle browser if the limit is reached; crashed ones go first. Fails if all browsers
/// are in use.
fn evict_if_full(
    entries: &mut HashMap<SessionId, SessionEntry>,
) -> Result<Option<SessionEntry>, BrowserError> {
    if entries.len() < MAX_BROWSERS {
        return Ok(None);
    }
    let free = entries.iter().filter(|(_, entry)| entry.is_free());
    let is_open = |entry: &SessionEntry| matches!(entry.state, BrowserState::Open(_));
    let oldest = free.min_by_key(|(_, entry)| (is_open(entry), entry.last_used));
    let oldest = oldest.map(|(session, _)| session.clone());
    let oldest = oldest.ok_or(BrowserError::TooMany {
        count: entries.len(),
    })?;
    Ok(entries.remove(&oldest))
}

/// Closes a browser once it has been idle for `idle_time`.
async fn close_when_idle(
    shared: Weak<Shared>,
    session: SessionId,
    open: Weak<StartedBrowser>,
    idle_time: Duration,
) {
    let mut pause = idle_time;
    loop {
        tokio::time::sleep(pause).await;
        let (Some(shared), Some(open)) = (shared.upgrade(), open.upgrade()) else {
            return;
        };
        let mut entries = shared.lock();
        let Some(entry) = entries.get(&session) else {
            return;
        };
        if !matches!(&entry.state, BrowserState::Open(current) if Arc::ptr_eq(current, &open)) {
            return;
        }
        let idle = entry.last_used.elapsed();
        if entry.is_free() && idle >= idle_time {
            entries.remove(&session);
            return;
        }
        pause = idle_time
            .saturating_sub(idle)
            .max(Duration::from_millis(100));
    }
}
