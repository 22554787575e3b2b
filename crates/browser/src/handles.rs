//! Handles (`e1`, `e2`, …): short names for a page's elements in observations. A node keeps its handle as long as its
//! document exists, and a browser never reuses a number. When a tab loads a new document, it drops the old handles.

use crate::BrowserError;
use crate::observe::ShownLines;
use std::collections::HashMap;
use std::sync::Arc;

/// Minimum number of handles at which those of removed nodes are dropped.
const PRUNE_THRESHOLD: usize = 5000;

/// An element that has a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The id of the frame that contains it.
    pub frame: Arc<str>,
    /// The protocol session of that frame.
    pub session: Arc<str>,
    /// The browser's node id, valid as long as the node exists.
    pub node: i64,
    /// The absolute URL, if the element is a link.
    pub link: Option<Arc<str>>,
    /// The description in the observation, such as `button "Log in"`.
    pub label: Arc<str>,
}

/// The identity of a node within a tab.
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
    /// The lines that observations of the document have shown so far.
    pub(crate) shown: ShownLines,
}

impl Handles {
    /// Returns the element of a handle.
    pub fn element(&self, handle: &str) -> Result<&Element, BrowserError> {
        let stale = || BrowserError::StaleHandle {
            handle: crate::notice::shorten(handle),
        };
        self.elements.get(handle).ok_or_else(stale)
    }

    /// Returns all handles with their elements, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Element)> {
        self.elements
            .iter()
            .map(|(handle, element)| (handle.as_str(), element))
    }

    /// Returns the handle of an element; assigns the next number to a new element.
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

    /// Returns the handle of a node, if it has one.
    pub(crate) fn of_node(&self, key: &NodeKey) -> Option<&str> {
        self.by_node.get(key).map(String::as_str)
    }

    /// Drops the handles of removed nodes, but only if there are many handles.
    pub(crate) fn prune_removed(&mut self, exists: impl Fn(&NodeKey) -> bool) {
        if self.elements.len() < PRUNE_THRESHOLD {
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
