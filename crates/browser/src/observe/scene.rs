//! All documents of a page as one list of nodes in reading order, each node with its rectangle and visibility. The
//! document of a frame, even of an out-of-process one, is inserted below its frame element.

use super::clip::Clip;
use super::snapshot::{Document, Layout, Node, NodeKind, Rect, capture};
use crate::handles::NodeKey;
use crate::{BrowserError, Frame, Page};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of nodes of a page.
const MAX_NODES: usize = 200_000;
/// Maximum number of bytes of text and attributes of a page.
const MAX_BYTES: usize = 16 << 20;

/// The captured nodes of a page.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(super) documents: Vec<Document>,
    /// In reading order; a parent comes before its children.
    pub(super) nodes: Vec<SceneNode>,
    pub(super) viewport: Viewport,
}

/// A node of the list.
#[derive(Debug)]
pub(super) struct SceneNode {
    pub(super) document: usize,
    pub(super) index: usize,
    pub(super) parent: Option<usize>,
    /// The index after the node's last descendant.
    pub(super) end: usize,
    /// In viewport coordinates; `None` if the node has no box.
    pub(super) rect: Option<Rect>,
    pub(super) visibility: Visibility,
    /// Whether the node is hidden from assistive technology. It is then decoration, unless it can be clicked.
    pub(super) is_aria_hidden: bool,
    /// Whether the element sets the cursor to a hand and its parent does not.
    pub(super) starts_pointer: bool,
    /// Whether the element sets a move or resize cursor and its parent does not.
    pub(super) is_grip: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// In the viewport.
    InView,
    /// Visible after scrolling.
    Reachable,
    /// Transparent but with a box; often the real control under a styled one.
    Transparent,
    Hidden,
}

/// The visible part of the page, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Viewport {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) scroll_y: f64,
    pub(super) page_height: f64,
}

/// The kind of a node, with its tag or text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SceneKind<'a> {
    /// An element with its tag.
    Element(&'a str),
    Text(&'a str),
    Other,
}

/// The state that a node passes to its descendants.
#[derive(Clone, Copy)]
struct InheritedStyle {
    /// The offset from document coordinates to viewport coordinates.
    offset: (f64, f64),
    /// The clip of ordinary nodes.
    clip: Clip,
    /// The clip of absolutely positioned nodes.
    positioned_clip: Clip,
    is_transparent: bool,
    is_aria_hidden: bool,
    is_pointer: bool,
    is_grip: bool,
}

impl Scene {
    /// Captures a page with all of its frames. Fails with [`BrowserError::PageTooLarge`] beyond the size limits.
    pub(crate) async fn capture(page: &Page) -> Result<Self, BrowserError> {
        let frames = page.frames().await?;
        check_size(page, &frames).await?;
        let viewport = read_viewport(page).await?;
        let mut documents = capture(page.session()).await?;
        let mut owners = HashMap::new();
        for frame in &frames {
            let is_captured = documents.iter().any(|document| document.frame == frame.id);
            if is_captured {
                continue;
            }
            // A frame that disappeared or hangs is skipped.
            let Ok(mut inner) = capture(&frame.session).await else {
                continue;
            };
            let first = documents.len();
            for node in inner.iter_mut().flat_map(|document| &mut document.nodes) {
                node.content = node.content.map(|content| content + first);
            }
            if let Some(owner) = find_owner(&documents, &frames, frame).await {
                owners.insert(owner, first);
            }
            documents.append(&mut inner);
        }
        for ((document, node), content) in owners {
            documents[document].nodes[node].content = Some(content);
        }
        Ok(Self::arrange(documents, viewport))
    }

    pub(super) fn node(&self, at: usize) -> &Node {
        let place = &self.nodes[at];
        &self.documents[place.document].nodes[place.index]
    }

    pub(super) fn layout(&self, at: usize) -> Option<&Layout> {
        self.node(at).layout.as_ref()
    }

    pub(super) fn document(&self, at: usize) -> &Document {
        &self.documents[self.nodes[at].document]
    }

    /// Returns the number of nodes; indices start at 0.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the indices of a node and its descendants.
    pub(crate) fn below(&self, at: usize) -> std::ops::Range<usize> {
        at..self.nodes[at].end
    }

    pub(crate) fn kind(&self, at: usize) -> SceneKind<'_> {
        let node = self.node(at);
        match node.kind {
            NodeKind::Element => SceneKind::Element(&node.tag),
            NodeKind::Text => SceneKind::Text(node.text.as_deref().unwrap_or_default()),
            NodeKind::Other => SceneKind::Other,
        }
    }

    pub(crate) fn tag(&self, at: usize) -> &str {
        &self.node(at).tag
    }

    pub(crate) fn attribute(&self, at: usize, name: &str) -> Option<&str> {
        self.node(at).attribute(name)
    }

    /// Returns whether a user can see the node, possibly after scrolling.
    pub(crate) fn is_shown(&self, at: usize) -> bool {
        matches!(
            self.nodes[at].visibility,
            Visibility::InView | Visibility::Reachable
        )
    }

    /// Returns the absolute URL of a link.
    pub(crate) fn link(&self, at: usize) -> Option<Arc<str>> {
        super::describe::link_of(self, at)
    }

    /// Returns all text below a node, visible or not, up to `limit` bytes.
    pub(crate) fn source_text(&self, at: usize, limit: usize) -> String {
        let texts = self.below(at).filter_map(|below| match self.kind(below) {
            SceneKind::Text(text) => Some(text),
            SceneKind::Element(_) | SceneKind::Other => None,
        });
        let mut text = String::new();
        for more in texts {
            if text.len() + more.len() > limit {
                break;
            }
            text.push_str(more);
        }
        text
    }

    pub(crate) fn find(&self, key: &NodeKey) -> Option<usize> {
        (0..self.nodes.len()).find(|at| self.key(*at) == *key)
    }

    /// Returns the identity of a node within the tab.
    pub(super) fn key(&self, at: usize) -> NodeKey {
        let session = self.document(at).session.id();
        NodeKey {
            session: session.cloned().unwrap_or_default(),
            node: self.node(at).id,
        }
    }

    /// Returns the id of the frame that contains a node.
    pub(super) fn frame(&self, at: usize) -> Arc<str> {
        Arc::clone(&self.document(at).frame)
    }

    /// Returns the text below a node on one line, up to `limit` bytes.
    pub(crate) fn text_below(&self, at: usize, limit: usize) -> String {
        let mut text = String::new();
        for below in at..self.nodes[at].end {
            if text.trim_start().len() >= limit {
                break;
            }
            let node = self.node(below);
            match (node.kind, &*node.tag) {
                (NodeKind::Text, _) if self.nodes[below].visibility != Visibility::Hidden => {
                    text.push_str(node.text.as_deref().unwrap_or_default());
                }
                (NodeKind::Element, "img") => {
                    text.push(' ');
                    text.push_str(node.attribute("alt").unwrap_or_default());
                }
                // Text in different boxes is separated by a space.
                (NodeKind::Element, _) if !self.is_inline(below) => text.push(' '),
                _ => {}
            }
        }
        super::print::one_line(&text)
    }

    pub(super) fn is_inline(&self, at: usize) -> bool {
        let layout = self.layout(at);
        layout.is_none_or(|layout| matches!(&*layout.styles.display, "inline" | "contents"))
    }

    fn arrange(documents: Vec<Document>, viewport: Viewport) -> Self {
        let mut scene = Self {
            documents,
            nodes: Vec::new(),
            viewport,
        };
        // Positions of the traversal: the document, its next node, the list indices of its earlier nodes, and the frame
        // element that contains the document.
        let mut stack = vec![(0, 0, Vec::new(), None)];
        let mut is_placed = vec![false; scene.documents.len()];
        while let Some((document, index, mut places, owner)) = stack.pop() {
            let Some(nodes) = scene
                .documents
                .get(document)
                .map(|document| &document.nodes)
            else {
                continue;
            };
            let Some(node) = nodes.get(index) else {
                continue;
            };
            let place = scene.nodes.len();
            if place >= MAX_NODES {
                break;
            }
            let parent = node.parent.and_then(|parent| places.get(parent).copied());
            scene.nodes.push(SceneNode {
                document,
                index,
                parent: parent.or(owner),
                end: place + 1,
                rect: None,
                visibility: Visibility::Hidden,
                is_aria_hidden: false,
                starts_pointer: false,
                is_grip: false,
            });
            places.push(place);
            let content = node.content;
            stack.push((document, index + 1, places, owner));
            if let Some(content) = content
                && let Some(is_placed) = is_placed.get_mut(content)
                && !std::mem::replace(is_placed, true)
            {
                stack.push((content, 0, Vec::new(), Some(place)));
            }
        }
        for at in (0..scene.nodes.len()).rev() {
            if let Some(parent) = scene.nodes[at].parent {
                scene.nodes[parent].end = scene.nodes[parent].end.max(scene.nodes[at].end);
            }
        }
        scene.place();
        scene
    }

    /// Computes the rectangle and the visibility of every node.
    fn place(&mut self) {
        let mut inherited: Vec<InheritedStyle> = Vec::with_capacity(self.nodes.len());
        for at in 0..self.nodes.len() {
            let parent = self.nodes[at].parent;
            let mut above = match parent {
                Some(parent) => inherited[parent],
                None => InheritedStyle::at_root(),
            };
            let document = self.document(at);
            let is_root = self.nodes[at].index == 0;
            if is_root {
                above.offset.0 -= document.scroll.0;
                above.offset.1 -= document.scroll.1;
            }
            let node = self.node(at);
            let own = above.step(node, self.viewport);
            let place = &mut self.nodes[at];
            place.rect = own.rect;
            place.visibility = own.visibility;
            place.is_aria_hidden = own.for_children.is_aria_hidden;
            place.starts_pointer = own.for_children.is_pointer && !above.is_pointer;
            place.is_grip = own.for_children.is_grip && !above.is_grip;
            inherited.push(own.for_children);
        }
    }
}

/// The computed properties of a node, and the state for its descendants.
struct NodePlacement {
    rect: Option<Rect>,
    visibility: Visibility,
    for_children: InheritedStyle,
}

impl InheritedStyle {
    fn at_root() -> Self {
        let clip = Clip::nothing();
        Self {
            offset: (0.0, 0.0),
            clip,
            positioned_clip: clip,
            is_transparent: false,
            is_aria_hidden: false,
            is_pointer: false,
            is_grip: false,
        }
    }

    fn step(&self, node: &Node, viewport: Viewport) -> NodePlacement {
        let mut for_children = *self;
        for_children.is_aria_hidden |= node.attribute("aria-hidden") == Some("true");
        for_children.is_aria_hidden |= node.attribute("inert").is_some();
        let Some(layout) = &node.layout else {
            return NodePlacement {
                rect: None,
                visibility: Visibility::Hidden,
                for_children,
            };
        };
        let styles = &layout.styles;
        let rect = layout.rect.moved(self.offset);
        let is_element = node.kind == NodeKind::Element;
        let clip = match &*styles.position {
            _ if !is_element => self.clip,
            "fixed" => Self::at_root().clip,
            "absolute" => self.positioned_clip,
            _ => self.clip,
        };
        if is_element {
            for_children.is_transparent |= styles
                .opacity
                .parse()
                .is_ok_and(|opacity: f64| opacity < 0.02);
            for_children.is_pointer = &*styles.cursor == "pointer";
            for_children.is_grip = matches!(&*styles.cursor, "move" | "grab" | "all-scroll")
                || styles.cursor.ends_with("-resize");
            for_children.clip = clip.within(layout, rect, &node.tag);
            if !matches!(&*styles.position, "" | "static") {
                for_children.positioned_clip = for_children.clip;
            }
        }
        let is_visible = &*styles.visibility == "visible" || styles.visibility.is_empty();
        // A one-pixel box contains text for screen readers, unless it is a field, which another element then draws.
        let is_dot = rect.width <= 1.5 && rect.height <= 1.5 && is_element;
        let is_field = matches!(&*node.tag, "input" | "select" | "textarea");
        let visibility = if !is_visible || (is_dot && !is_field && !rect.is_empty()) {
            Visibility::Hidden
        } else {
            clip.visibility(rect, for_children.is_transparent, viewport)
        };
        if matches!(&*node.tag, "iframe" | "frame" | "object" | "embed") {
            for_children.offset = (rect.x + layout.border.0, rect.y + layout.border.1);
            let inside = clip.scrolled_in(rect);
            (for_children.clip, for_children.positioned_clip) = (inside, inside);
        }
        NodePlacement {
            rect: Some(rect),
            visibility,
            for_children,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameOwner {
    backend_node_id: i64,
}

/// Returns the document and node indices of the element that shows an out-of-process frame.
async fn find_owner(
    documents: &[Document],
    frames: &[Frame],
    frame: &Frame,
) -> Option<(usize, usize)> {
    let parent = frames
        .iter()
        .find(|parent| Some(&parent.id) == frame.parent.as_ref())?;
    let params = json!({ "frameId": frame.id });
    let owner: FrameOwner = parent
        .session
        .call("DOM.getFrameOwner", params)
        .await
        .ok()?;
    let is_parent = |document: &Document| document.frame == parent.id;
    let document = documents.iter().position(is_parent)?;
    let mut nodes = documents[document].nodes.iter();
    let node = nodes.position(|node| node.id == owner.backend_node_id)?;
    Some((document, node))
}

async fn read_viewport(page: &Page) -> Result<Viewport, BrowserError> {
    let script = "({ width: innerWidth, height: innerHeight, scroll_y: scrollY, \
                  page_height: document.documentElement?.scrollHeight ?? 0 })";
    let value = page
        .evaluate(page.session(), &page.main_frame(), script)
        .await?;
    Viewport::deserialize(value).map_err(|error| BrowserError::Protocol {
        method: "Runtime.evaluate",
        message: error.to_string(),
    })
}

/// A script that counts nodes and bytes inside the page, before anything is sent, and stops at the limits.
const MEASURE: &str = "(([nodes, bytes]) => {
    const walker = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    while (nodes >= 0 && bytes >= 0 && walker.nextNode()) {
        nodes--;
        const node = walker.currentNode;
        if (node.nodeType === 3) bytes -= node.length;
        else for (const attribute of node.attributes) bytes -= attribute.value.length;
    }
    return [nodes, bytes];
})";

async fn check_size(page: &Page, frames: &[Frame]) -> Result<(), BrowserError> {
    let mut left = (MAX_NODES as i64, MAX_BYTES as i64);
    for frame in frames {
        let script = format!("{MEASURE}([{}, {}])", left.0, left.1);
        // A frame that cannot be measured is ignored here; capturing it skips it or fails.
        let Ok(value) = page.evaluate(&frame.session, &frame.id, &script).await else {
            continue;
        };
        left = <(i64, i64)>::deserialize(value).unwrap_or(left);
        if left.0 < 0 || left.1 < 0 {
            return Err(BrowserError::PageTooLarge);
        }
    }
    Ok(())
}
