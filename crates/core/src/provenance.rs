//! The origin of stored content and its trust label.

use crate::Text;
use serde::{Deserialize, Serialize};

/// The origin of stored content, such as a document in the library or an entry in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// A file, a URL, an agent or `user`: enough for a reader to find the original.
    pub name: Text,
    pub trust: Trust,
}

/// A trust label. Text from outside may contain instructions aimed at a model (prompt injection), so it is labelled
/// untrusted. The label is stored with the text and passes to everything derived from it.
///
/// The default is untrusted, for example for rows of an older lango that have no label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Written by the user or by lango itself.
    Trusted,
    /// From a file, a web page, another agent or a model.
    #[default]
    Untrusted,
}

impl Trust {
    /// Returns the label of something derived from both: trusted only if both are.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Trusted, Self::Trusted) => Self::Trusted,
            _ => Self::Untrusted,
        }
    }

    /// Returns [`Trust::Trusted`]: the serde default for data that is part of lango or of the user's own configuration.
    pub fn trusted() -> Self {
        Self::Trusted
    }

    /// Whether the label is untrusted. The log leaves this default out.
    pub fn is_untrusted(&self) -> bool {
        *self == Self::Untrusted
    }
}
