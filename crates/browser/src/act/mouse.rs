//! Mouse moves, clicks and drags, with the same events as a real mouse.

use super::target::Point;
use crate::cdp::EventItem;
use crate::handles::Element;
use crate::{BrowserError, Page};
use serde_json::{Value, json};
use std::time::Duration;

/// Number of mouse moves from one point to another during a drag.
const DRAG_MOVES: u32 = 12;
/// Timeout for a page to start a native drag after the first moves.
const DRAG_START_TIMEOUT: Duration = Duration::from_millis(150);

/// Number and interval of attempts to point at an element that moves when the pointer reaches it.
const HOVER_ATTEMPTS: u32 = 5;
const HOVER_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The button, count and modifiers of a click.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Click {
    pub(super) button: MouseButton,
    pub(super) count: u32,
    /// A bit mask of modifier keys.
    pub(super) modifiers: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MouseButton {
    Left,
    Right,
    Middle,
}

impl MouseButton {
    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Middle => "middle",
        }
    }

    fn bit(self) -> u32 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
            Self::Middle => 4,
        }
    }
}

impl Page {
    /// Moves the pointer onto an element. Tries again if the element then moves, changes its size or becomes covered.
    pub(super) async fn point_at(
        &self,
        element: &Element,
        offset: Option<(f64, f64)>,
    ) -> Result<Point, BrowserError> {
        let mut point = self.locate(element, offset).await?;
        for left in (0..HOVER_ATTEMPTS).rev() {
            self.move_mouse(point).await?;
            match self.locate(element, offset).await {
                Ok(after) if after == point => break,
                Ok(after) => point = after,
                Err(error) if left == 0 => return Err(error),
                Err(_) => tokio::time::sleep(HOVER_RETRY_INTERVAL).await,
            }
        }
        Ok(point)
    }

    pub(super) async fn move_mouse(&self, to: Point) -> Result<(), BrowserError> {
        self.mouse("mouseMoved", to, json!({})).await
    }

    pub(super) async fn click_at(&self, at: Point, click: Click) -> Result<(), BrowserError> {
        let modifiers = click.modifiers;
        self.mouse("mouseMoved", at, json!({ "modifiers": modifiers }))
            .await?;
        for count in 1..=click.count {
            let mut details = json!({
                "button": click.button.name(),
                "buttons": click.button.bit(),
                "clickCount": count,
                "modifiers": modifiers,
            });
            self.mouse("mousePressed", at, details.clone()).await?;
            details["buttons"] = json!(0);
            self.mouse("mouseReleased", at, details).await?;
        }
        Ok(())
    }

    /// Presses the button at one point, moves to another and releases it. If the page starts a native drag, sends
    /// native drag-and-drop events instead of mouse moves.
    pub(super) async fn drag(&self, from: Point, to: Point) -> Result<(), BrowserError> {
        let _: Value = self
            .call("Input.setInterceptDrags", json!({ "enabled": true }))
            .await?;
        let dragged = self.drag_intercepted(from, to).await;
        let _: Value = self
            .call("Input.setInterceptDrags", json!({ "enabled": false }))
            .await?;
        dragged
    }

    async fn drag_intercepted(&self, from: Point, to: Point) -> Result<(), BrowserError> {
        let mut events = self.session().events();
        let dragging = json!({ "button": "left", "buttons": 1 });
        let pressed = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
        self.mouse("mouseMoved", from, json!({})).await?;
        self.mouse("mousePressed", from, pressed).await?;
        let step = |step: u32| {
            let part = f64::from(step) / f64::from(DRAG_MOVES);
            Point {
                x: from.x + (to.x - from.x) * part,
                y: from.y + (to.y - from.y) * part,
            }
        };
        let mut data = None;
        for index in 1..=DRAG_MOVES {
            // During a native drag the browser sends no mouse moves.
            self.mouse("mouseMoved", step(index), dragging.clone())
                .await?;
            if index == 2 {
                data = wait_for_data(&mut events).await;
            }
            if data.is_some() {
                break;
            }
        }
        if let Some(data) = data {
            for kind in ["dragEnter", "dragOver", "drop"] {
                let params = json!({ "type": kind, "x": to.x, "y": to.y, "data": data });
                let _: Value = self.call("Input.dispatchDragEvent", params).await?;
            }
        }
        let released = json!({ "button": "left", "buttons": 0, "clickCount": 1 });
        self.mouse("mouseReleased", to, released).await
    }

    async fn mouse(&self, kind: &str, at: Point, details: Value) -> Result<(), BrowserError> {
        let mut params = json!({ "type": kind, "x": at.x, "y": at.y });
        if let (Some(params), Value::Object(details)) = (params.as_object_mut(), details) {
            params.extend(details);
        }
        let _: Value = self.call("Input.dispatchMouseEvent", params).await?;
        Ok(())
    }
}

/// Returns the data of a native drag; `None` if the page starts none in time.
async fn wait_for_data(events: &mut crate::cdp::Events) -> Option<Value> {
    let waiting = async {
        loop {
            match events.next().await? {
                EventItem::Event(event) if event.method == "Input.dragIntercepted" => {
                    return event.params.get("data").cloned();
                }
                EventItem::Event(_) | EventItem::Lost(_) => {}
            }
        }
    };
    tokio::time::timeout(DRAG_START_TIMEOUT, waiting)
        .await
        .ok()
        .flatten()
}
