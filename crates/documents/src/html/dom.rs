//! The tree of a page. All nodes are in one vector; parents and children are indices.
//!
//! html5ever parses any markup like a browser. Its cost grows with the square of the depth, so lango feeds it the page
//! in chunks, stops after the first chunk that makes the tree too deep or too large, and uses the tree so far.

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, LocalName, Namespace, ParseOpts, QualName, parse_document};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub(super) const MAX_DEPTH: usize = 400;

const MAX_NODES: usize = 400_000;

/// Number of bytes to parse between two checks of the limits.
const CHUNK_BYTES: usize = 16 * 1024;

/// The index of a node in its tree.
pub(super) type NodeId = usize;

/// A parsed page.
pub(super) struct Dom {
    nodes: Vec<Node>,
    /// Whether parsing stopped at a limit.
    pub was_cut: bool,
}

#[derive(Default)]
struct Node {
    parent: Option<NodeId>,
    children: Vec<NodeId>,
    depth: usize,
    content: Content,
}

#[derive(Default)]
enum Content {
    Element {
        name: Rc<QualName>,
        attributes: Vec<Attribute>,
    },
    Text(String),
    #[default]
    Other,
}

impl Dom {
    pub(super) const ROOT: NodeId = 0;

    /// Parses a page. Scripts do not run, so the content of `noscript` is parsed as markup.
    pub(super) fn parse(html: &str) -> Self {
        let options = ParseOpts {
            tree_builder: TreeBuilderOpts {
                scripting_enabled: false,
                ..TreeBuilderOpts::default()
            },
            ..ParseOpts::default()
        };
        let sink = Sink {
            nodes: RefCell::new(vec![Node::default()]),
            is_full: Cell::new(false),
            no_name: Rc::new(QualName::new(
                None,
                Namespace::default(),
                LocalName::default(),
            )),
        };
        let mut parser = parse_document(sink, options);
        let mut rest = html;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
            parser.process(StrTendril::from(chunk));
            rest = after;
            if parser.tokenizer.sink.sink.is_full.get() {
                break;
            }
        }
        let was_cut = !rest.is_empty();
        let nodes = parser.finish();
        Self { nodes, was_cut }
    }

    pub(super) fn children(&self, node: NodeId) -> &[NodeId] {
        &self.nodes[node].children
    }

    pub(super) fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].parent
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the tag name of an element in lower case; empty for other nodes.
    pub(super) fn name(&self, node: NodeId) -> &str {
        match &self.nodes[node].content {
            Content::Element { name, .. } => &name.local,
            _ => "",
        }
    }

    pub(super) fn text(&self, node: NodeId) -> Option<&str> {
        match &self.nodes[node].content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn attribute(&self, node: NodeId, name: &str) -> Option<&str> {
        let Content::Element { attributes, .. } = &self.nodes[node].content else {
            return None;
        };
        let attribute = attributes
            .iter()
            .find(|attribute| &*attribute.name.local == name)?;
        Some(&attribute.value)
    }

    /// Returns `from` and its descendants in document order. Leaves out each node for which `is_skipped` returns true,
    /// together with its descendants.
    pub(super) fn walk(
        &self,
        from: NodeId,
        mut is_skipped: impl FnMut(NodeId) -> bool,
    ) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut stack = vec![from];
        while let Some(node) = stack.pop() {
            if is_skipped(node) {
                continue;
            }
            found.push(node);
            stack.extend(self.children(node).iter().rev());
        }
        found
    }

    /// Returns the first element with this tag name.
    pub(super) fn first(&self, name: &str) -> Option<NodeId> {
        let all = self.walk(Self::ROOT, |_| false);
        all.into_iter().find(|node| self.name(*node) == name)
    }

    /// Returns whether a node or one of its descendants has this tag name.
    pub(super) fn contains(&self, node: NodeId, name: &str) -> bool {
        let all = self.walk(node, |_| false);
        all.into_iter().any(|node| self.name(node) == name)
    }

    /// Returns all text below a node on one line.
    pub(super) fn line(&self, node: NodeId) -> String {
        let mut text = String::new();
        for node in self.walk(node, |_| false) {
            text.push_str(self.text(node).unwrap_or_default());
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The sink that collects the parser's nodes.
struct Sink {
    nodes: RefCell<Vec<Node>>,
    is_full: Cell<bool>,
    /// The name of nodes that are not elements.
    no_name: Rc<QualName>,
}

/// The parser's handle to a node. It contains the name because the parser often needs it.
#[derive(Clone)]
struct Handle {
    id: NodeId,
    name: Rc<QualName>,
}

impl Sink {
    fn add(&self, content: Content, name: Rc<QualName>) -> Handle {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node {
            content,
            ..Node::default()
        });
        if nodes.len() > MAX_NODES {
            self.is_full.set(true);
        }
        Handle {
            id: nodes.len() - 1,
            name,
        }
    }

    fn insert(&self, parent: NodeId, at: usize, child: NodeOrText<Handle>) {
        match child {
            NodeOrText::AppendNode(child) => {
                self.detach(child.id);
                let mut nodes = self.nodes.borrow_mut();
                let at = at.min(nodes[parent].children.len());
                let depth = nodes[parent].depth + 1;
                if depth > MAX_DEPTH {
                    self.is_full.set(true);
                }
                nodes[child.id].parent = Some(parent);
                nodes[child.id].depth = depth;
                nodes[parent].children.insert(at, child.id);
            }
            NodeOrText::AppendText(text) => {
                let before = {
                    let nodes = self.nodes.borrow();
                    let before = at.checked_sub(1).map(|at| nodes[parent].children[at]);
                    before.filter(|node| matches!(nodes[*node].content, Content::Text(_)))
                };
                if let Some(before) = before {
                    let mut nodes = self.nodes.borrow_mut();
                    if let Content::Text(old) = &mut nodes[before].content {
                        old.push_str(&text);
                    }
                    return;
                }
                let content = Content::Text(text.to_string());
                let node = self.add(content, self.no_name.clone());
                self.insert(parent, at, NodeOrText::AppendNode(node));
            }
        }
    }

    fn place(&self, node: NodeId) -> Option<(NodeId, usize)> {
        let nodes = self.nodes.borrow();
        let parent = nodes[node].parent?;
        let children = &nodes[parent].children;
        // The node is usually one of the last children.
        let at = children.iter().rposition(|child| *child == node)?;
        Some((parent, at))
    }

    fn detach(&self, node: NodeId) {
        if let Some((parent, at)) = self.place(node) {
            let mut nodes = self.nodes.borrow_mut();
            nodes[parent].children.remove(at);
            nodes[node].parent = None;
        }
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = Vec<Node>;
    type ElemName<'a> = &'a QualName;

    fn finish(self) -> Vec<Node> {
        self.nodes.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Handle {
            id: Dom::ROOT,
            name: self.no_name.clone(),
        }
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> &'a QualName {
        &target.name
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        _: ElementFlags,
    ) -> Handle {
        let name = Rc::new(name);
        let content = Content::Element {
            name: name.clone(),
            attributes,
        };
        self.add(content, name)
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.add(Content::Other, self.no_name.clone())
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.add(Content::Other, self.no_name.clone())
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        let at = self.nodes.borrow()[parent.id].children.len();
        self.insert(parent.id, at, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        previous: &Handle,
        child: NodeOrText<Handle>,
    ) {
        if self.place(element.id).is_some() {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    // The contents of a template are never shown, so they need no separate tree.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.id == other.id
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(child) = &child {
            self.detach(child.id);
        }
        if let Some((parent, at)) = self.place(sibling.id) {
            self.insert(parent, at, child);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, added: Vec<Attribute>) {
        let mut nodes = self.nodes.borrow_mut();
        if let Content::Element { attributes, .. } = &mut nodes[target.id].content {
            for attribute in added {
                if !attributes.iter().any(|old| old.name == attribute.name) {
                    attributes.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.id);
    }

    fn reparent_children(&self, from: &Handle, to: &Handle) {
        let mut nodes = self.nodes.borrow_mut();
        let moved = std::mem::take(&mut nodes[from.id].children);
        let depth = nodes[to.id].depth + 1;
        for child in &moved {
            nodes[*child].parent = Some(to.id);
            nodes[*child].depth = depth;
        }
        nodes[to.id].children.extend(moved);
    }
}
