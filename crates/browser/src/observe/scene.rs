//! All documents of a page as one list of nodes in reading order, each with its rectangle and visibility. The documents
//! of frames, including out-of-process ones, follow below their frame elements.

use super::clip::Clip;
use super::snapshot::{Document, Layout, Node, NodeKind, Rect, capture};
use crate::handles::NodeKey;
use crate::{BrowserError, Frame, Page};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of nodes of a page.
const MOST_NODES: usize = 200_000;
/// Maximum number of bytes of text and attributes of a page.
const MOST_BYTES: usize = 16 << 20;

/// The captured nodes of a page.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(super) documents: Vec<Document>,
    /// In reading order; a parent comes before its children.
    pub(super) nodes: Vec<SceneNode>,
    pub(super) viewport: Viewport,
}

/// A node with its position in the list.
#[derive(Debug)]
pub(super) struct SceneNode {
    pub(super) document: usize,
    pub(super) index: usize,
    pub(super) parent: Option<usize>,
    /// The index after the last node below it.
    pub(super) end: usize,
    /// In coordinates of the viewport; none if it has no box.
    pub(super) rect: Option<Rect>,
    pub(super) sight: Sight,
    /// Hidden from assistive technology: decoration, unless it can be clicked.
    pub(super) is_aria_hidden: bool,
    /// Whether the element sets the cursor to a hand and its parent does not.
    pub(super) starts_pointer: bool,
    /// Whether the element sets a move or resize cursor and its parent does not.
    pub(super) is_grip: bool,
}

/// The visibility of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// In the viewport.
    InView,
    /// After scrolling.
    Reachable,
    /// Transparent with a box: the real control under a styled one.
    Transparent,
    Hidden,
}

/// The visible part of the page.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Viewport {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) scroll_y: f64,
    pub(super) page_height: f64,
}

/// A borrowed node with its scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SceneKind<'a> {
    /// An element with its tag.
    Element(&'a str),
    Text(&'a str),
    Other,
}

/// The state that a node passes to its descendants.
#[derive(Clone, Copy)]
struct Inherited {
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
    /// Captures a page.
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

    /// Returns the captured node.
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

    /// Returns whether a person can see it, possibly after scrolling.
    pub(crate) fn is_shown(&self, at: usize) -> bool {
        matches!(self.nodes[at].sight, Sight::InView | Sight::Reachable)
    }

    /// Returns the absolute URL of a link.
    pub(crate) fn link(&self, at: usize) -> Option<Arc<str>> {
        super::describe::link_of(self, at)
    }

    /// Returns all text below a node, visible or not.
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

    /// Returns the index of a node.
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

    /// Returns the frame that a node is in.
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
                (NodeKind::Text, _) if self.nodes[below].sight != Sight::Hidden => {
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
        // A position of the traversal: the document, its next node, the start of its nodes in the list, the frame element.
        let mut under_way = vec![(0, 0, Vec::new(), None)];
        let mut is_placed = vec![false; scene.documents.len()];
        while let Some((document, index, mut places, owner)) = under_way.pop() {
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
            if place >= MOST_NODES {
                break;
            }
            let parent = node.parent.and_then(|parent| places.get(parent).copied());
            scene.nodes.push(SceneNode {
                document,
                index,
                parent: parent.or(owner),
                end: place + 1,
                rect: None,
                sight: Sight::Hidden,
                is_aria_hidden: false,
                starts_pointer: false,
                is_grip: false,
            });
            places.push(place);
            let content = node.content;
            under_way.push((document, index + 1, places, owner));
            if let Some(content) = content
                && let Some(is_placed) = is_placed.get_mut(content)
                && !std::mem::replace(is_placed, true)
            {
                under_way.push((content, 0, Vec::new(), Some(place)));
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

    fn place(&mut self) {
        let mut inherited: Vec<Inherited> = Vec::with_capacity(self.nodes.len());
        for at in 0..self.nodes.len() {
            let parent = self.nodes[at].parent;
            let mut above = match parent {
                Some(parent) => inherited[parent],
                None => Inherited::at_top(),
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
            place.sight = own.sight;
            place.is_aria_hidden = own.passed_on.is_aria_hidden;
            place.starts_pointer = own.passed_on.is_pointer && !above.is_pointer;
            place.is_grip = own.passed_on.is_grip && !above.is_grip;
            inherited.push(own.passed_on);
        }
    }
}

/// The properties computed for a node on the way down.
struct Step {
    rect: Option<Rect>,
    sight: Sight,
    passed_on: Inherited,
}

impl Inherited {
    fn at_top() -> Self {
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

    fn step(&self, node: &Node, viewport: Viewport) -> Step {
        let mut passed_on = *self;
        passed_on.is_aria_hidden |= node.attribute("aria-hidden") == Some("true");
        passed_on.is_aria_hidden |= node.attribute("inert").is_some();
        let Some(layout) = &node.layout else {
            return Step {
                rect: None,
                sight: Sight::Hidden,
                passed_on,
            };
        };
        let styles = &layout.styles;
        let rect = layout.rect.moved(self.offset);
        let is_element = node.kind == NodeKind::Element;
        let clip = match &*styles.position {
            _ if !is_element => self.clip,
            "fixed" => Self::at_top().clip,
            "absolute" => self.positioned_clip,
            _ => self.clip,
        };
        if is_element {
            passed_on.is_transparent |= styles
                .opacity
                .parse()
                .is_ok_and(|opacity: f64| opacity < 0.02);
            passed_on.is_pointer = &*styles.cursor == "pointer";
            passed_on.is_grip = matches!(&*styles.cursor, "move" | "grab" | "all-scroll")
                || styles.cursor.ends_with("-resize");
            passed_on.clip = clip.within(layout, rect, &node.tag);
            if !matches!(&*styles.position, "" | "static") {
                passed_on.positioned_clip = passed_on.clip;
            }
        }
        let is_visible = &*styles.visibility == "visible" || styles.visibility.is_empty();
        // A box of a pixel holds text for screen readers; a field of a pixel is drawn by something else.
        let is_dot = rect.width <= 1.5 && rect.height <= 1.5 && is_element;
        let is_field = matches!(&*node.tag, "input" | "select" | "textarea");
        let sight = if !is_visible || (is_dot && !is_field && !rect.is_empty()) {
            Sight::Hidden
        } else {
            clip.sight(rect, passed_on.is_transparent, viewport)
        };
        if matches!(&*node.tag, "iframe" | "frame" | "object" | "embed") {
            passed_on.offset = (rect.x + layout.border.0, rect.y + layout.border.1);
            let inside = clip.scrolled_in(rect);
            (passed_on.clip, passed_on.positioned_clip) = (inside, inside);
        }
        Step {
            rect: Some(rect),
            sight,
            passed_on,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    backend_node_id: i64,
}

/// Returns the document and the node of the element that shows a frame of another process.
async fn find_owner(
    documents: &[Document],
    frames: &[Frame],
    frame: &Frame,
) -> Option<(usize, usize)> {
    let parent = frames
        .iter()
        .find(|parent| Some(&parent.id) == frame.parent.as_ref())?;
    let params = json!({ "frameId": frame.id });
    let owner: Owner = parent
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

/// Counts inside the page before anything is sent, and stops at the limit.
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
    let mut left = (MOST_NODES as i64, MOST_BYTES as i64);
    for frame in frames {
        let script = format!("{MEASURE}([{}, {}])", left.0, left.1);
        // A frame that cannot be measured is not captured either, or fails there.
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
