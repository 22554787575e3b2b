//! Where something that is kept came from, and whether its words may be believed.

use crate::Text;
use serde::{Deserialize, Serialize};

/// Where something that is kept came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// A file, an address, an agent, `user`: whatever lets a person find it again.
    pub name: Text,
    /// Whether its words may be believed.
    pub trust: Trust,
}

/// Whether words may be believed. What came from outside may hold instructions for a model, and stays marked: the mark
/// comes back whenever it is read, and passes to what is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The person said it, or lango itself.
    Trusted,
    /// It came from a file, a page, another agent, a model.
    Untrusted,
}

impl Trust {
    /// The trust in something that is made of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Trusted, Self::Trusted) => Self::Trusted,
            _ => Self::Untrusted,
        }
    }
}
