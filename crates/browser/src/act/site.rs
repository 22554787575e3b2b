//! The site that actions contact: that of the frame which the element is in.

use super::{Action, Step};
use crate::address::host_of;
use crate::cdp::CdpSession;
use crate::handles::Element;
use crate::{BrowserError, ContextKind, Frame, Page};
use lango_core::SiteAccess;
use std::sync::Arc;

/// So many actions are named in the summary for the user, besides uploads.
const NAMED_STEPS: usize = 3;

/// The site that steps contact; none if they only look, or the page is a file of the workspace. Steps on the elements of
/// several sites are refused: the user is asked about one.
pub(crate) async fn site_of(
    page: &Page,
    steps: &[Step],
) -> Result<Option<SiteAccess>, BrowserError> {
    let contacting: Vec<&Step> = steps.iter().filter(|step| !step.is_looking()).collect();
    if contacting.is_empty() || page.context() == Some(ContextKind::Workspace) {
        return Ok(None);
    }
    let frames = page.frames().await?;
    let mut host: Option<String> = None;
    let mut focused = None;
    for step in &contacting {
        let mut touched = frames_of(page, step)?;
        // A step without an element goes to what has the focus, which the step before it gives.
        if touched.is_empty() {
            touched.push(match focused.take() {
                Some(frame) => frame,
                None => focused_frame_id(page, &frames).await,
            });
        }
        focused = touched.first().cloned();
        for frame in touched {
            let own = host_of_frame(page, &frames, &frame)
                .await
                .ok_or(BrowserError::NoSite)?;
            match &host {
                Some(host) if *host != own => return Err(BrowserError::SeveralSites),
                _ => host = Some(own),
            }
        }
    }
    // Uploads first, and all of them: a file that leaves the workspace is what matters most.
    let (uploads, others): (Vec<&Step>, Vec<&Step>) = contacting
        .iter()
        .partition(|step| step.action == Action::Upload);
    let named = uploads.len().max(NAMED_STEPS);
    let mut summaries: Vec<String> = uploads
        .into_iter()
        .chain(others)
        .take(named)
        .map(|step| page.summary(step, element_of(page, step.handle.as_deref()).as_ref()))
        .collect();
    if contacting.len() > named {
        summaries.push(format!("{} more steps", contacting.len() - named));
    }
    let host = host.ok_or(BrowserError::NoSite)?;
    Ok(Some(SiteAccess {
        summary: summaries.join(", ").into(),
        host: host.into(),
        url: None,
        is_known: false,
    }))
}

fn element_of(page: &Page, handle: Option<&str>) -> Option<Element> {
    page.element(handle?).ok()
}

/// The frames whose elements a step names.
fn frames_of(page: &Page, step: &Step) -> Result<Vec<Arc<str>>, BrowserError> {
    let handles = [&step.handle, &step.to].into_iter().flatten();
    handles
        .map(|handle| Ok(page.element(handle)?.frame))
        .collect()
}

/// A frame that has the focus.
pub(super) struct FocusedFrame {
    pub(super) session: CdpSession,
    pub(super) host: Option<String>,
}

/// The innermost frame that has the focus, with its host.
pub(super) async fn focused_frame(page: &Page) -> Result<FocusedFrame, BrowserError> {
    let frames = page.frames().await?;
    let id = focused_frame_id(page, &frames).await;
    let host = host_of_frame(page, &frames, &id).await;
    let frame = frames.into_iter().find(|frame| frame.id == id);
    let session = frame.map_or_else(|| page.session().clone(), |frame| frame.session);
    Ok(FocusedFrame { session, host })
}

async fn focused_frame_id(page: &Page, frames: &[Frame]) -> Arc<str> {
    let mut focused = page.main_frame();
    // Frames come after those that hold them, and those around a focused one have the focus too.
    for frame in frames {
        let has_focus = page
            .evaluate(&frame.session, &frame.id, "document.hasFocus()")
            .await;
        if has_focus.is_ok_and(|value| value == true) {
            focused = Arc::clone(&frame.id);
        }
    }
    focused
}

/// The host of a frame: of its origin, which a frame without an address of its own has from its parent or opener.
async fn host_of_frame(page: &Page, frames: &[Frame], id: &Arc<str>) -> Option<String> {
    let mut current = frames.iter().find(|frame| frame.id == *id);
    while let Some(frame) = current {
        let origin = page
            .evaluate(&frame.session, &frame.id, "self.origin")
            .await
            .ok()?;
        let host = origin
            .as_str()
            .and_then(host_of)
            .or_else(|| host_of(&frame.url));
        if host.is_some() {
            return host;
        }
        let parent = frame.parent.as_ref();
        current = parent.and_then(|parent| frames.iter().find(|frame| frame.id == *parent));
    }
    None
}
