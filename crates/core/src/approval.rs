//! Approvals: requests to the user about a call, and the answers.
//!
//! A request is bound to a digest of agent, tool and exact arguments, so an answer to one call never applies to
//! another. An answer that also covers later calls has a pattern; it becomes a [`Grant`].

use crate::{
    AgentName, ApprovalId, CallId, Effect, Inspection, Risk, SessionId, Text, Timestamp, ToolName,
    TurnId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A request to the user about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    pub id: ApprovalId,
    /// The agent that made the call.
    pub agent: AgentName,
    pub call: CallId,
    pub tool: ToolName,
    /// The arguments, exactly as the tool will get them.
    pub arguments: Arc<Value>,
    /// The tool's inspection of the call.
    #[serde(default, skip_serializing_if = "Inspection::is_empty")]
    pub inspection: Inspection,
    /// A digest of agent, tool, arguments and the content that would run. Equal calls have equal digests.
    pub digest: Text,
    /// The folder that the agent works in.
    #[serde(default)]
    pub folder: Text,
    pub effect: Effect,
    pub risk: Risk,
    #[serde(
        default,
        rename = "asks",
        skip_serializing_if = "ApprovalQuestion::is_permission"
    )]
    pub question: ApprovalQuestion,
    /// Why the user is asked: the matching rule, or the risk.
    pub reason: Text,
    /// The pattern to offer for an answer that covers later calls; `None` if every call needs its own approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Text>,
}

/// The question that an approval request asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalQuestion {
    /// May the call run?
    #[default]
    Permission,
    /// What happened to the call? The process ended before it stored a result, so the call's outcome is unknown: it may
    /// have had its effect.
    #[serde(rename = "fate")]
    UnknownOutcome,
    /// May the turn continue? The database was restored from a backup or copied during the turn, so what the turn did
    /// afterwards is unknown.
    #[serde(rename = "turn")]
    ContinueTurn,
}

impl ApprovalQuestion {
    /// Whether the question is [`Self::Permission`].
    pub fn is_permission(&self) -> bool {
        *self == Self::Permission
    }
}

/// The answer to an approval request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// Allows this call.
    Once,
    /// Allows matching calls of this agent and tool in this session.
    Session { pattern: Text },
    /// Allows matching calls of this agent and tool in every session of this folder.
    Always { pattern: Text, folder: Text },
    /// Denies the call.
    No {
        /// The explanation for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Text>,
    },
    /// Repeats a call with an unknown outcome, with the same idempotency key; or continues the turn.
    Retry,
    /// Does not repeat a call with an unknown outcome and tells the model that its outcome is unknown; or ends the turn.
    Skip,
    /// Reports what happened to a call with an unknown outcome.
    Happened {
        /// The result for the model.
        text: Text,
    },
}

impl ApprovalAnswer {
    /// Whether the call may run.
    pub fn allows(&self) -> bool {
        match self {
            Self::Once | Self::Session { .. } | Self::Always { .. } | Self::Retry => true,
            Self::No { .. } | Self::Skip | Self::Happened { .. } => false,
        }
    }

    /// Returns the pattern if the answer covers later calls, and the folder if it also covers other sessions.
    pub fn grant(&self) -> Option<(&Text, Option<&Text>)> {
        match self {
            Self::Session { pattern } => Some((pattern, None)),
            Self::Always { pattern, folder } => Some((pattern, Some(folder))),
            Self::Once | Self::No { .. } | Self::Retry | Self::Skip | Self::Happened { .. } => None,
        }
    }

    /// Whether the answer is valid for the question. `No` is valid for every question: it is also the answer if the user
    /// cannot be asked or the turn ends.
    pub fn fits(&self, question: ApprovalQuestion) -> bool {
        match self {
            Self::No { .. } => true,
            Self::Once | Self::Session { .. } | Self::Always { .. } => question.is_permission(),
            Self::Retry | Self::Skip | Self::Happened { .. } => !question.is_permission(),
        }
    }

    /// Returns the name in JSON and on the screen.
    pub fn name(&self) -> &'static str {
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

/// The source of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum AnswerSource {
    /// The user answered this request.
    Person,
    /// An earlier answer of the user covers this call.
    Grant { grant: ApprovalId },
    /// The user could not be asked, so the call is denied.
    #[serde(rename = "nobody")]
    Unattended,
    /// The turn ended before the user answered, so the call is denied.
    TurnEnded,
    /// The request expired (`approval.expiry`), so the call is denied.
    Expired,
}

/// An answer that allows matching later calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The id of the request that was answered.
    pub id: ApprovalId,
    /// The session of that request.
    pub session: SessionId,
    pub agent: AgentName,
    pub tool: ToolName,
    /// The pattern that a call's subject must match.
    pub pattern: Text,
    /// The folder in which the grant applies; `None` if it applies only to its session.
    pub folder: Option<Text>,
    /// When the user gave the answer.
    pub given: Timestamp,
}

/// A request without an answer, with its session and turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PendingApproval {
    pub session: SessionId,
    pub turn: TurnId,
    /// When the request was stored.
    pub asked: Timestamp,
    #[serde(flatten)]
    pub request: ApprovalRequest,
}
