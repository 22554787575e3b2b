//! A page: the document in one tab, with the operations that the tools use.

use crate::cdp::CdpSession;
use crate::dialogs::DialogAnswer;
use crate::handles::{Element, Handles};
use crate::tabs::{ContextKind, Tab, TabId};
use crate::{Browser, BrowserError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Default timeout of an evaluated script.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the frame tree of the main process, which may be busy with a large page.
const FRAME_TREE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout after which an unresponsive frame is skipped, and an unresponsive page counts as hanging.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);
/// The name of the isolated world in which lango's scripts run: they see the document, but not what the page's scripts
/// changed about built-in functions.
pub(crate) const WORLD: &str = "lango";

/// A tab with its document.
#[derive(Debug, Clone)]
pub struct Page {
    browser: Browser,
    id: TabId,
    session: CdpSession,
}

#[derive(Debug, Clone)]
pub struct Frame {
    pub id: Arc<str>,
    /// The id of the parent frame; `None` for the main frame.
    pub parent: Option<Arc<str>>,
    pub url: Arc<str>,
    /// The protocol session of the frame's process. Frames of one process share it.
    pub session: CdpSession,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTreeReply {
    frame_tree: FrameTree,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: FrameInfo,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: Arc<str>,
    parent_id: Option<Arc<str>>,
    url: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct World {
    execution_context_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation {
    result: RemoteValue,
    exception_details: Option<ExceptionDetails>,
}

#[derive(Deserialize)]
struct RemoteValue {
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct ExceptionDetails {
    text: String,
}

impl Page {
    /// Maximum number of frames.
    pub const MAX_FRAMES: usize = 100;

    pub(crate) fn new(browser: Browser, id: TabId) -> Result<Self, BrowserError> {
        let session = browser.tabs().tab(id).map(|tab| Arc::clone(&tab.session));
        let session = browser.session(&session.ok_or(BrowserError::NoPage)?);
        Ok(Self {
            browser,
            id,
            session,
        })
    }

    pub fn browser(&self) -> &Browser {
        &self.browser
    }

    pub fn tab(&self) -> TabId {
        self.id
    }

    /// Returns the protocol session of the main frame.
    pub fn session(&self) -> &CdpSession {
        &self.session
    }

    /// Calls a method of the protocol for the main frame's process.
    pub async fn call<R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl serde::Serialize,
    ) -> Result<R, BrowserError> {
        self.expect_alive()?;
        self.session.call(method, params).await
    }

    /// Returns the URL of the document.
    pub fn url(&self) -> Arc<str> {
        self.read(|tab| Arc::clone(&tab.url)).unwrap_or_default()
    }

    /// Returns the host of the URL, with the port unless it is the scheme's default; `None` for an empty page.
    pub fn host(&self) -> Option<String> {
        crate::address::host_of(&self.url())
    }

    /// Returns the kind of browser context; `None` if the tab is closed.
    pub fn context(&self) -> Option<ContextKind> {
        self.read(|tab| tab.context)
    }

    /// Returns the HTTP status of the document.
    pub fn status(&self) -> Option<u16> {
        self.read(|tab| tab.status).flatten()
    }

    /// Returns the loader id. It changes when a new document is loaded, but not when the current one is modified.
    pub fn document(&self) -> Arc<str> {
        self.read(|tab| Arc::clone(&tab.loader)).unwrap_or_default()
    }

    /// Returns whether the page's process has exited.
    pub fn is_crashed(&self) -> bool {
        self.read(|tab| tab.is_crashed).unwrap_or(true)
    }

    /// Returns whether the document is still loading.
    pub(crate) fn is_loading(&self) -> bool {
        self.read(|tab| !tab.is_loaded).unwrap_or_default()
    }

    /// Returns the title of the document.
    pub async fn title(&self) -> Result<String, BrowserError> {
        let frame = self.main_frame();
        let title = self
            .evaluate(&self.session, &frame, "document.title")
            .await?;
        Ok(title.as_str().unwrap_or_default().to_owned())
    }

    /// Returns the id of the main frame.
    pub fn main_frame(&self) -> Arc<str> {
        self.read(|tab| Arc::clone(&tab.main_frame))
            .unwrap_or_default()
    }

    /// Returns the frames, parents before their children. Skips frames that disappeared or hang.
    pub async fn frames(&self) -> Result<Vec<Frame>, BrowserError> {
        self.expect_alive()?;
        let inner = self.read(|tab| {
            let ready = tab.frames.iter().filter(|(_, frame)| frame.is_ready);
            let ready = ready.map(|(session, frame)| (Arc::clone(session), frame.clone()));
            ready.collect::<Vec<_>>()
        });
        let mut frames = Vec::new();
        add_frames(&mut frames, FRAME_TREE_TIMEOUT, &self.session, None).await?;
        let mut pending = inner.unwrap_or_default();
        // Each pass adds the frames whose parent is known.
        while frames.len() < Self::MAX_FRAMES {
            let is_known = |parent: &Option<Arc<str>>| {
                let parent = parent.as_ref();
                parent.is_none_or(|parent| frames.iter().any(|frame| frame.id == *parent))
            };
            let Some(next) = pending
                .iter()
                .position(|(_, frame)| is_known(&frame.parent))
            else {
                break;
            };
            let (session, frame) = pending.swap_remove(next);
            let session = self.browser.session(&session);
            match add_frames(&mut frames, RESPONSE_TIMEOUT, &session, frame.parent).await {
                // A frame that disappeared or hangs is skipped.
                Ok(())
                | Err(
                    BrowserError::PageChanged
                    | BrowserError::Protocol { .. }
                    | BrowserError::TimedOut { .. },
                ) => {}
                Err(error) => return Err(error),
            }
        }
        frames.truncate(Self::MAX_FRAMES);
        Ok(frames)
    }

    /// Evaluates an expression in the isolated world of a frame, awaits a promise, and returns the value.
    pub async fn evaluate(
        &self,
        session: &CdpSession,
        frame: &str,
        expression: &str,
    ) -> Result<Value, BrowserError> {
        self.evaluate_within(SCRIPT_TIMEOUT, session, frame, expression)
            .await
    }

    /// Evaluates an expression with the timeout `limit`.
    pub async fn evaluate_within(
        &self,
        limit: Duration,
        session: &CdpSession,
        frame: &str,
        expression: &str,
    ) -> Result<Value, BrowserError> {
        self.expect_alive()?;
        let world = json!({ "frameId": frame, "worldName": WORLD });
        let world: World = session
            .call_within(limit, "Page.createIsolatedWorld", world)
            .await?;
        let params = json!({
            "expression": expression,
            "contextId": world.execution_context_id,
            "awaitPromise": true,
            "returnByValue": true,
            "timeout": limit.as_millis() as u64,
        });
        let evaluation: Evaluation = session
            .call_within(limit, "Runtime.evaluate", params)
            .await?;
        match evaluation.exception_details {
            None => Ok(evaluation.result.value),
            Some(details) => Err(BrowserError::Protocol {
                method: "Runtime.evaluate",
                message: details.text,
            }),
        }
    }

    /// Sets the answer to `confirm` and `prompt` dialogs of this page until the next call.
    pub fn answer_dialogs(&self, answer: DialogAnswer) {
        self.change(|tab| tab.dialogs.answer = Some(answer));
    }

    /// Removes and returns the frame and node of the file input whose chooser the page opened last.
    pub(crate) fn take_file_chooser(&self) -> Option<(Arc<str>, i64)> {
        self.change(|tab| tab.file_chooser.take()).flatten()
    }

    /// Updates the handles of the document. `change` also gets the last handle number that was assigned in the browser.
    pub(crate) fn change_handles<T>(
        &self,
        change: impl FnOnce(&mut Handles, &mut u32) -> T,
    ) -> Option<T> {
        let mut tabs = self.browser.tabs();
        let mut last = tabs.last_handle;
        let changed = tabs
            .tab_mut(self.id)
            .map(|tab| change(&mut tab.handles, &mut last));
        tabs.last_handle = last;
        changed
    }

    pub fn handles(&self) -> Handles {
        self.read(|tab| tab.handles.clone()).unwrap_or_default()
    }

    /// Returns the element of a handle.
    pub fn element(&self, handle: &str) -> Result<Element, BrowserError> {
        let element = self.read(|tab| tab.handles.element(handle).cloned());
        element.unwrap_or(Err(BrowserError::NoPage))
    }

    /// Returns the protocol session of an element's frame.
    pub fn session_of(&self, element: &Element) -> CdpSession {
        self.browser.session(&element.session)
    }

    /// Returns whether the page's process is running and not blocked by a script.
    pub(crate) async fn is_responsive(&self) -> bool {
        let frame = self.main_frame();
        let probe = self.evaluate_within(RESPONSE_TIMEOUT, &self.session, &frame, "0");
        !matches!(
            probe.await,
            Err(BrowserError::PageCrashed | BrowserError::TimedOut { .. })
        )
    }

    /// Kills the page's process.
    pub(crate) async fn end_process(&self) {
        if self.is_crashed() {
            return;
        }
        // The browser sends no reply, only an event.
        let _: Result<Value, _> = self
            .session
            .call_within(RESPONSE_TIMEOUT, "Page.crash", json!({}))
            .await;
    }

    /// Fails if the browser or the page crashed, or the tab was closed.
    pub(crate) fn expect_alive(&self) -> Result<(), BrowserError> {
        if !self.browser.is_running() {
            return Err(BrowserError::Crashed);
        }
        match self.read(|tab| tab.is_crashed) {
            Some(false) => Ok(()),
            Some(true) => Err(BrowserError::PageCrashed),
            None => Err(BrowserError::NoPage),
        }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Tab) -> T) -> Option<T> {
        self.browser.tabs().tab(self.id).map(read)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Tab) -> T) -> Option<T> {
        self.browser.tabs().tab_mut(self.id).map(change)
    }
}

async fn add_frames(
    frames: &mut Vec<Frame>,
    limit: Duration,
    session: &CdpSession,
    parent: Option<Arc<str>>,
) -> Result<(), BrowserError> {
    let tree: FrameTreeReply = session
        .call_within(limit, "Page.getFrameTree", json!({}))
        .await?;
    let mut pending = vec![(parent, tree.frame_tree)];
    while let (Some((parent, tree)), true) = (pending.pop(), frames.len() < Page::MAX_FRAMES) {
        let id = Arc::clone(&tree.frame.id);
        let children = tree.child_frames.into_iter().rev();
        pending.extend(children.map(|child| (Some(Arc::clone(&id)), child)));
        frames.push(Frame {
            id,
            parent: tree.frame.parent_id.or(parent),
            url: tree.frame.url,
            session: session.clone(),
        });
    }
    Ok(())
}
