//! Applies the browser's events to the state of the tabs.

use super::requests::RequestSource;
use super::{ContextKind, FrameSession, MAX_TABS, Tab, TabAction, Tabs};
use crate::cdp::Event;
use crate::dialogs::{DialogOpening, DialogReaction};
use crate::downloads::{DownloadOrigin, DownloadReaction, DownloadStart};
use crate::notice::quote_short;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Instant;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedTarget {
    session_id: Arc<str>,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: Arc<str>,
    r#type: String,
    url: Arc<str>,
    opener_id: Option<Arc<str>>,
    browser_context_id: Option<Arc<str>>,
    parent_frame_id: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DetachedTarget {
    session_id: Arc<str>,
}

#[derive(Deserialize)]
struct FrameNavigation {
    frame: FrameInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: Arc<str>,
    parent_id: Option<Arc<str>>,
    loader_id: Arc<str>,
    url: Arc<str>,
    unreachable_url: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameChange {
    frame_id: Arc<str>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SameDocumentNavigation {
    frame_id: Arc<str>,
    url: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    request_id: String,
    r#type: Option<String>,
    frame_id: Option<Arc<str>>,
    loader_id: Option<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseStart {
    r#type: String,
    frame_id: Option<Arc<str>>,
    loader_id: Arc<str>,
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    status: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileChooserOpening {
    frame_id: Arc<str>,
    backend_node_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThrownException {
    exception_details: ExceptionDetails,
}

#[derive(Deserialize)]
struct ExceptionDetails {
    text: String,
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    description: Option<String>,
}

impl Tabs {
    /// Applies an event to the tabs, and returns the actions that follow.
    pub(crate) fn apply(&mut self, event: &Event, now: Instant) -> Vec<TabAction> {
        let Some(session) = &event.session else {
            return self.apply_to_browser(event);
        };
        match event.method.as_str() {
            "Target.attachedToTarget" => return self.attach_frame(event, session),
            "Target.detachedFromTarget" => self.detach(event),
            "Inspector.targetCrashed" => self.crash(session),
            "Page.javascriptDialogOpening" => return self.open_dialog(event, session),
            "Runtime.exceptionThrown" => self.note_exception(event, session),
            _ => {
                if let Some((_, tab)) = self.find_by_session(session) {
                    apply_to_tab(tab, event, session, now);
                }
            }
        }
        Vec::new()
    }

    fn apply_to_browser(&mut self, event: &Event) -> Vec<TabAction> {
        match event.method.as_str() {
            "Target.attachedToTarget" => return self.attach_tab(event),
            "Target.detachedFromTarget" => self.detach(event),
            "Browser.downloadWillBegin" => {
                if let Some(start) = event.read::<DownloadStart>() {
                    let origin = self.download_origin(&start.frame_id);
                    let reaction = self.downloads.start(start, origin, &mut self.notices);
                    let context = match origin {
                        DownloadOrigin::Workspace => ContextKind::Workspace,
                        DownloadOrigin::PermittedTab | DownloadOrigin::OtherTab => ContextKind::Web,
                    };
                    return download_action(reaction, context);
                }
            }
            "Browser.downloadProgress" => {
                if let Some(progress) = event.read() {
                    let reaction = self.downloads.progress(progress, &mut self.notices);
                    // Downloads of workspace pages never run.
                    return download_action(reaction, ContextKind::Web);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn attach_tab(&mut self, event: &Event) -> Vec<TabAction> {
        let Some(AttachedTarget {
            session_id: session,
            target_info: info,
        }) = event.read()
        else {
            return Vec::new();
        };
        if info.r#type != "page" {
            return vec![TabAction::Release { session }];
        }
        let target = info.target_id;
        let opener = info.opener_id.as_ref();
        let opener = opener.and_then(|opener| self.find_by_target(opener));
        let is_popup = info.opener_id.is_some();
        if self.tabs.len() >= MAX_TABS {
            self.notices.add(format!(
                "a new tab was closed immediately: {MAX_TABS} tabs are open, which is the limit"
            ));
            return vec![TabAction::CloseTab { target, session }];
        }
        let is_file =
            info.browser_context_id.is_some() && info.browser_context_id == self.files_context;
        let context = if is_file {
            ContextKind::Workspace
        } else {
            ContextKind::Web
        };
        // Most popups have no URL yet when they open.
        let address = match &*info.url {
            "" | "about:blank" => String::new(),
            url => format!(" ({})", quote_short(url)),
        };
        let mut tab = Tab::new(target, Arc::clone(&session), info.url, context);
        tab.opener = opener;
        let id = self.add(tab);
        if is_popup {
            let text =
                format!("the page opened the tab {id}{address}; switch to it with `browser_tabs`");
            self.notices.add(text);
        }
        vec![TabAction::PrepareTab { session }]
    }

    fn attach_frame(&mut self, event: &Event, parent: &str) -> Vec<TabAction> {
        let Some(AttachedTarget {
            session_id: session,
            target_info: info,
        }) = event.read()
        else {
            return Vec::new();
        };
        let tab = self.find_by_session(parent).map(|(_, tab)| tab);
        let tab = match (tab, info.r#type.as_str()) {
            (Some(tab), "iframe") => tab,
            (Some(tab), "worker") => {
                tab.add_worker(Arc::clone(&session), info.target_id);
                return vec![TabAction::PrepareWorker { session }];
            }
            _ => return vec![TabAction::Release { session }],
        };
        let frame = FrameSession {
            frame: info.target_id,
            parent: info.parent_frame_id,
            is_ready: false,
        };
        tab.add_frame(Arc::clone(&frame.frame));
        tab.frames.insert(Arc::clone(&session), frame);
        vec![TabAction::PrepareFrame { session }]
    }

    fn detach(&mut self, event: &Event) {
        let Some(DetachedTarget { session_id }) = event.read() else {
            return;
        };
        let Some((id, tab)) = self.find_by_session(&session_id) else {
            return;
        };
        if tab.session == session_id {
            self.remove(id);
        } else {
            tab.remove_session(&session_id);
        }
    }

    fn crash(&mut self, session: &str) {
        let Some((id, tab)) = self.find_by_session(session) else {
            return;
        };
        if &*tab.session == session {
            tab.is_crashed = true;
            tab.handles = Default::default();
            self.notices.add(format!("the page in tab {id} crashed"));
        } else {
            tab.end_requests_of(session);
            self.notices.add(format!("a frame in tab {id} crashed"));
        }
    }

    fn open_dialog(&mut self, event: &Event, session: &Arc<str>) -> Vec<TabAction> {
        let mut tabs = self.tabs.values_mut();
        let tab = tabs.find(|tab| tab.has_session(session));
        let (Some(tab), Some(dialog)) = (tab, event.read::<DialogOpening>()) else {
            return Vec::new();
        };
        vec![match tab.dialogs.open(&dialog, &mut self.notices) {
            DialogReaction::Answer { accept, text } => TabAction::AnswerDialog {
                session: Arc::clone(session),
                accept,
                text,
            },
            DialogReaction::EndPage => TabAction::EndPage {
                session: Arc::clone(&tab.session),
            },
        }]
    }

    fn note_exception(&mut self, event: &Event, session: &str) {
        let known = self.find_by_session(session).is_some();
        if let (true, Some(thrown)) = (known, event.read::<ThrownException>()) {
            let details = thrown.exception_details;
            let description = details
                .exception
                .and_then(|exception| exception.description);
            let text = description.unwrap_or(details.text);
            let first = quote_short(text.lines().next().unwrap_or_default());
            self.notices
                .add(format!("a script of the page failed: {first}"));
        }
    }
}

fn download_action(reaction: DownloadReaction, context: ContextKind) -> Vec<TabAction> {
    match reaction {
        DownloadReaction::Nothing => Vec::new(),
        DownloadReaction::Cancel(id) => vec![TabAction::CancelDownload { id, context }],
    }
}

fn apply_to_tab(tab: &mut Tab, event: &Event, session: &Arc<str>, now: Instant) {
    let is_top = tab.session == *session;
    match event.method.as_str() {
        "Page.frameNavigated" => {
            let Some(FrameNavigation { frame }) = event.read() else {
                return;
            };
            if is_top && frame.parent_id.is_none() {
                let url = frame.unreachable_url.unwrap_or(frame.url);
                tab.start_document(frame.id, frame.loader_id, url);
            } else {
                tab.start_child_document(&frame.id, &frame.loader_id);
            }
        }
        "Page.frameAttached" => {
            if let Some(FrameChange { frame_id, .. }) = event.read() {
                tab.add_frame(frame_id);
            }
        }
        "Page.frameDetached" => {
            // A frame that moves to another process is attached again there, so it must not be removed.
            if let Some(FrameChange { frame_id, reason }) = event.read()
                && reason.as_deref() != Some("swap")
            {
                tab.remove_frame(&frame_id);
            }
        }
        "Page.navigatedWithinDocument" if is_top => {
            if let Some(SameDocumentNavigation { frame_id, url }) = event.read()
                && frame_id == tab.main_frame
            {
                tab.url = url;
            }
        }
        "Page.loadEventFired" if is_top => tab.is_loaded = true,
        "Page.fileChooserOpened" => {
            tab.file_chooser = event.read().and_then(|chooser: FileChooserOpening| {
                Some((chooser.frame_id, chooser.backend_node_id?))
            });
        }
        "Network.requestWillBeSent" => {
            // Streams stay open as long as the page, so they do not count.
            let endless = ["EventSource", "WebSocket", "Ping", "Media"];
            if let Some(request) = event.read::<Request>()
                && !request
                    .r#type
                    .is_some_and(|kind| endless.contains(&kind.as_str()))
            {
                // Only requests for worker scripts have a frame but no document.
                let is_worker_script =
                    request.frame_id.is_some() && request.loader_id.as_deref() == Some("");
                let source = RequestSource {
                    deadline: is_worker_script.then(|| RequestSource::script_deadline(now)),
                    session: Arc::clone(session),
                    frame: request.frame_id,
                    loader: request.loader_id,
                };
                tab.start_request(request.request_id, source, now);
            }
        }
        "Network.responseReceived" if is_top => {
            if let Some(ResponseStart {
                r#type,
                frame_id,
                loader_id,
                response,
            }) = event.read()
                && r#type == "Document"
                && frame_id.as_ref() == Some(&tab.main_frame)
            {
                if loader_id == tab.loader {
                    tab.status = Some(response.status);
                } else {
                    tab.pending_status = Some((loader_id, response.status));
                }
            }
        }
        "Network.loadingFinished" | "Network.loadingFailed" => {
            if let Some(request) = event.read::<Request>() {
                tab.end_request(&request.request_id, now);
            }
        }
        _ => {}
    }
}
