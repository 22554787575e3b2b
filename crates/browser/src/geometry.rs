//! Computes the positions of elements in the window, including elements in out-of-process frames, and draws handles
//! over them.

use crate::handles::Element;
use crate::{BrowserError, Frame, Page};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum number of drawn handles.
const MAX_DRAWN_HANDLES: usize = 200;

/// A rectangle in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

#[derive(Deserialize)]
struct BoxReply {
    model: BoxModel,
}

#[derive(Deserialize)]
struct BoxModel {
    content: Vec<f64>,
    border: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameOwner {
    backend_node_id: i64,
}

impl Area {
    pub(crate) fn moved(self, x: f64, y: f64) -> Self {
        Self {
            x: self.x + x,
            y: self.y + y,
            ..self
        }
    }

    /// Limits the width and height; the upper left corner stays where it is.
    pub(crate) fn limited(self, limit: f64) -> Self {
        Self {
            width: self.width.min(limit),
            height: self.height.min(limit),
            ..self
        }
    }

    /// Returns the bounding box of a quadrilateral.
    fn around(corners: &[f64]) -> Option<Self> {
        let [x1, y1, x2, y2, x3, y3, x4, y4] = corners.try_into().ok()?;
        let (left, right) = bounds([x1, x2, x3, x4]);
        let (top, bottom) = bounds([y1, y2, y3, y4]);
        Some(Self {
            x: left,
            y: top,
            width: (right - left).max(1.0),
            height: (bottom - top).max(1.0),
        })
    }
}

fn bounds(values: [f64; 4]) -> (f64, f64) {
    let least = values.into_iter().fold(f64::INFINITY, f64::min);
    let most = values.into_iter().fold(f64::NEG_INFINITY, f64::max);
    (least, most)
}

impl Page {
    /// Scrolls an element into the window.
    pub async fn scroll_to(&self, element: &Element) -> Result<(), BrowserError> {
        let params = json!({ "backendNodeId": element.node });
        let session = self.session_of(element);
        let _: Value = session.call("DOM.scrollIntoViewIfNeeded", params).await?;
        Ok(())
    }

    /// Returns the rectangle of an element in the window of the main frame.
    pub async fn area_of(&self, element: &Element) -> Result<Area, BrowserError> {
        let frames = self.frames().await?;
        self.area_in(&frames, element).await
    }

    async fn area_in(&self, frames: &[Frame], element: &Element) -> Result<Area, BrowserError> {
        let hidden = || BrowserError::Protocol {
            method: "DOM.getBoxModel",
            message: "the element is hidden".to_owned(),
        };
        let params = json!({ "backendNodeId": element.node });
        let session = self.session_of(element);
        let reply: BoxReply = session.call("DOM.getBoxModel", params).await?;
        let mut area = Area::around(&reply.model.border).ok_or_else(hidden)?;
        // Frames of one process share coordinates. At each process boundary the offset of the frame is added.
        let mut current = frames.iter().find(|frame| frame.id == element.frame);
        while let Some(frame) = current {
            let parent = frame.parent.as_ref();
            let parent = parent.and_then(|id| frames.iter().find(|frame| frame.id == *id));
            if let Some(parent) = parent
                && parent.session.id() != frame.session.id()
            {
                let params = json!({ "frameId": frame.id });
                let owner: FrameOwner = parent.session.call("DOM.getFrameOwner", params).await?;
                let params = json!({ "backendNodeId": owner.backend_node_id });
                let reply: BoxReply = parent.session.call("DOM.getBoxModel", params).await?;
                let place = Area::around(&reply.model.content).ok_or_else(hidden)?;
                area = area.moved(place.x, place.y);
            }
            current = parent;
        }
        Ok(area)
    }

    /// Draws the handles over their elements; returns `false` if no element with a handle is visible.
    pub(crate) async fn draw_handles(&self) -> Result<bool, BrowserError> {
        let frames = self.frames().await?;
        let mut boxes = Vec::new();
        for (handle, element) in self.handles().iter().take(MAX_DRAWN_HANDLES) {
            // A removed or invisible element has no rectangle.
            if let Ok(area) = self.area_in(&frames, element).await {
                boxes.push(json!([handle, area.x, area.y, area.width, area.height]));
            }
        }
        if boxes.is_empty() {
            return Ok(false);
        }
        let script = format!("({DRAW})({})", Value::from(boxes));
        let frame: Arc<str> = self.main_frame();
        self.evaluate(self.session(), &frame, &script).await?;
        Ok(true)
    }

    /// Removes what [`Self::draw_handles`] drew.
    pub(crate) async fn erase_handles(&self) -> Result<(), BrowserError> {
        let frame = self.main_frame();
        let script = "globalThis.langoOverlay?.remove(); delete globalThis.langoOverlay";
        self.evaluate(self.session(), &frame, script).await?;
        Ok(())
    }
}

/// The script that draws the handles. It runs in the isolated world; the page briefly sees one more element, but not
/// its content.
const DRAW: &str = r"boxes => {
    globalThis.langoOverlay?.remove();
    const overlay = document.createElement('div');
    overlay.style.cssText = 'all: initial; position: fixed; inset: 0; pointer-events: none; z-index: 2147483647';
    const root = overlay.attachShadow({ mode: 'closed' });
    for (const [name, x, y, width, height] of boxes) {
        const box = document.createElement('div');
        box.style.cssText = `position: fixed; left: ${x}px; top: ${y}px; width: ${width}px; height: ${height}px; outline: 2px solid #d00`;
        const label = document.createElement('span');
        label.textContent = name;
        label.style.cssText = 'position: absolute; left: 0; top: 0; background: #d00; color: #fff; font: bold 11px sans-serif; padding: 0 2px';
        box.append(label);
        root.append(box);
    }
    document.documentElement.append(overlay);
    globalThis.langoOverlay = overlay;
}";
