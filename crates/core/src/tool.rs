//! The interface of a tool: its specification and its code.

use crate::schema::Schema;
use crate::{
    AgentName, AttachedFile, BoxFuture, CallId, OutputSink, SessionId, Text, ToolName, Trust,
    TurnId, UserId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A tool that an agent can use.
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool. `arguments` match the schema.
    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Returns what a call with these arguments would change, for the user who approves it: for example a diff. Returns
    /// `None` if the arguments show everything.
    fn preview<'a>(
        &'a self,
        arguments: Arc<Value>,
        request: PreviewRequest,
    ) -> BoxFuture<'a, Option<String>> {
        let _ = (arguments, request);
        Box::pin(std::future::ready(None))
    }

    /// Inspects what a call with these arguments would touch, before the gate decides about it. [`Self::run`] gets the
    /// result in [`Caller::inspection`] and must refuse to run if the inspection no longer holds. The `caller` given
    /// here has no inspection yet and the lowest trust label.
    fn inspect<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arc<Value>,
    ) -> BoxFuture<'a, Inspection> {
        let _ = (caller, arguments);
        Box::pin(std::future::ready(Inspection::default()))
    }
}

/// What a preview has to show.
#[derive(Debug, Clone)]
pub struct PreviewRequest {
    pub length: PreviewLength,
    /// The inspection that an approval covers. If the target has changed since, the tool says so instead of showing the new
    /// one: the user would approve the old one.
    pub inspection: Inspection,
}

/// The length of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewLength {
    /// At most a screenful, with a note of how much is left out.
    Short,
    Full,
}

/// Facts about a call that its arguments do not show. The engine stores them with the approval request and with the
/// call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// A guarded target that the call changes, or a sensitive file that it sends to a site. The user must approve each
    /// such call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarded: Option<GuardedTarget>,
    /// The change of a file or folder that the call makes. Only lango's own file tools set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Box<FileEdit>>,
    /// Where the argument `path` or `cwd` leads, if its text does not tell: it passes through symbolic links, or names a
    /// folder that the user opened by another of its names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathResolution>,
    /// The SHA-256 of the content that the call would run, in hexadecimal. An approval covers only this content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Text>,
    /// The site that the call contacts. The user must approve the call unless the URL is known or the site is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteAccess>,
    /// Why only the user can allow the call, as a sentence without a full stop. The user is asked each time: no rule
    /// and no grant allows the call, and it is denied if the user cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_only: Option<Text>,
    /// Why the call cannot work, as a sentence without a full stop. It is denied without asking the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Text>,
    /// Additional lines for the user who approves the call: the secrets that it may use, and where they are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Text>,
}

/// A site that a call contacts, by opening a URL or acting on an open page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteAccess {
    /// The host, with the port if it is not the default of the scheme. Rules and grants match against it.
    pub host: Text,
    /// The URL to open, as written in the call; `None` if the call acts on a page that is already open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// Whether the model cannot have made up the URL: it is a link or a search result of this session, or it appears
    /// verbatim in a message of the user. Opening a known URL leaks nothing that the site or the user did not know
    /// before.
    #[serde(default)]
    pub is_known: bool,
    /// What the call does on the site, such as `click button "Buy"`, for the user who approves it.
    pub summary: Text,
}

/// A file or folder for which each call needs approval, because other programs act on it (editor settings, instructions
/// of another agent, a git directory), or because it may contain secrets and would leave the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedTarget {
    /// The path with symbolic links resolved, relative to the workspace if it is inside.
    pub path: Text,
    /// Why the target is guarded, as a sentence without a full stop.
    pub reason: Text,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathResolution {
    /// The path with symbolic links resolved, relative to the workspace if it is inside.
    pub target: Text,
    /// The path as it reads when resolution comes to each link: the link, in its resolved folder, and what follows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Text>,
}

/// A change of a file or folder by a file tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEdit {
    /// Why the user should see the change first even if edits are accepted, as a sentence without a full stop: other
    /// programs execute the file, or it is outside the workspace. It names the path with symbolic links resolved.
    /// `None` for an ordinary file of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<Text>,
    /// The SHA-256 of what the call replaces or deletes, in hexadecimal: the whole file, the changed lines, or a list of
    /// what is in a folder; or another text if the call would fail now. If the user approved the change, the tool
    /// replaces and deletes nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Text>,
    /// Why an undo could not take the change back, as a sentence without a full stop. The user should see such a change
    /// first even if edits are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irreversible: Option<Text>,
}

impl Inspection {
    /// Allows the call also if the file changes before it runs, because no user was shown what it replaces.
    pub fn allow_later_changes(&mut self) {
        if let Some(edit) = &mut self.edit {
            edit.replaces = None;
        }
    }

    /// Whether the inspection found nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The context of a tool call. None of it comes from a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The owner of the session.
    pub user: UserId,
    pub session: SessionId,
    pub turn: TurnId,
    pub agent: AgentName,
    /// The id of the call, unique within its turn.
    pub call: CallId,
    /// The trust label of everything that the agent had seen when it made the call. A tool that stores text of the
    /// agent stores this label with it.
    pub trust: Trust,
    /// The tool's inspection of the call.
    pub inspection: Inspection,
    /// Where the tool can show its output while it runs.
    pub output: OutputSink,
}

impl Caller {
    /// Returns the idempotency key of the call, unique over all calls. An effect with the same key must not happen
    /// twice.
    pub fn key(&self) -> String {
        format!("{}/{}", self.turn, self.call)
    }
}

/// The specification of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name. Its prefix decides which agent owns the tool.
    pub name: ToolName,
    /// What the tool does, for the model.
    pub description: Text,
    /// The JSON schema of its arguments.
    pub parameters: Schema,
    pub effect: Effect,
    /// The risk of a call. For a call that contacts a site, the site decides instead.
    pub risk: Risk,
    /// An argument that raises the risk.
    pub escalation: Option<Escalation>,
    /// What approval rules match against.
    pub subject: RuleSubject,
    /// The trust label of the description and the schema, which are part of the owning agent's prompt.
    pub trust: Trust,
}

/// An argument that makes a call riskier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    pub argument: &'static str,
    /// The risk of a call that has the argument.
    pub risk: Risk,
}

/// The part of a call that approval rules match against and that the user sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleSubject {
    /// All arguments, as JSON with sorted keys.
    #[default]
    Arguments,
    /// The path in the argument `path`.
    Path,
    /// The command: a shell line in `command`, or a list of words in `argv`.
    Command,
    /// The host in [`Inspection::site`]; all arguments if the call contacts no site.
    Site,
}

impl ToolSpec {
    /// Returns the risk of a call with these arguments.
    pub fn risk_of(&self, arguments: &Value) -> Risk {
        let is_there = |escalation: &&Escalation| {
            let argument = arguments.get(escalation.argument);
            argument.is_some_and(|value| !value.is_null())
        };
        let escalated = self.escalation.as_ref().filter(is_there);
        escalated.map_or(self.risk, |escalation| escalation.risk)
    }
}

/// The effect of a tool on the outside world. It decides whether an interrupted call may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It changes nothing.
    Pure,
    /// It changes something, but running it again with the same arguments changes nothing more.
    Idempotent,
    /// Each run changes something.
    #[serde(rename = "effect")]
    NonIdempotent,
}

/// The harm that a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// No relevant harm.
    Safe,
    /// Harm that can be undone.
    Moderate,
    /// Harm that cannot be undone.
    Dangerous,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text for the model.
    pub text: String,
    /// The trust label of the text: trusted only if nothing in it came from outside. The files are always untrusted.
    pub trust: Trust,
    /// Images or texts for the agent that called the tool.
    pub files: Vec<AttachedFile>,
}

impl ToolOutput {
    /// Creates an output that lango wrote itself.
    pub fn trusted(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            trust: Trust::Trusted,
            files: Vec::new(),
        }
    }
}

impl ToolOutput {
    /// Creates an output with a value as JSON. It may contain text from outside.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, ToolError> {
        Ok(serde_json::to_string(value)?.into())
    }
}

/// Creates an output that may contain text from outside.
impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self {
            text,
            trust: Trust::Untrusted,
            files: Vec::new(),
        }
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A failed tool call. The message goes to the model, so it says what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What went wrong, and what to do about it.
    pub message: String,
    /// The trust label of the message: trusted only if nothing in it came from outside.
    pub trust: Trust,
}

impl ToolError {
    /// Creates an error whose message may contain text from outside.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            trust: Trust::Untrusted,
        }
    }

    /// Creates an error whose message lango wrote itself.
    pub fn trusted(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            trust: Trust::Trusted,
        }
    }
}

impl From<&str> for ToolError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<std::io::Error> for ToolError {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error.to_string())
    }
}
