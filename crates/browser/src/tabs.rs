//! The state of a browser's tabs. Events from the browser change it and yield actions. This module performs no I/O; the
//! supervisor of a [`Browser`](crate::Browser) carries out the actions.

mod apply;
mod requests;
mod tab;

pub use tab::ContextKind;
pub(crate) use tab::{FrameSession, Tab};

use crate::BrowserError;
use crate::downloads::{DownloadOrigin, Downloads};
use crate::notice::Notices;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of tabs per browser; further popups are closed.
pub(crate) const MAX_TABS: usize = 10;

/// The id of a tab: `t1`, `t2`, … in the order in which the tabs opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(Default))]
pub struct TabId(u32);

impl std::fmt::Display for TabId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// All tabs of a browser.
#[derive(Debug, Default)]
pub(crate) struct Tabs {
    tabs: BTreeMap<TabId, Tab>,
    active: Option<TabId>,
    last: u32,
    /// The number of the most recently assigned handle.
    pub(crate) last_handle: u32,
    pub(crate) notices: Notices,
    pub(crate) downloads: Downloads,
    /// The browser context for workspace files.
    pub(crate) files_context: Option<Arc<str>>,
}

/// An action that follows from an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TabAction {
    /// Set up a new tab, then let it run.
    PrepareTab {
        session: Arc<str>,
    },
    /// Set up an out-of-process frame, then let it run.
    PrepareFrame {
        session: Arc<str>,
    },
    /// Start tracking the requests of a worker, then let it run.
    PrepareWorker {
        session: Arc<str>,
    },
    /// Let a target that needs no setup run.
    Release {
        session: Arc<str>,
    },
    /// Close a new tab without setting it up.
    CloseTab {
        target: Arc<str>,
        session: Arc<str>,
    },
    CancelDownload {
        id: Arc<str>,
        context: ContextKind,
    },
    AnswerDialog {
        session: Arc<str>,
        accept: bool,
        text: String,
    },
    /// Kill the process of a page that cannot be stopped in any other way.
    EndPage {
        session: Arc<str>,
    },
}

impl Tabs {
    pub(crate) fn tab(&self, id: TabId) -> Option<&Tab> {
        self.tabs.get(&id)
    }

    pub(crate) fn tab_mut(&mut self, id: TabId) -> Option<&mut Tab> {
        self.tabs.get_mut(&id)
    }

    /// Returns all tabs, in the order in which they opened.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TabId, &Tab)> {
        self.tabs.iter().map(|(id, tab)| (*id, tab))
    }

    pub(crate) fn active(&self) -> Option<TabId> {
        self.active
    }

    pub(crate) fn activate(&mut self, id: TabId) {
        self.active = Some(id);
    }

    /// Parses a tab id such as `t2`. Fails if no such tab is open.
    pub(crate) fn find(&self, name: &str) -> Result<TabId, BrowserError> {
        let number = name
            .strip_prefix('t')
            .and_then(|digits| digits.parse().ok());
        let id = number.map(TabId).filter(|id| self.tabs.contains_key(id));
        id.ok_or_else(|| BrowserError::UnknownTab {
            tab: crate::notice::shorten(name),
        })
    }

    /// Returns the tab of a protocol target.
    pub(crate) fn find_by_target(&self, target: &str) -> Option<TabId> {
        let mut tabs = self.tabs.iter();
        tabs.find(|(_, tab)| &*tab.target == target)
            .map(|(id, _)| *id)
    }

    /// Marks a tab or frame as set up.
    pub(crate) fn set_ready(&mut self, session: &str) {
        if let Some((_, tab)) = self.find_by_session(session) {
            match tab.frames.get_mut(session) {
                Some(frame) => frame.is_ready = true,
                None => tab.is_ready = true,
            }
        }
    }

    /// Starts a call: resets the answers to dialogs and their count, and revokes the permission to download.
    pub(crate) fn start_call(&mut self) {
        self.downloads.forbid();
        for tab in self.tabs.values_mut() {
            tab.dialogs.start_call();
            tab.opener = None;
        }
    }

    /// Returns whether a page of the workspace is open.
    pub(crate) fn has_workspace_page(&self) -> bool {
        let mut tabs = self.tabs.values();
        tabs.any(|tab| tab.context == ContextKind::Workspace)
    }

    /// Returns the origin of a frame's download. A tab that the permitted tab opened during the call counts as
    /// permitted too.
    fn download_origin(&self, frame: &str) -> DownloadOrigin {
        let mut tabs = self.tabs.iter();
        let Some((id, tab)) = tabs.find(|(_, tab)| tab.has_frame(frame)) else {
            return DownloadOrigin::OtherTab;
        };
        let is_permitted = |permitted: TabId| *id == permitted || tab.opener == Some(permitted);
        if tab.context == ContextKind::Workspace {
            DownloadOrigin::Workspace
        } else if self.downloads.permitted_tab().is_some_and(is_permitted) {
            DownloadOrigin::PermittedTab
        } else {
            DownloadOrigin::OtherTab
        }
    }

    /// Returns the tab whose own session this is, or whose frame or worker has this session.
    fn find_by_session(&mut self, session: &str) -> Option<(TabId, &mut Tab)> {
        self.tabs
            .iter_mut()
            .find(|(_, tab)| tab.has_session(session))
            .map(|(id, tab)| (*id, tab))
    }

    fn add(&mut self, tab: Tab) -> TabId {
        self.last += 1;
        let id = TabId(self.last);
        self.tabs.insert(id, tab);
        self.active.get_or_insert(id);
        id
    }

    fn remove(&mut self, id: TabId) {
        self.tabs.remove(&id);
        if self.active == Some(id) {
            self.active = self.tabs.keys().next_back().copied();
        }
    }
}
