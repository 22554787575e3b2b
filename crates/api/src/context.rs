//! What the API needs from the program around it, besides the store: its agents, models, settings and checks.

use bytes::Bytes;
use lango_core::{BoxFuture, BoxStream, Grant, PendingApproval, SessionId, Text, TurnId, UserId};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The program that serves the API.
pub trait ApiContext: Send + Sync + 'static {
    /// Returns the user who owns this installation.
    fn owner(&self) -> UserId;

    /// Returns the users whose sessions a user may see: the user itself, and for the owner also the callers of A2A.
    fn visible_users(&self, user: &UserId) -> Vec<UserId>;

    /// Returns the folder that the agents work in.
    fn folder(&self) -> String;

    /// Describes the program.
    fn program(&self) -> Program;

    /// Describes a part of the setup.
    fn describe<'a>(&'a self, part: Part, user: &'a UserId)
    -> BoxFuture<'a, Result<Value, String>>;

    /// Searches the knowledge of a user.
    fn search_knowledge<'a>(
        &'a self,
        user: &'a UserId,
        query: &'a str,
    ) -> BoxFuture<'a, Result<Value, String>>;

    /// Returns the pattern for an answer that applies to later calls: the given pattern, or the one that the request
    /// offers. Fails if the pattern would allow more than the request may grant.
    fn grant_pattern(&self, waiting: &PendingApproval, given: Option<&str>)
    -> Result<Text, String>;

    /// Returns why a grant no longer has any effect, or `None` if it is in force.
    fn grant_problem(&self, grant: &Grant) -> Option<String>;

    /// Cancels the A2A task of a turn that runs here. Returns whether there was one.
    fn cancel_task<'a>(&'a self, user: &'a UserId, turn: &'a TurnId) -> BoxFuture<'a, bool>;

    /// Deletes what is stored about a session outside of the database: the originals of files that its turns changed.
    fn forget_session(&self, session: &SessionId) -> Result<(), String>;

    /// Exports a session in the format of `lango sessions export`.
    fn export(&self, session: SessionId) -> BoxStream<'static, Result<Bytes, String>>;
}

/// A part of the setup that the API describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The tree of agents.
    Agents,
    /// The models that can be chosen.
    Models,
    /// The tools and their owners.
    Tools,
    /// The MCP servers.
    Mcp,
    /// The library: collections and documents.
    Knowledge,
    /// What lango remembers of conversations.
    Memory,
    /// The checks of `lango doctor`.
    Doctor,
    /// The configuration, with the origin of each value.
    Config,
}

/// The program that serves the API, as its callers see it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Program {
    /// The version of lango.
    pub version: String,
    /// The default model, for agents that have no model of their own.
    pub model: String,
    /// Whether the model is the built-in demo.
    pub is_demo: bool,
    /// Whether a single agent answers.
    pub single_agent: bool,
    /// Whether conversations are remembered.
    pub has_memory: bool,
    /// Whether there is a library.
    pub has_knowledge: bool,
    /// The database: `sqlite` or `postgres`.
    pub store: String,
}
