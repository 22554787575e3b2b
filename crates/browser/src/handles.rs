//! The short names (`e1`, `e2`, …) under which an observation shows the elements of a page, and what they stand for. A
//! node keeps its handle as long as its document lives; no number is used twice in one browser. A tab forgets them with
//! its document.

use crate::BrowserError;
use crate::observe::ShownLines;
use std::collections::HashMap;
use std::sync::Arc;

/// Past this many, handles of nodes that are gone are forgotten.
const MANY: usize = 5000;

/// An element that has a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The frame that it is in.
    pub frame: Arc<str>,
    /// The protocol session of that frame.
    pub session: Arc<str>,
    /// The browser's own number of the node, valid as long as the node exists.
    pub node: i64,
    /// The absolute address that it links to, if it is a link.
    pub link: Option<Arc<str>>,
    /// What the observation called it, such as `button "Log in"`.
    pub label: Arc<str>,
}

/// A node among all nodes of a tab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct NodeKey {
    pub(crate) session: Arc<str>,
    pub(crate) node: i64,
}

/// The handles of one document.
#[derive(Debug, Clone, Default)]
pub struct Handles {
    elements: HashMap<String, Element>,
    by_node: HashMap<NodeKey, String>,
    /// What was shown of the document.
    pub(crate) shown: ShownLines,
}

impl Handles {
    /// The element of a handle.
    pub fn element(&self, handle: &str) -> Result<&Element, BrowserError> {
        let stale = || BrowserError::StaleHandle {
            handle: crate::notice::shorten(handle),
        };
        self.elements.get(handle).ok_or_else(stale)
    }

    /// All handles with their elements, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Element)> {
        self.elements
            .iter()
            .map(|(handle, element)| (handle.as_str(), element))
    }

    /// The handle of an element: the one that its node has, or the next number.
    pub(crate) fn assign(&mut self, element: Element, last: &mut u32) -> String {
        let key = element.key();
        let handle = self.by_node.entry(key).or_insert_with(|| {
            *last += 1;
            format!("e{last}")
        });
        let handle = handle.clone();
        self.elements.insert(handle.clone(), element);
        handle
    }

    /// The handle that a node has.
    pub(crate) fn of_node(&self, key: &NodeKey) -> Option<&str> {
        self.by_node.get(key).map(String::as_str)
    }

    /// Forgets nodes that are gone, if there are many.
    pub(crate) fn forget(&mut self, exists: impl Fn(&NodeKey) -> bool) {
        if self.elements.len() < MANY {
            return;
        }
        self.elements.retain(|_, element| exists(&element.key()));
        self.by_node.retain(|key, _| exists(key));
        self.shown.retain(|key, _| exists(key));
    }
}

impl Element {
    pub(crate) fn key(&self) -> NodeKey {
        NodeKey {
            session: Arc::clone(&self.session),
            node: self.node,
        }
    }
}
