//! One running browser: its connection, its tabs, and the task that processes its events.

use crate::cdp::{CdpSession, Connection, EventStream, NoParams};
use crate::page::Page;
use crate::supervisor;
use crate::tabs::{ContextKind, TabId, Tabs};
use crate::{BrowserError, TabSummary};
use serde::Deserialize;
use serde_json::{Value, json};
use std::any::Any;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Timeout for starting the browser and for opening a tab.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout for a tab to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A running browser. Clones share the process; dropping the last clone ends it.
#[derive(Clone)]
pub struct Browser {
    pub(crate) shared: Arc<Shared>,
    lifetime: Arc<Lifetime>,
}

/// The URLs of the proxies for the two kinds of pages.
#[derive(Debug, Clone, Copy)]
pub struct ContextProxies<'a> {
    pub web: &'a str,
    /// The proxy for pages of the workspace.
    pub files: &'a str,
}

/// State shared by the pages and the supervisor.
pub(crate) struct Shared {
    tabs: Mutex<Tabs>,
    web_context: Arc<str>,
    files_context: Arc<str>,
    /// Incremented by every event.
    pub(crate) changes: watch::Sender<u64>,
}

/// Resources that must live as long as the browser.
struct Lifetime {
    connection: Connection,
    supervisor: JoinHandle<()>,
    _resources: Box<dyn Any + Send + Sync>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewContext {
    browser_context_id: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewTarget {
    target_id: Arc<str>,
}

impl Browser {
    /// Attaches to a browser that listens on these pipes. Web pages and workspace pages each get a browser context with
    /// its own proxy; the browser's own requests use neither proxy. `resources`, such as the browser's process, are
    /// dropped with the browser.
    pub async fn attach(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        proxies: ContextProxies<'_>,
        resources: impl Any + Send + Sync,
    ) -> Result<Self, BrowserError> {
        let (connection, events) = Connection::open(reader, writer);
        let root = connection.browser();
        let web_context = create_context(&root, proxies.web).await?;
        let files_context = create_context(&root, proxies.files).await?;
        let shared = Arc::new(Shared::new(web_context, files_context));
        let supervisor = start_supervisor(&connection, &shared, events);
        let browser = Self {
            shared,
            lifetime: Arc::new(Lifetime {
                connection,
                supervisor,
                _resources: Box::new(resources),
            }),
        };
        let _: Value = root
            .call_within(
                START_TIMEOUT,
                "Target.setAutoAttach",
                supervisor::attach_tabs(),
            )
            .await?;
        Ok(browser)
    }

    /// Returns whether the connection to the browser's process is open.
    pub fn is_running(&self) -> bool {
        !self.lifetime.connection.is_lost()
    }

    /// Returns the protocol session of the browser itself.
    pub fn root(&self) -> CdpSession {
        self.lifetime.connection.browser()
    }

    /// Opens an empty tab and makes it the active one.
    pub async fn open_tab(&self, context: ContextKind) -> Result<Page, BrowserError> {
        let context = self.shared.context_id(context);
        let params = json!({ "url": "about:blank", "browserContextId": context });
        let target: NewTarget = self.root().call("Target.createTarget", params).await?;
        let ready = |tabs: &Tabs| {
            let id = tabs.find_by_target(&target.target_id)?;
            tabs.tab(id).filter(|tab| tab.is_ready).map(|_| id)
        };
        let id = self.wait_for(START_TIMEOUT, ready).await?;
        self.tabs().activate(id);
        self.page(id)
    }

    /// Returns the active tab's page.
    pub fn active_page(&self) -> Result<Page, BrowserError> {
        let active = self.tabs().active();
        self.page(active.ok_or(BrowserError::NoPage)?)
    }

    /// Returns the active page if it has this kind of context, else the page of a new tab. Closes a page that crashed
    /// or hangs.
    pub async fn page_in(&self, context: ContextKind) -> Result<Page, BrowserError> {
        let Ok(page) = self.active_page() else {
            return self.open_tab(context).await;
        };
        if !page.is_responsive().await {
            page.end_process().await;
            self.close_tab(&page.tab().to_string()).await?;
        } else if page.context() == Some(context) {
            return Ok(page);
        }
        self.open_tab(context).await
    }

    /// Activates a tab. `tab` is an id from [`Self::list`].
    pub fn switch(&self, tab: &str) -> Result<Page, BrowserError> {
        let mut tabs = self.tabs();
        let id = tabs.find(tab)?;
        tabs.activate(id);
        drop(tabs);
        self.page(id)
    }

    /// Closes a tab. `tab` is an id from [`Self::list`].
    pub async fn close_tab(&self, tab: &str) -> Result<(), BrowserError> {
        let (id, target) = {
            let tabs = self.tabs();
            let id = tabs.find(tab)?;
            (id, tabs.tab(id).map(|tab| Arc::clone(&tab.target)))
        };
        let Some(target) = target else { return Ok(()) };
        let _: Value = self
            .root()
            .call("Target.closeTarget", json!({ "targetId": target }))
            .await?;
        let gone = |tabs: &Tabs| tabs.tab(id).is_none().then_some(());
        if self.wait_for(CLOSE_TIMEOUT, gone).await.is_ok() {
            return Ok(());
        }
        // A script is preventing the page from closing.
        if let Ok(page) = self.page(id) {
            page.end_process().await;
        }
        self.wait_for(START_TIMEOUT, gone).await
    }

    /// Returns the tabs, in the order in which they opened.
    pub fn list(&self) -> Vec<TabSummary> {
        let tabs = self.tabs();
        let active = tabs.active();
        let listing = |(id, tab): (TabId, &crate::tabs::Tab)| TabSummary {
            id,
            url: Arc::clone(&tab.url),
            is_active: active == Some(id),
            is_crashed: tab.is_crashed,
        };
        tabs.iter().map(listing).collect()
    }

    /// Allows web pages to download into a directory, and denies downloads of workspace pages.
    pub(crate) async fn set_downloads(&self, directory: &Path) -> Result<(), BrowserError> {
        let web = json!({
            "behavior": "allowAndName",
            "browserContextId": self.shared.web_context,
            "downloadPath": directory.to_string_lossy(),
            "eventsEnabled": true,
        });
        let files = json!({
            "behavior": "deny",
            // Omitting this would stop the events of all contexts.
            "eventsEnabled": true,
            "browserContextId": self.shared.files_context,
        });
        for params in [web, files] {
            let _: Value = self
                .root()
                .call("Browser.setDownloadBehavior", params)
                .await?;
        }
        Ok(())
    }

    /// Starts a call: resets the answers to dialogs and other per-call state.
    pub fn start_call(&self) {
        self.tabs().start_call();
    }

    /// Takes the pending notices, such as those about dialogs, popups and downloads.
    pub fn take_notices(&self) -> Vec<String> {
        self.tabs().notices.take()
    }

    /// Asks the browser to exit; dropping the handle kills its process anyway.
    pub async fn close(self) {
        let closing = self.root();
        let limit = Duration::from_secs(2);
        let _: Result<Value, _> = closing
            .call_within(limit, "Browser.close", NoParams {})
            .await;
    }

    pub(crate) fn tabs(&self) -> MutexGuard<'_, Tabs> {
        self.shared.tabs()
    }

    pub(crate) fn session(&self, id: &Arc<str>) -> CdpSession {
        self.lifetime.connection.session(Arc::clone(id))
    }

    /// Waits until `find`, called with the state of the tabs, returns a value. Fails with [`BrowserError::TimedOut`]
    /// after `limit`.
    pub(crate) async fn wait_for<T>(
        &self,
        limit: Duration,
        find: impl Fn(&Tabs) -> Option<T>,
    ) -> Result<T, BrowserError> {
        let mut changes = self.shared.changes.subscribe();
        let waiting = async {
            loop {
                changes.borrow_and_update();
                if let Some(found) = find(&self.tabs()) {
                    return Ok(found);
                }
                tokio::select! {
                    _ = changes.changed() => {}
                    () = self.lifetime.connection.wait_until_lost() => return Err(BrowserError::Crashed),
                }
            }
        };
        let timed_out = BrowserError::TimedOut {
            method: "Target",
            seconds: limit.as_secs(),
        };
        tokio::time::timeout(limit, waiting)
            .await
            .unwrap_or(Err(timed_out))
    }

    fn page(&self, id: TabId) -> Result<Page, BrowserError> {
        Page::new(self.clone(), id)
    }
}

impl Shared {
    fn new(web_context: Arc<str>, files_context: Arc<str>) -> Self {
        let mut tabs = Tabs::default();
        tabs.files_context = Some(Arc::clone(&files_context));
        Self {
            tabs: Mutex::new(tabs),
            web_context,
            files_context,
            changes: watch::Sender::new(0),
        }
    }

    /// Returns the id that the browser gave to a context.
    pub(crate) fn context_id(&self, context: ContextKind) -> &Arc<str> {
        match context {
            ContextKind::Web => &self.web_context,
            ContextKind::Workspace => &self.files_context,
        }
    }

    pub(crate) fn tabs(&self) -> MutexGuard<'_, Tabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn create_context(root: &CdpSession, proxy: &str) -> Result<Arc<str>, BrowserError> {
    let params = json!({
        "disposeOnDetach": true,
        "proxyServer": proxy,
        "proxyBypassList": "<-loopback>",
    });
    let context: NewContext = root
        .call_within(START_TIMEOUT, "Target.createBrowserContext", params)
        .await?;
    Ok(context.browser_context_id)
}

fn start_supervisor(
    connection: &Connection,
    shared: &Arc<Shared>,
    events: EventStream,
) -> JoinHandle<()> {
    tokio::spawn(supervisor::run(
        connection.clone(),
        Arc::clone(shared),
        events,
    ))
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.supervisor.abort();
    }
}

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Browser")
            .field("is_running", &self.is_running())
            .finish_non_exhaustive()
    }
}
