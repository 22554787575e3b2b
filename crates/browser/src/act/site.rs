//! Determines the site that actions contact: the site of the element's frame.

use super::{ActionKind, ActionStep};
use crate::address::host_of;
use crate::cdp::CdpSession;
use crate::handles::Element;
use crate::{BrowserError, ContextKind, Frame, Page};
use futures_util::future::join_all;
use lango_core::SiteAccess;
use std::sync::Arc;

/// Number of actions that the summary for the user describes. Uploads are always described.
const NAMED_STEPS: usize = 3;

/// Whether the document has the focus, asked after its timers had a chance to run: scripts that take the focus as soon as they
/// lose it have it again by then. A browser runs timers that repeat at most every 4 ms.
const HAS_FOCUS: &str = "new Promise(done => setTimeout(() => done(document.hasFocus()), 5))";

/// Returns the site that the steps contact; `None` if all steps are passive or the page is a workspace file. Fails if
/// the steps act on elements of several sites, because the user can approve only one site.
pub(crate) async fn site_of(
    page: &Page,
    steps: &[ActionStep],
) -> Result<Option<SiteAccess>, BrowserError> {
    let contacting: Vec<&ActionStep> = steps.iter().filter(|step| !step.is_passive()).collect();
    if contacting.is_empty() || page.context() == Some(ContextKind::Workspace) {
        return Ok(None);
    }
    let frames = page.frames().await?;
    let mut host: Option<String> = None;
    let mut focused = None;
    for step in &contacting {
        let mut touched = frames_of(page, step)?;
        // A step without an element acts on the focused one, which the previous step sets.
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
    // All uploads come first, because a file that leaves the workspace matters most.
    let (uploads, others): (Vec<&ActionStep>, Vec<&ActionStep>) = contacting
        .iter()
        .partition(|step| step.action == ActionKind::Upload);
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

/// Returns the frames of the elements that a step names.
fn frames_of(page: &Page, step: &ActionStep) -> Result<Vec<Arc<str>>, BrowserError> {
    let handles = [&step.handle, &step.to].into_iter().flatten();
    handles
        .map(|handle| Ok(page.element(handle)?.frame))
        .collect()
}

pub(super) struct FocusedFrame {
    pub(super) session: CdpSession,
    pub(super) host: Option<String>,
}

/// Returns the innermost focused frame with its host.
pub(super) async fn focused_frame(page: &Page) -> Result<FocusedFrame, BrowserError> {
    let frames = page.frames().await?;
    let id = focused_frame_id(page, &frames).await;
    let host = host_of_frame(page, &frames, &id).await;
    let frame = frames.into_iter().find(|frame| frame.id == id);
    let session = frame.map_or_else(|| page.session().clone(), |frame| frame.session);
    Ok(FocusedFrame { session, host })
}

async fn focused_frame_id(page: &Page, frames: &[Frame]) -> Arc<str> {
    let probes = frames
        .iter()
        .map(|frame| page.evaluate(&frame.session, &frame.id, HAS_FOCUS));
    let answers = join_all(probes).await;
    // Frames come after their parents, and the parents of a focused frame have the focus too, so the last one wins.
    let focused = frames.iter().zip(answers).rev();
    let mut focused = focused.filter(|(_, answer)| answer.as_ref().is_ok_and(|it| it == true));
    let frame = focused.next();
    frame.map_or_else(|| page.main_frame(), |(frame, _)| Arc::clone(&frame.id))
}

/// Returns the origin of the element's frame, such as `https://example.com`.
pub(crate) async fn origin_of(page: &Page, step: &ActionStep) -> Option<String> {
    let element = element_of(page, step.handle.as_deref())?;
    let frames = page.frames().await.ok()?;
    let frame = frames.iter().find(|frame| frame.id == element.frame)?;
    let origin = page.evaluate(&frame.session, &frame.id, "self.origin");
    Some(origin.await.ok()?.as_str()?.to_owned())
}

/// Returns the host of a frame's origin. A frame without its own URL inherits the origin of its parent or opener.
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
