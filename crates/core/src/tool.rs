//! The seam to a tool: what it says of itself, and its code, in one value.

use crate::schema::Schema;
use crate::{
    AgentName, AttachedFile, BoxFuture, CallId, SessionId, Text, ToolName, Trust, TurnId, UserId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A tool that an agent can be given.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Runs it. `arguments` fit the schema.
    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// What a call with these arguments would change, for the person who is asked to allow it: a difference between two
    /// texts, say. Nothing if the arguments say it all.
    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        extent: Extent,
    ) -> BoxFuture<'a, Option<String>> {
        let _ = (arguments, extent);
        Box::pin(std::future::ready(None))
    }

    /// Looks at what a call with these arguments would touch, before the gate decides about it. [`Self::run`] gets the
    /// result in [`Caller::inspection`], and must refuse what is not as it was inspected. `caller` has no inspection yet,
    /// and the lowest trust label.
    fn inspect<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        let _ = (caller, arguments);
        Box::pin(std::future::ready(Inspection::default()))
    }
}

/// How much a preview shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What fits on a screen, and how much is not shown.
    Short,
    /// All of it.
    Whole,
}

/// What a call would touch that its arguments do not say. It is stored with the request for approval and with the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// Something that the call changes and that other programs act on, or a sensitive file that it sends to a site. The user
    /// is asked about such a call every time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarded: Option<GuardedTarget>,
    /// The SHA-256 of the content that the call would run, in hexadecimal digits. An approval holds for that content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Text>,
    /// The site that the call contacts. Such a call is asked for unless its address is known, or the site is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteAccess>,
    /// Why only the user can allow the call, as a sentence without a full stop. The user is asked each time; no rule and no
    /// earlier answer allows it, and where nobody can be asked it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_only: Option<Text>,
    /// Why the call cannot work, as a sentence without a full stop. It is refused, and nobody is asked about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Text>,
    /// What the user who is asked should also know, a line each: the secrets that the call may use and where they go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
}

/// A site that a call contacts: opens one of its addresses, or acts on its page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteAccess {
    /// The host, with the port if it is not the scheme's own. Rules and grants are matched against it.
    pub host: Text,
    /// The address that is opened, as the call has it; none if the call acts on a page that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// Whether that address is one that a model did not make up: a link or a search result of this session, or verbatim in
    /// a message of the user. Opening such an address tells the site nothing that it, or the user, did not know.
    #[serde(default)]
    pub is_known: bool,
    /// What the call does there, for the user who is asked: `click button "Buy"`.
    pub summary: Text,
}

/// Something that other programs act on (settings of an editor, instructions of another agent, a git directory), or a file
/// that may hold secrets and leaves the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedTarget {
    /// Its path without links, relative to the workspace if it lies there.
    pub path: Text,
    /// Why it is guarded, as a sentence without a full stop.
    pub reason: Text,
}

impl Inspection {
    /// Whether there was nothing to find.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// On whose behalf a tool runs. None of it comes from a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose session it is.
    pub user: UserId,
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The agent.
    pub agent: AgentName,
    /// The call, unique within its turn.
    pub call: CallId,
    /// The trust label of everything the agent had been shown when it made the call. A tool that stores text of the agent
    /// stores this label with it.
    pub trust: Trust,
    /// What the tool found out about the call before it was allowed.
    pub inspection: Inspection,
}

impl Caller {
    /// The name of this one call among all calls: the key under which an effect must not happen twice.
    pub fn key(&self) -> String {
        format!("{}/{}", self.turn, self.call)
    }
}

/// What a tool says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name; its prefix decides which agent owns it.
    pub name: ToolName,
    /// What it does, for the model.
    pub description: Text,
    /// The JSON schema of its arguments.
    pub parameters: Schema,
    /// What happens when it runs twice.
    pub effect: Effect,
    /// How much harm it can do. A call that contacts a site is judged by the site instead.
    pub risk: Risk,
    /// An argument with which it can do more.
    pub escalation: Option<Escalation>,
    /// What stands for its arguments where a rule speaks of them.
    pub subject: Subject,
    /// The trust label of its description and its schema, which every agent that holds it is shown.
    pub trust: Trust,
}

/// An argument that makes a call riskier than its tool is without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// The argument.
    pub argument: &'static str,
    /// The risk when it is there.
    pub risk: Risk,
}

/// What of a call's arguments rules and people look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subject {
    /// All of them, as JSON with sorted keys.
    #[default]
    Arguments,
    /// The path in `path`.
    Path,
    /// The command: a line for the shell in `command`, or words in `argv`.
    Command,
    /// The host in [`Inspection::site`]; all arguments of a call that contacts none.
    Site,
}

impl ToolSpec {
    /// The risk of a call with these arguments.
    pub fn risk_of(&self, arguments: &Value) -> Risk {
        let is_there = |escalation: &&Escalation| {
            let argument = arguments.get(escalation.argument);
            argument.is_some_and(|value| !value.is_null())
        };
        let escalated = self.escalation.as_ref().filter(is_there);
        escalated.map_or(self.risk, |escalation| escalation.risk)
    }
}

/// What happens to the world when a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing.
    Pure,
    /// Something, and running it again changes nothing more.
    Idempotent,
    /// Something, every time.
    Effect,
}

/// How much harm a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// None that matters.
    Safe,
    /// Some that can be undone.
    Moderate,
    /// Some that cannot.
    Dangerous,
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text for the model.
    pub text: String,
    /// The trust label of the text: trusted only if nothing in it came from outside. With files it does not count: those
    /// are untrusted.
    pub trust: Trust,
    /// Files for the agent that called: images, or texts.
    pub files: Vec<AttachedFile>,
}

impl ToolOutput {
    /// A text of lango's own words.
    pub fn trusted(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            trust: Trust::Trusted,
            files: Vec::new(),
        }
    }
}

/// A text that may hold anything.
impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self {
            text,
            trust: Trust::Untrusted,
            files: Vec::new(),
        }
    }
}

/// Why a tool gave nothing back. The text goes to the model, so it says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What went wrong and the way out.
    pub message: String,
    /// The trust label of the message: trusted only if nothing in it came from outside.
    pub trust: Trust,
}

impl ToolError {
    /// An error with this text, which may hold anything.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            trust: Trust::Untrusted,
        }
    }

    /// An error in lango's own words.
    pub fn trusted(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            trust: Trust::Trusted,
        }
    }
}
