//! The browsers of sessions: one per session, started on first use, closed when idle, limited in number.

mod visit;

pub(crate) use visit::{Visit, describe_refusal};

use crate::launch::{BrowserLauncher, OwnSandbox, StartedBrowser};
use crate::{Browser, BrowserError};
use lango_core::{Caller, SessionId};
use lango_net::SeenLinks;
use lango_secrets::SecretSource;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Maximum number of browsers per lango process.
const MOST_BROWSERS: usize = 4;

/// The settings of the sessions' browsers.
#[derive(Debug, Clone)]
pub struct BrowserSetup {
    /// Starts them.
    pub launcher: BrowserLauncher,
    /// The links that each session has seen.
    pub seen_links: SeenLinks,
    /// Idle time after which a browser is closed.
    pub idle_time: Duration,
    /// The URL of a search, with `{query}` as placeholder.
    pub search_url: String,
}

/// The browsers of all sessions of this process. Clones share them; dropping the last one ends them.
#[derive(Debug, Clone)]
pub struct Sessions {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    setup: BrowserSetup,
    /// Determined with the first browser.
    own_sandbox: OnceCell<OwnSandbox>,
    entries: Mutex<HashMap<SessionId, Entry>>,
    secrets: OnceLock<Arc<dyn SecretSource>>,
    /// The sessions whose pages may show a secret that was typed.
    typed_secrets: Mutex<HashSet<SessionId>>,
}

#[derive(Debug)]
struct Entry {
    state: State,
    /// One call at a time.
    calls: Arc<tokio::sync::Mutex<()>>,
    last_used: Instant,
    /// The last handle number of the crashed browser. The next browser continues from it, so that no handle is reused.
    last_handle: u32,
}

#[derive(Debug)]
enum State {
    Starting,
    Open(Arc<StartedBrowser>),
    /// It crashed and was not replaced yet.
    Lost,
}

/// The kind of browser that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Any: the call brings its own URL, so a browser is started if there is none.
    Any,
    /// One with an open page.
    Open,
}

impl Sessions {
    /// Creates sessions without browsers.
    pub fn new(setup: BrowserSetup) -> Self {
        Self {
            shared: Arc::new(Shared {
                setup,
                own_sandbox: OnceCell::new(),
                entries: Mutex::default(),
                secrets: OnceLock::new(),
                typed_secrets: Mutex::default(),
            }),
        }
    }

    /// Lets pages be typed secrets of this source. Later calls change nothing.
    pub fn set_secrets(&self, source: Arc<dyn SecretSource>) {
        // Only the first source counts.
        let _ = self.shared.secrets.set(source);
    }

    pub(crate) fn secrets(&self) -> Option<&Arc<dyn SecretSource>> {
        self.shared.secrets.get()
    }

    /// Refuses pictures from now on: a page can show a password that was typed.
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

    /// Returns the open browser of a session; starts none.
    pub fn browser(&self, session: &SessionId) -> Option<Browser> {
        match &self.lock().get(session)?.state {
            State::Open(open) if open.browser.is_running() => Some(open.browser.clone()),
            State::Open(_) | State::Starting | State::Lost => None,
        }
    }

    /// Gives a call exclusive use of the session's browser, after earlier calls.
    pub(crate) async fn visit(&self, caller: &Caller, need: Need) -> Result<Visit, BrowserError> {
        let session = &caller.session;
        let calls = {
            let mut entries = self.lock();
            match entries.get(session) {
                Some(entry) => Arc::clone(&entry.calls),
                None if need == Need::Open => return Err(BrowserError::NoPage),
                None => {
                    let room = make_room(&mut entries)?;
                    let entry = Entry::starting();
                    let calls = Arc::clone(&entry.calls);
                    entries.insert(session.clone(), entry);
                    drop(entries);
                    drop(room);
                    calls
                }
            }
        };
        let turn = calls.lock_owned().await;
        let mut notice = None;
        let open = match self.current(session, &mut notice) {
            Some(open) => open,
            None if need == Need::Open => return Err(BrowserError::Crashed),
            None => self.start(caller).await?,
        };
        let budgets = self.shared.setup.launcher.egress.budgets();
        open.proxy.set_budget(budgets.of(session, &caller.turn));
        open.browser.start_call();
        Ok(Visit::new(
            self.clone(),
            session.clone(),
            open,
            turn,
            notice,
        ))
    }

    /// Closes a session's browser; returns whether there was one.
    pub async fn close(&self, session: &SessionId) -> bool {
        let entry = self.lock().remove(session);
        let Some(entry) = entry else { return false };
        // A running call ends first.
        let _turn = entry.calls.lock().await;
        match entry.state {
            State::Open(open) => {
                open.browser.clone().close().await;
                true
            }
            State::Starting | State::Lost => false,
        }
    }

    /// Returns the number of open browsers.
    pub fn count(&self) -> usize {
        let entries = self.lock();
        let is_lost = |entry: &&Entry| matches!(entry.state, State::Lost);
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
        if let State::Open(open) = &entry.state {
            if open.browser.is_running() {
                return Some(Arc::clone(open));
            }
            entry.last_handle = open.browser.tabs().last_handle;
            entry.state = State::Lost;
        }
        if matches!(entry.state, State::Lost) {
            *notice = Some(
                "the browser had crashed and was started anew; what was open before is gone, and handles from before are \
                 invalid",
            );
        }
        None
    }

    async fn start(&self, caller: &Caller) -> Result<Arc<StartedBrowser>, BrowserError> {
        let setup = &self.shared.setup;
        let budget = setup.launcher.egress.budgets();
        let budget = budget.of(&caller.session, &caller.turn);
        let launcher = &setup.launcher;
        let own_sandbox = self
            .shared
            .own_sandbox
            .get_or_try_init(|| launcher.find_own_sandbox());
        let started = match own_sandbox.await {
            Ok(own_sandbox) => launcher.start(*own_sandbox, budget).await,
            Err(error) => Err(error),
        };
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&caller.session) else {
            // Closed meanwhile.
            return Err(BrowserError::NoPage);
        };
        match started {
            Ok(started) => {
                let open = Arc::new(started);
                open.browser.tabs().last_handle = entry.last_handle;
                entry.state = State::Open(Arc::clone(&open));
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

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.shared.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn starting() -> Self {
        Self {
            state: State::Starting,
            calls: Arc::default(),
            last_used: Instant::now(),
            last_handle: 0,
        }
    }

    /// Returns whether no call uses or awaits it.
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.calls) == 1
    }
}

/// Removes the least recently used browser if the limit is reached, a crashed one first.
fn make_room(entries: &mut HashMap<SessionId, Entry>) -> Result<Option<Entry>, BrowserError> {
    if entries.len() < MOST_BROWSERS {
        return Ok(None);
    }
    let free = entries.iter().filter(|(_, entry)| entry.is_free());
    let is_open = |entry: &Entry| matches!(entry.state, State::Open(_));
    let oldest = free.min_by_key(|(_, entry)| (is_open(entry), entry.last_used));
    let oldest = oldest.map(|(session, _)| session.clone());
    let oldest = oldest.ok_or(BrowserError::TooMany {
        count: entries.len(),
    })?;
    Ok(entries.remove(&oldest))
}

/// Closes a browser after its idle time.
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
        if !matches!(&entry.state, State::Open(current) if Arc::ptr_eq(current, &open)) {
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
