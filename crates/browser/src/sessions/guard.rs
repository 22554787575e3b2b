//! A guard for a call's exclusive use of a session's browser. When the call ends, it collects the notices and saves the
//! downloads.

use super::BrowserSessions;
use crate::files_server::FILES_HOST;
use crate::launch::StartedBrowser;
use crate::tabs::Tabs;
use crate::uploads::SensitiveFiles;
use crate::{Browser, BrowserError, ContextKind, Page};
use lango_core::{SessionId, ToolError, ToolOutput};
use lango_net::Refusal;
use lango_sandbox::{FILES_PORT, PROXY_PORT};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;

/// Maximum time to wait at the end of a call for its downloads.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Exclusive use of a session's browser by one call.
#[derive(Debug)]
pub(crate) struct BrowserGuard {
    sessions: BrowserSessions,
    session: SessionId,
    open: Arc<StartedBrowser>,
    notice: Option<&'static str>,
    _call_lock: OwnedMutexGuard<()>,
}

impl BrowserGuard {
    pub(super) fn new(
        sessions: BrowserSessions,
        session: SessionId,
        open: Arc<StartedBrowser>,
        call_lock: OwnedMutexGuard<()>,
        notice: Option<&'static str>,
    ) -> Self {
        Self {
            sessions,
            session,
            open,
            notice,
            _call_lock: call_lock,
        }
    }

    pub(crate) fn browser(&self) -> &Browser {
        &self.open.browser
    }

    pub(crate) fn page(&self) -> Result<Page, BrowserError> {
        self.browser().active_page()
    }

    /// Permits this call to save downloads of a page; only those from `host`, if it is given.
    pub(crate) fn permit_downloads(&self, page: &Page, host: Option<&str>) {
        let mut tabs = self.browser().tabs();
        tabs.downloads.permit(page.tab(), host);
    }

    /// Adds links of a page to the seen links, which open without asking the user. Skips links in workspace files,
    /// which an agent may have written.
    pub(crate) fn add_seen_links<'a>(&self, page: &Page, links: impl Iterator<Item = &'a str>) {
        if page.context() == Some(ContextKind::Web) {
            let seen = &self.sessions.setup().seen_links;
            seen.add(&self.session, links);
        }
    }

    /// Copies a workspace file into the browser's private directory for an upload.
    pub(crate) async fn stage_upload(
        &self,
        path: &str,
        sensitive: &SensitiveFiles,
    ) -> Result<std::path::PathBuf, ToolError> {
        let workspace = self.sessions.setup().launcher.workspace.clone();
        let private = &self.open.private;
        let (directory, path) = (private.uploads_handle(), path.to_owned());
        let sensitive = sensitive.clone();
        let staging = move || crate::uploads::stage(&workspace, &path, &directory, &sensitive);
        match tokio::task::spawn_blocking(staging).await {
            Ok(staged) => Ok(private.uploads().join(staged?)),
            Err(_) => Err(ToolError::trusted(
                "the file could not be copied; try again",
            )),
        }
    }

    /// Returns the first refused request to a host since the last check, and adds notices about the other refusals.
    pub(crate) fn refusal_of(&self, host: Option<&str>) -> Option<String> {
        let mut found = None;
        for refusal in self.open.proxy.refusals() {
            let is_it = host.is_some_and(|host| {
                let destination = refusal.destination.as_str();
                destination == host || destination.split(':').next() == Some(host)
            });
            let text = describe_refusal(&refusal);
            if is_it && found.is_none() {
                found = Some(text);
            } else {
                let mut tabs = self.browser().tabs();
                tabs.notices
                    .add(format!("a request of the page failed: {text}"));
            }
        }
        found
    }

    /// Ends the call, and returns its text or error with the notices.
    pub(crate) async fn finish(
        self,
        result: Result<String, BrowserError>,
    ) -> Result<ToolOutput, ToolError> {
        let mut notices = self.notices().await;
        // The result so far is still valid; the notice tells the model that the browser is gone.
        if !self.browser().is_running() && !reports_crash(&result) {
            notices.push(BrowserError::Crashed.to_string());
        }
        match result {
            Ok(text) => Ok(ToolOutput::from(with_notices(text, &notices))),
            Err(error) => Err(ToolError::new(with_notices(error.to_string(), &notices))),
        }
    }

    async fn notices(&self) -> Vec<String> {
        self.browser().tabs().downloads.forbid();
        self.save_downloads().await;
        self.refusal_of(None);
        let mut notices: Vec<String> = self.notice.iter().map(|&text| text.to_owned()).collect();
        notices.extend(self.browser().take_notices());
        notices
    }

    async fn save_downloads(&self) {
        let end = Instant::now() + DOWNLOAD_TIMEOUT;
        let none_running = |tabs: &Tabs| (!tabs.downloads.has_running()).then_some(());
        let left = end.saturating_duration_since(Instant::now());
        // A later call saves downloads that take longer.
        let _ = self.browser().wait_for(left, none_running).await;
        let finished = {
            let mut tabs = self.browser().tabs();
            let Tabs {
                downloads, notices, ..
            } = &mut *tabs;
            downloads.note_running(notices);
            downloads.take_finished()
        };
        for download in finished {
            let workspace = self.sessions.setup().launcher.workspace.clone();
            let directory = self.open.private.downloads_handle();
            let saving = move || download.save(&directory, &workspace);
            if let Ok(text) = tokio::task::spawn_blocking(saving).await {
                self.browser().tabs().notices.add(text);
            }
        }
    }
}

impl Drop for BrowserGuard {
    fn drop(&mut self) {
        self.browser().tabs().downloads.forbid();
        if let Some(entry) = self.sessions.lock().get_mut(&self.session) {
            entry.last_used = Instant::now();
        }
    }
}

/// Returns whether a result already reports the crash of the browser.
fn reports_crash(result: &Result<String, BrowserError>) -> bool {
    match result {
        Ok(text) => text.contains(&BrowserError::Crashed.to_string()),
        Err(error) => *error == BrowserError::Crashed,
    }
}

/// Describes a refused request. Requests to lango's own addresses inside the sandbox get a different text, because the
/// user cannot allow them.
pub(crate) fn describe_refusal(refusal: &Refusal) -> String {
    let destination = &refusal.destination;
    let host = destination.split(':').next().unwrap_or_default();
    let own = [FILES_PORT, PROXY_PORT].map(|port| format!("127.0.0.1:{port}"));
    if host == FILES_HOST {
        return format!(
            "`{destination}` is refused: web pages cannot load workspace files; open a file with the `path` argument of `browser_navigate`"
        );
    }
    if own.contains(destination) {
        return format!("`{destination}` is refused: it belongs to lango");
    }
    refusal.to_string()
}

fn with_notices(mut text: String, notices: &[String]) -> String {
    if !notices.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for notice in notices {
        text.push_str(&format!("[{notice}]\n"));
    }
    text
}
