//! The outcome of a turn. Every finished turn has exactly one.

use crate::{Limit, Text};
use serde::{Deserialize, Serialize};

/// The outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// An agent answered.
    Answered {
        /// The limit that cut the work short, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Limit>,
    },
    /// The turn hit a limit before any agent answered. Instead of an answer, lango summarizes what was done.
    Limited { limit: Limit },
    /// The turn failed. Instead of an answer, lango summarizes what was done.
    Failed {
        error: Text,
        /// Whether the user must change a setting or start a server before a retry can succeed.
        #[serde(default)]
        setup: bool,
        /// The [name](crate::ModelFault::name) of the fault if a model call failed, so that an edge can say what to do
        /// next; `None` in old logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Text>,
    },
    /// The user cancelled the turn.
    Cancelled,
    /// The process ended during the turn, and a later process closed the turn.
    Interrupted,
}

impl Outcome {
    /// Returns the name in JSON and on the screen.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Limited { .. } => "limited",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns the limit that the turn hit, with or without an answer.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Answered { limit } => *limit,
            Self::Limited { limit } => Some(*limit),
            Self::Failed { .. } | Self::Cancelled | Self::Interrupted => None,
        }
    }
}
