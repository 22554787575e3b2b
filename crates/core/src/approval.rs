//! Asking a person before a call runs, and what they said.
//!
//! A request is bound to a digest of agent, tool and exact arguments, so that an answer to one call is never an answer to
//! another. An answer that shall hold for longer carries a pattern: from then on it is a [`Grant`].

use crate::{
    AgentName, ApprovalId, CallId, Effect, Inspection, Risk, SessionId, Text, Timestamp, ToolName,
    TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its id.
    pub id: ApprovalId,
    /// Who wants it.
    pub agent: AgentName,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The arguments, exactly as the tool will get them.
    pub arguments: Arc<Value>,
    /// What the tool found out about the call.
    #[serde(default, skip_serializing_if = "Inspection::is_empty")]
    pub inspection: Inspection,
    /// Stands for agent, tool, arguments and the content that would run: the same call has the same digest.
    pub digest: Text,
    /// The folder the agent works in.
    #[serde(default)]
    pub folder: Text,
    /// What happens to the world when it runs.
    pub effect: Effect,
    /// How much harm it can do.
    pub risk: Risk,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Asks::is_permission")]
    pub asks: Asks,
    /// What asked: the rule, or the risk.
    pub reason: Text,
    /// The pattern that is offered for an answer which shall hold for longer; none if every call has to be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Text>,
}

/// What a person is asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Whether it may run.
    #[default]
    Permission,
    /// What became of it: its process ended before a result was stored, it may have had its effect, and nobody here can
    /// know.
    Fate,
    /// Whether the turn goes on. Its database was restored from a backup, or copied, in the middle of the turn; what the turn
    /// did after that is unknown.
    Turn,
}

impl Asks {
    /// Returns whether the question is if a call may run.
    pub fn is_permission(&self) -> bool {
        *self == Self::Permission
    }
}

/// What a person says to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// This call may run.
    Once,
    /// Calls of this agent and tool that fit the pattern may run in this session.
    Session {
        /// What they must look like.
        pattern: Text,
    },
    /// The same in every session of this folder.
    Always {
        /// What they must look like.
        pattern: Text,
        /// The folder.
        folder: Text,
    },
    /// It may not run.
    No {
        /// What the model is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Text>,
    },
    /// A call of unknown fate is to run again, under the same key; or the turn goes on.
    Retry,
    /// A call of unknown fate is left as it is, and the model is told that nobody knows; or the turn ends.
    Skip,
    /// The person knows what became of a call.
    Happened {
        /// What the model is told.
        text: Text,
    },
}

impl Answer {
    /// Whether the call may run.
    pub fn allows(&self) -> bool {
        match self {
            Self::Once | Self::Session { .. } | Self::Always { .. } | Self::Retry => true,
            Self::No { .. } | Self::Skip | Self::Happened { .. } => false,
        }
    }

    /// The pattern of an answer that holds for longer, and the folder if it holds beyond its session.
    pub fn grant(&self) -> Option<(&Text, Option<&Text>)> {
        match self {
            Self::Session { pattern } => Some((pattern, None)),
            Self::Always { pattern, folder } => Some((pattern, Some(folder))),
            Self::Once | Self::No { .. } | Self::Retry | Self::Skip | Self::Happened { .. } => None,
        }
    }

    /// Whether it answers what is asked. A no without more fits everything: nobody could be asked, or the turn ends.
    pub fn fits(&self, asks: Asks) -> bool {
        match self {
            Self::No { .. } => true,
            Self::Once | Self::Session { .. } | Self::Always { .. } => asks == Asks::Permission,
            Self::Retry | Self::Skip | Self::Happened { .. } => asks != Asks::Permission,
        }
    }

    /// The one word for it in JSON and on the screen.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session { .. } => "session",
            Self::Always { .. } => "always",
            Self::No { .. } => "no",
            Self::Retry => "retry",
            Self::Skip => "skip",
            Self::Happened { .. } => "happened",
        }
    }
}

/// Who gave an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person, now.
    Person,
    /// A person, with an earlier answer that still holds.
    Grant {
        /// That answer's request.
        grant: ApprovalId,
    },
    /// Nobody was there to be asked, which means no.
    Nobody,
    /// The turn ended while it waited, which means no.
    TurnEnded,
    /// The request expired (`approval.expiry`), which denies it.
    Expired,
}

/// An answer that holds for calls to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The request it was given to.
    pub id: ApprovalId,
    /// The session it was given in.
    pub session: SessionId,
    /// Whose calls.
    pub agent: AgentName,
    /// Of which tool.
    pub tool: ToolName,
    /// What they must look like.
    pub pattern: Text,
    /// The folder it holds in; none if it holds in its session.
    pub folder: Option<Text>,
    /// When it was given.
    pub given: Timestamp,
}

/// A request that waits, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waiting {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Since when it waits.
    pub asked: Timestamp,
    /// What is asked.
    #[serde(flatten)]
    pub request: ApprovalRequest,
}
