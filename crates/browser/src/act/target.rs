//! Finds the point at which to act on an element. The element must exist, be enabled, not move, and not be covered.

use crate::handles::Element;
use crate::observe::{cut, one_line, quote};
use crate::{BrowserError, Frame, Page};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a function that runs on an element.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(5);
/// The functions that [`Page::call_on`] can call.
const FUNCTIONS: &str = concat!(
    include_str!("target.js"),
    include_str!("fields.js"),
    include_str!("text.js"),
    include_str!("../extract/html.js")
);

/// A point in the window of the main frame, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

#[derive(Deserialize)]
struct LocateReply {
    x: Option<f64>,
    y: Option<f64>,
    problem: Option<String>,
}

#[derive(Deserialize)]
struct FrameBox {
    x: f64,
    y: f64,
    scale: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct World {
    execution_context_id: i64,
}

#[derive(Deserialize)]
struct ResolveNodeReply {
    object: RemoteObject,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation {
    result: RemoteObject,
    exception_details: Option<ExceptionDetails>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteObject {
    object_id: Option<String>,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct ExceptionDetails {
    text: String,
}

#[derive(Deserialize)]
struct DescribeNodeReply {
    node: DescribedNode,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DescribedNode {
    backend_node_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameOwner {
    backend_node_id: i64,
}

impl Page {
    /// Calls one of lango's functions on an element and returns its value.
    pub(crate) async fn call_on<R: DeserializeOwned>(
        &self,
        element: &Element,
        function: &str,
        arguments: Value,
    ) -> Result<R, BrowserError> {
        let result = self.run_on(element, function, arguments, true).await?;
        R::deserialize(result.value).map_err(|error| BrowserError::Protocol {
            method: "Runtime.callFunctionOn",
            message: error.to_string(),
        })
    }

    /// Finds another element of the same frame by calling one of lango's functions on an element.
    pub(super) async fn find_from(
        &self,
        element: &Element,
        function: &str,
        arguments: Value,
    ) -> Result<Option<Element>, BrowserError> {
        let result = self.run_on(element, function, arguments, false).await?;
        let Some(object) = result.object_id else {
            return Ok(None);
        };
        let session = self.session_of(element);
        let params = json!({ "objectId": object });
        let described: DescribeNodeReply = session.call("DOM.describeNode", params).await?;
        Ok(Some(Element {
            node: described.node.backend_node_id,
            link: None,
            ..element.clone()
        }))
    }

    async fn run_on(
        &self,
        element: &Element,
        function: &str,
        arguments: Value,
        by_value: bool,
    ) -> Result<RemoteObject, BrowserError> {
        self.expect_alive()?;
        let session = self.session_of(element);
        let world = json!({ "frameId": element.frame, "worldName": crate::page::WORLD });
        // These errors mean that the frame or node no longer exists.
        let gone = |error| match error {
            BrowserError::PageChanged | BrowserError::Protocol { .. } => self.stale(element),
            error => error,
        };
        let world: World = session
            .call_within(SCRIPT_TIMEOUT, "Page.createIsolatedWorld", world)
            .await
            .map_err(gone)?;
        let params = json!({ "backendNodeId": element.node, "executionContextId": world.execution_context_id });
        let resolved: ResolveNodeReply = session
            .call("DOM.resolveNode", params)
            .await
            .map_err(gone)?;
        let arguments = arguments.as_array().cloned().unwrap_or_default();
        let arguments: Vec<Value> = arguments
            .into_iter()
            .map(|value| json!({ "value": value }))
            .collect();
        let declaration = format!(
            "function (...all) {{ {FUNCTIONS}; return lango.{function}.apply(this, all); }}"
        );
        let params = json!({
            "objectId": resolved.object.object_id,
            "functionDeclaration": declaration,
            "arguments": arguments,
            "returnByValue": by_value,
            "awaitPromise": true,
        });
        let evaluation: Evaluation = session
            .call_within(SCRIPT_TIMEOUT, "Runtime.callFunctionOn", params)
            .await?;
        match evaluation.exception_details {
            None => Ok(evaluation.result),
            Some(details) => Err(BrowserError::Protocol {
                method: "Runtime.callFunctionOn",
                message: details.text,
            }),
        }
    }

    /// Scrolls an element into view and returns the point in the window at which to act on it. `offset` is relative to
    /// the element's upper left corner.
    pub(super) async fn locate(
        &self,
        element: &Element,
        offset: Option<(f64, f64)>,
    ) -> Result<Point, BrowserError> {
        let session = self.session_of(element);
        let params = json!({ "backendNodeId": element.node });
        // Scrolling to an element without a box fails; the code below reports the reason.
        let _: Result<Value, _> = session.call("DOM.scrollIntoViewIfNeeded", params).await;
        let offset = offset.map(|(x, y)| json!([x, y]));
        let located: LocateReply = self.call_on(element, "locate", json!([offset])).await?;
        let (Some(x), Some(y)) = (located.x, located.y) else {
            let problem = located.problem.unwrap_or_default();
            return Err(self.explain(element, element, &problem).await);
        };
        self.to_window(element, Point { x, y }).await
    }

    /// Converts a point in an element's frame to a point in the main frame. Fails if one of the frames in between is
    /// covered at that point.
    pub(super) async fn to_window(
        &self,
        element: &Element,
        point: Point,
    ) -> Result<Point, BrowserError> {
        let frames = self.frames().await?;
        let find = |id: &Arc<str>| frames.iter().find(|frame| frame.id == *id);
        let mut point = point;
        let mut current = find(&element.frame);
        while let Some(frame) = current {
            let Some(parent) = frame.parent.as_ref().and_then(find) else {
                break;
            };
            let owner = owner_of(parent, frame).await?;
            let frame_box: FrameBox = self.call_on(&owner, "frameBox", json!([])).await?;
            point = Point {
                x: frame_box.x + point.x * frame_box.scale,
                y: frame_box.y + point.y * frame_box.scale,
            };
            let is_hit: bool = self
                .call_on(&owner, "frameHit", json!([point.x, point.y]))
                .await?;
            if !is_hit {
                return Err(self.explain(element, &owner, "covered").await);
            }
            current = Some(parent);
        }
        Ok(point)
    }

    /// Describes why an element cannot be acted on; `covered` is the element itself or its frame.
    async fn explain(&self, element: &Element, covered: &Element, problem: &str) -> BrowserError {
        let handle = self.handle_of(element);
        let reason = match problem {
            "gone" => return self.stale(element),
            "disabled" => "is disabled".to_owned(),
            "inert" => "is blocked by the page or by an open dialog".to_owned(),
            "hidden" => "is hidden; you may have to open something else first".to_owned(),
            "covered" => match self.describe_cover(covered).await {
                Some(cover) => format!("is covered by {cover}"),
                None => "is covered by something else".to_owned(),
            },
            _ => "is outside the window and cannot be scrolled into view".to_owned(),
        };
        BrowserError::NotActionable {
            element: format!("{handle} {}", element.label),
            reason,
        }
    }

    /// Describes what covers an element, with a handle to act on it.
    async fn describe_cover(&self, covered: &Element) -> Option<String> {
        let mut cover = self.find_from(covered, "cover", json!([])).await.ok()??;
        let (role, name): (String, String) =
            self.call_on(&cover, "coverLabel", json!([])).await.ok()?;
        let (role, name) = (one_line(&role), one_line(&name));
        let label = match name.as_str() {
            "" => cut(&role, 30),
            name => format!("{} {}", cut(&role, 30), quote(&cut(name, 60))),
        };
        cover.label = label.clone().into();
        let known = self.handles().of_node(&cover.key()).map(str::to_owned);
        let handle = match known {
            Some(handle) => handle,
            None => self.change_handles(|handles, last| handles.assign(cover, last))?,
        };
        Some(format!("{handle} {label}"))
    }

    pub(super) fn handle_of(&self, element: &Element) -> String {
        let handles = self.handles();
        handles.of_node(&element.key()).unwrap_or("?").to_owned()
    }

    fn stale(&self, element: &Element) -> BrowserError {
        BrowserError::StaleHandle {
            handle: self.handle_of(element),
        }
    }
}

async fn owner_of(parent: &Frame, frame: &Frame) -> Result<Element, BrowserError> {
    let params = json!({ "frameId": frame.id });
    let owner: FrameOwner = parent.session.call("DOM.getFrameOwner", params).await?;
    Ok(Element {
        frame: Arc::clone(&parent.id),
        session: parent.session.id().cloned().unwrap_or_default(),
        node: owner.backend_node_id,
        link: None,
        label: "frame".into(),
    })
}
