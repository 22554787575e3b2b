//! The short names (`e1`, `e2`, …) under which an observation shows the elements of a page, and what they stand for. A
//! tab forgets them with its document.

use crate::BrowserError;
use std::collections::HashMap;
use std::sync::Arc;

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
    /// What the observation called it, such as ``button `Log in` ``.
    pub label: Arc<str>,
}

/// The handles of one document.
#[derive(Debug, Clone, Default)]
pub struct Handles {
    elements: HashMap<String, Element>,
}

impl Handles {
    /// The element of a handle.
    pub fn element(&self, handle: &str) -> Result<&Element, BrowserError> {
        let stale = || BrowserError::StaleHandle {
            handle: handle.to_owned(),
        };
        self.elements.get(handle).ok_or_else(stale)
    }

    /// All handles with their elements, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Element)> {
        self.elements
            .iter()
            .map(|(handle, element)| (handle.as_str(), element))
    }
}

impl FromIterator<(String, Element)> for Handles {
    fn from_iter<I: IntoIterator<Item = (String, Element)>>(elements: I) -> Self {
        Self {
            elements: elements.into_iter().collect(),
        }
    }
}
