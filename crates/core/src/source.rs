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
///
/// The default is the careful one: what says nothing of its trust, such as a row of an older lango, is untrusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The person said it, or lango itself.
    Trusted,
    /// It came from a file, a page, another agent, a model.
    #[default]
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

    /// The default of data that is part of lango or of the person's own configuration.
    pub fn trusted() -> Self {
        Self::Trusted
    }

    /// Whether it is the default, which the log leaves out.
    pub fn is_untrusted(&self) -> bool {
        *self == Self::Untrusted
    }
}
