//! Captures the documents of a process: every node with its rectangle, the styles that determine its visibility, and
//! whether it listens to clicks. Includes closed shadow trees and frames of the same process.

use crate::BrowserError;
use crate::cdp::CdpSession;
use lango_net::Url;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a capture.
const CAPTURE_TIMEOUT: Duration = Duration::from_secs(15);
/// The styles to capture, in the order of the fields of [`Styles`].
const STYLES: [&str; 11] = [
    "display",
    "visibility",
    "opacity",
    "cursor",
    "overflow-x",
    "overflow-y",
    "position",
    "fill",
    "background-color",
    "stroke",
    "pointer-events",
];

/// A rectangle in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A captured document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) frame: Arc<str>,
    pub(super) session: CdpSession,
    /// The base URL of relative links.
    pub(super) base: Option<Url>,
    pub(super) scroll: (f64, f64),
    /// In document order; a parent comes before its children.
    pub(super) nodes: Vec<Node>,
}

/// A captured node.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) parent: Option<usize>,
    pub(super) kind: NodeKind,
    /// The tag name of an element, in lower case.
    pub(super) tag: Arc<str>,
    /// The rendered text of a text node.
    pub(super) text: Option<Arc<str>>,
    pub(super) id: i64,
    pub(super) attributes: Vec<(Arc<str>, Arc<str>)>,
    pub(super) layout: Option<Layout>,
    pub(super) is_clickable: bool,
    pub(super) is_selected: bool,
    /// The document that this frame element shows, if it is in the same process.
    pub(super) content: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum NodeKind {
    Element,
    Text,
    /// Comments, doctypes, generated content, the document itself.
    #[default]
    Other,
}

/// The rectangle and styles of a node.
#[derive(Debug)]
pub(super) struct Layout {
    /// In coordinates of the node's document.
    pub(super) rect: Rect,
    pub(super) styles: Styles,
    /// The width of the left and the top border.
    pub(super) border: (f64, f64),
    /// How much taller the content is than the box, in pixels.
    pub(super) overflow_height: f64,
}

#[derive(Debug, Default)]
pub(super) struct Styles {
    pub(super) display: Arc<str>,
    pub(super) visibility: Arc<str>,
    pub(super) opacity: Arc<str>,
    pub(super) cursor: Arc<str>,
    pub(super) overflow_x: Arc<str>,
    pub(super) overflow_y: Arc<str>,
    pub(super) position: Arc<str>,
    pub(super) fill: Arc<str>,
    pub(super) background: Arc<str>,
    pub(super) stroke: Arc<str>,
    pub(super) pointer_events: Arc<str>,
}

#[derive(Deserialize)]
struct Capture {
    documents: Vec<RawDocument>,
    strings: Vec<Arc<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDocument {
    #[serde(rename = "baseURL")]
    base_url: i64,
    frame_id: i64,
    nodes: RawNodes,
    layout: RawLayout,
    #[serde(default)]
    scroll_offset_x: f64,
    #[serde(default)]
    scroll_offset_y: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNodes {
    parent_index: Vec<i64>,
    node_type: Vec<u8>,
    node_name: Vec<i64>,
    node_value: Vec<i64>,
    backend_node_id: Vec<i64>,
    attributes: Vec<Vec<i64>>,
    #[serde(default)]
    option_selected: Marks,
    #[serde(default)]
    content_document_index: Values,
    #[serde(default)]
    pseudo_type: Values,
    #[serde(default)]
    is_clickable: Marks,
}

#[derive(Deserialize, Default)]
struct Marks {
    index: Vec<usize>,
}

#[derive(Deserialize, Default)]
struct Values {
    index: Vec<usize>,
    value: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLayout {
    node_index: Vec<usize>,
    styles: Vec<Vec<i64>>,
    bounds: Vec<Vec<f64>>,
    text: Vec<i64>,
    #[serde(default)]
    scroll_rects: Vec<Vec<f64>>,
    #[serde(default)]
    client_rects: Vec<Vec<f64>>,
}

/// Captures the documents of a session's process, the main document first. [`Node::content`] is an index into the
/// returned list.
pub(super) async fn capture(session: &CdpSession) -> Result<Vec<Document>, BrowserError> {
    let params = json!({ "computedStyles": STYLES, "includeDOMRects": true });
    let capture: Capture = session
        .call_within(CAPTURE_TIMEOUT, "DOMSnapshot.captureSnapshot", params)
        .await?;
    let Capture { documents, strings } = capture;
    let read = |document| read_document(session, &strings, document);
    Ok(documents.into_iter().map(read).collect())
}

fn read_document(session: &CdpSession, strings: &[Arc<str>], raw: RawDocument) -> Document {
    let string = |index: i64| -> Option<&Arc<str>> { strings.get(usize::try_from(index).ok()?) };
    let mut nodes: Vec<Node> = Vec::with_capacity(raw.nodes.parent_index.len());
    for (index, parent) in raw.nodes.parent_index.iter().enumerate() {
        let at = |list: &[i64]| list.get(index).copied().unwrap_or(-1);
        let kind = match raw.nodes.node_type.get(index) {
            Some(1) => NodeKind::Element,
            Some(3) => NodeKind::Text,
            _ => NodeKind::Other,
        };
        let name = string(at(&raw.nodes.node_name)).map_or("", |name| name);
        let pairs = raw
            .nodes
            .attributes
            .get(index)
            .map_or(&[][..], |pairs| pairs);
        let attribute = |pair: &[i64]| {
            // An attribute without a value has no string.
            let value = pair.get(1).and_then(|value| string(*value));
            Some((
                string(*pair.first()?)?.clone(),
                value.cloned().unwrap_or_default(),
            ))
        };
        nodes.push(Node {
            // A parent always comes first; anything else would be a cycle.
            parent: usize::try_from(*parent)
                .ok()
                .filter(|parent| *parent < index),
            kind,
            tag: name.to_ascii_lowercase().into(),
            text: (kind == NodeKind::Text)
                .then(|| string(at(&raw.nodes.node_value)).cloned())
                .flatten(),
            id: at(&raw.nodes.backend_node_id),
            attributes: pairs.chunks_exact(2).filter_map(attribute).collect(),
            ..Node::default()
        });
    }
    mark(&mut nodes, &raw.nodes.is_clickable.index, |node| {
        node.is_clickable = true
    });
    mark(&mut nodes, &raw.nodes.option_selected.index, |node| {
        node.is_selected = true
    });
    mark(&mut nodes, &raw.nodes.pseudo_type.index, |node| {
        node.kind = NodeKind::Other
    });
    let contents = &raw.nodes.content_document_index;
    for (index, content) in contents.index.iter().zip(&contents.value) {
        if let Some(node) = nodes.get_mut(*index) {
            node.content = Some(*content);
        }
    }
    add_layout(&mut nodes, &raw.layout, &string);
    Document {
        frame: string(raw.frame_id).cloned().unwrap_or_default(),
        session: session.clone(),
        base: string(raw.base_url).and_then(|base| Url::parse(base).ok()),
        scroll: (raw.scroll_offset_x, raw.scroll_offset_y),
        nodes,
    }
}

fn mark(nodes: &mut [Node], indices: &[usize], set: impl Fn(&mut Node)) {
    for index in indices {
        if let Some(node) = nodes.get_mut(*index) {
            set(node);
        }
    }
}

fn add_layout<'a>(
    nodes: &mut [Node],
    raw: &RawLayout,
    string: &impl Fn(i64) -> Option<&'a Arc<str>>,
) {
    for (row, index) in raw.node_index.iter().enumerate() {
        let Some(node) = nodes.get_mut(*index) else {
            continue;
        };
        let styles = raw.styles.get(row).map_or(&[][..], |styles| styles);
        let style = |at: usize| {
            let value = styles.get(at).and_then(|index| string(*index));
            value.cloned().unwrap_or_default()
        };
        let client = rect(raw.client_rects.get(row));
        let scrolled = rect(raw.scroll_rects.get(row));
        // A node may have several boxes, for example because of a line break or a list marker. Only the first one
        // counts.
        if node.layout.is_none() {
            node.layout = Some(Layout {
                rect: rect(raw.bounds.get(row)),
                styles: Styles {
                    display: style(0),
                    visibility: style(1),
                    opacity: style(2),
                    cursor: style(3),
                    overflow_x: style(4),
                    overflow_y: style(5),
                    position: style(6),
                    fill: style(7),
                    background: style(8),
                    stroke: style(9),
                    pointer_events: style(10),
                },
                border: (client.x, client.y),
                overflow_height: scrolled.height - client.height,
            });
        }
        if node.kind == NodeKind::Text
            && let Some(text) = raw.text.get(row).and_then(|index| string(*index))
        {
            node.text = Some(Arc::clone(text));
        }
    }
}

fn rect(numbers: Option<&Vec<f64>>) -> Rect {
    match numbers.map(Vec::as_slice) {
        Some(&[x, y, width, height]) => Rect {
            x,
            y,
            width,
            height,
        },
        _ => Rect::default(),
    }
}

impl Node {
    /// Returns the value of an attribute, trimmed.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|(own, _)| &**own == name);
        found.map(|(_, value)| value.trim())
    }
}

impl Rect {
    pub(crate) fn intersect(self, other: Self) -> Self {
        let x = self.x.max(other.x);
        let y = self.y.max(other.y);
        Self {
            x,
            y,
            width: (self.x + self.width).min(other.x + other.width) - x,
            height: (self.y + self.height).min(other.y + other.height) - y,
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.width <= 0.0 || self.height <= 0.0
    }

    pub(crate) fn moved(self, by: (f64, f64)) -> Self {
        Self {
            x: self.x + by.0,
            y: self.y + by.1,
            ..self
        }
    }
}
