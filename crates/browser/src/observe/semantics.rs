//! Accessibility data of elements: role, name, value, states. lango requests it element by element, nearest to the
//! viewport first and up to a limit, so that a large page costs no more than a small one.

use super::scene::{Scene, Visibility};
use super::snapshot::{Node, NodeKind};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Minimum and maximum number of elements to request.
const ELEMENTS: std::ops::RangeInclusive<usize> = 300..=1500;
/// Minimum number of tokens that a shown element takes up.
const ELEMENT_TOKENS: usize = 4;
/// Number of concurrent calls.
const CONCURRENT_CALLS: usize = 100;

/// The accessibility data of elements, by their index in the scene.
pub(super) type Semantics = HashMap<usize, AxNode>;

/// The accessibility data of one element (an `AXNode` of the protocol).
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AxNode {
    /// Whether the accessibility tree ignores the element.
    pub(super) is_ignored: bool,
    /// Whether the element is behind an open dialog, or marked as inert.
    pub(super) is_inert: bool,
    pub(super) role: String,
    pub(super) name: String,
    pub(super) value: Option<String>,
    properties: Vec<(String, Value)>,
}

#[derive(Deserialize)]
struct Reply {
    nodes: Vec<RawNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNode {
    ignored: bool,
    #[serde(default)]
    ignored_reasons: Vec<RawProperty>,
    role: Option<RawValue>,
    name: Option<RawValue>,
    value: Option<RawValue>,
    #[serde(default)]
    properties: Vec<RawProperty>,
}

#[derive(Deserialize)]
struct RawProperty {
    name: String,
    value: RawValue,
}

#[derive(Deserialize)]
struct RawValue {
    #[serde(default)]
    value: Value,
}

impl AxNode {
    /// Returns whether a state, such as `checked`, is set.
    pub(super) fn is(&self, property: &str) -> bool {
        match self.property(property) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(value)) => value == "true",
            _ => false,
        }
    }

    pub(super) fn property(&self, name: &str) -> Option<&Value> {
        let mut properties = self.properties.iter();
        properties
            .find(|(own, _)| own == name)
            .map(|(_, value)| value)
    }
}

/// Requests the accessibility data of relevant elements, about as many as fit into the token budget.
pub(super) async fn read(scene: &Scene, tokens: usize) -> Semantics {
    let mut elements: Vec<usize> = (0..scene.nodes.len())
        .filter(|at| is_candidate(scene, *at))
        .collect();
    elements.sort_by_key(|at| (distance(scene, *at), *at));
    elements.truncate((tokens / ELEMENT_TOKENS).clamp(*ELEMENTS.start(), *ELEMENTS.end()));
    let mut semantics = Semantics::with_capacity(elements.len());
    for batch in elements.chunks(CONCURRENT_CALLS) {
        let calls = batch.iter().map(|at| read_one(scene, *at));
        let read = futures_util::future::join_all(calls).await;
        semantics.extend(
            batch
                .iter()
                .copied()
                .zip(read)
                .filter_map(|(at, ax_node)| Some((at, ax_node?))),
        );
    }
    semantics
}

/// Returns the distance of an element to the viewport in pixels; 0 if it is inside.
pub(super) fn distance(scene: &Scene, at: usize) -> u64 {
    let Some(rect) = scene.nodes[at].rect else {
        return u64::MAX;
    };
    let below = rect.y - scene.viewport.height;
    let above = -(rect.y + rect.height);
    let aside = (rect.x - scene.viewport.width).max(-(rect.x + rect.width));
    below.max(above).max(aside).max(0.0) as u64
}

async fn read_one(scene: &Scene, at: usize) -> Option<AxNode> {
    let session = &scene.document(at).session;
    let params = json!({ "backendNodeId": scene.node(at).id, "fetchRelatives": false });
    // An element that has disappeared is described by its captured data alone.
    let reply: Reply = session
        .call("Accessibility.getPartialAXTree", params)
        .await
        .ok()?;
    let raw = reply.nodes.into_iter().next()?;
    let reasons = ["inertElement", "inertSubtree", "activeModalDialog"];
    let is_inert = raw
        .ignored_reasons
        .iter()
        .any(|reason| reasons.contains(&reason.name.as_str()));
    let properties = raw.properties.into_iter();
    Some(AxNode {
        is_ignored: raw.ignored,
        is_inert,
        role: text_of(raw.role).unwrap_or_default(),
        name: text_of(raw.name).unwrap_or_default(),
        value: text_of(raw.value),
        properties: properties
            .map(|RawProperty { name, value }| (name, value.value))
            .collect(),
    })
}

fn text_of(value: Option<RawValue>) -> Option<String> {
    match value?.value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns whether an element may be more than a box with text, so that its accessibility data is worth requesting.
fn is_candidate(scene: &Scene, at: usize) -> bool {
    let node = scene.node(at);
    if node.kind != NodeKind::Element || scene.nodes[at].visibility == Visibility::Hidden {
        return false;
    }
    let is_known = matches!(
        &*node.tag,
        "a" | "button"
            | "input"
            | "select"
            | "textarea"
            | "summary"
            | "dialog"
            | "img"
            | "canvas"
            | "video"
            | "audio"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "nav"
            | "form"
            | "fieldset"
            | "progress"
            | "meter"
            | "iframe"
            | "area"
            | "details"
            | "option"
            | "output"
    );
    is_known || node.is_clickable || scene.nodes[at].starts_pointer || has_semantic_attribute(node)
}

fn has_semantic_attribute(node: &Node) -> bool {
    node.attributes.iter().any(|(name, value)| match &**name {
        "role" | "tabindex" | "title" | "draggable" => true,
        "contenteditable" => &**value != "false",
        "aria-hidden" => false,
        name => name.starts_with("aria-"),
    })
}
