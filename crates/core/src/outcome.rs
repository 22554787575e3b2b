//! How a turn ended. Every turn ends in exactly one outcome.

use crate::{Limit, Text};
use serde::{Deserialize, Serialize};

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// An agent answered. A limit that shaped the answer is named.
    Answered {
        /// The limit that cut the work short, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Limit>,
    },
    /// A limit was hit before any agent answered; what was done so far is said in lango's own words.
    Limited {
        /// The limit.
        limit: Limit,
    },
    /// The turn could not go on; what was done so far is said in lango's own words.
    Failed {
        /// What stopped it.
        error: Text,
        /// Whether the person has to change a setting before it can work.
        #[serde(default)]
        setup: bool,
    },
    /// The person stopped it.
    Cancelled,
    /// The process ended in the middle of the turn, and a later start closed it.
    Interrupted,
}

impl Outcome {
    /// The one word for it in JSON and on the screen.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Limited { .. } => "limited",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The limit that was hit, with or without an answer.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Answered { limit } => *limit,
            Self::Limited { limit } => Some(*limit),
            Self::Failed { .. } | Self::Cancelled | Self::Interrupted => None,
        }
    }
}
