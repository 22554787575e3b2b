//! Turns a server into tools: looks up its pins or connects to it, and decides which of its tools to offer.

use super::claims::Claims;
use super::overview::{ToolOverview, overview};
use super::{Servers, StartMode};
use crate::attachments::Attachments;
use crate::error::ConnectError;
use crate::names::tool_name;
use crate::pins::{PinBook, PinnedServer};
use crate::server::Server;
use crate::settings::ServerTarget;
use crate::tool::{ServerTool, summary};
use lango_core::ToolName;
use lango_sandbox::SandboxStrength;
use lango_secrets::{FieldTool, SecretSource, ServerToolId};
use std::sync::Arc;

/// The result of looking up a server.
#[derive(Default)]
pub(super) struct ServerLookup {
    pinned: Option<PinnedServer>,
    problem: Option<String>,
    notes: Vec<String>,
}

/// What the tools of all servers have in common.
pub(super) struct OfferContext {
    pub(super) attachments: Attachments,
    pub(super) claims: Claims,
    pub(super) secrets: Arc<dyn SecretSource>,
}

impl ServerLookup {
    /// Returns the pins of a server, even if it is unusable or its settings have changed, so that no other server takes
    /// its tool names.
    pub(super) fn known<'a>(
        &'a self,
        server: &Server,
        book: &'a PinBook,
    ) -> Option<&'a PinnedServer> {
        self.pinned.as_ref().or_else(|| book.last(server.id()))
    }

    fn unusable(problem: String) -> Self {
        Self {
            problem: Some(problem),
            ..Self::default()
        }
    }
}

impl Servers {
    /// Looks up the tools of a server in its pins, or connects to it.
    pub(super) async fn look_up(
        &self,
        server: &Server,
        book: &PinBook,
        start: StartMode,
    ) -> ServerLookup {
        let pinned = book.of(server.id(), &server.digest).cloned();
        let needs_sandbox = matches!(server.settings.target, ServerTarget::Program(_));
        if let (SandboxStrength::None { why }, true) = (&self.strength, needs_sandbox) {
            let error = ConnectError::NoSandbox { why: why.clone() };
            return ServerLookup::unusable(error.to_string());
        }
        if let Err(error) = server.check_command() {
            return ServerLookup::unusable(error.to_string());
        }
        match (pinned, start) {
            (Some(pinned), _) => ServerLookup {
                pinned: Some(pinned),
                notes: server.hints(),
                ..ServerLookup::default()
            },
            (None, StartMode::PinsOnly) => ServerLookup::default(),
            (None, StartMode::ConnectUnpinned) => match server.connect().await {
                Ok(connected) => ServerLookup {
                    pinned: Some(connected.pinned),
                    problem: None,
                    notes: [connected.notes, server.hints()].concat(),
                },
                Err(failure) => ServerLookup::unusable(failure.to_line()),
            },
        }
    }

    /// Adds a server: its overview, warnings, and the tools whose names are free.
    pub(super) fn add(&mut self, server: Arc<Server>, found: ServerLookup, offer: &OfferContext) {
        let id = server.id().to_owned();
        let mut warn = |text: String| self.warnings.push(format!("MCP server `{id}`: {text}"));
        if let Some(problem) = &found.problem {
            warn(problem.clone());
        }
        found.notes.into_iter().for_each(&mut warn);
        let mut tools = Vec::new();
        let pinned = found.pinned.unwrap_or_default();
        for (tool, pin) in &pinned.tools {
            let Some(definition) = pin.offered().filter(|_| server.settings.wants(tool)) else {
                continue;
            };
            let name = tool_name(&server.settings.prefix, tool);
            if let Some(other) = offer.claims.conflict(&name, &id, tool) {
                warn(format!(
                    "its tool `{name}` is left out, because {other} has that name; set mcp.servers.{id}.prefix"
                ));
                continue;
            }
            tools.push(ToolOverview {
                name: ToolName::new(name.as_str()),
                tool: tool.clone(),
                summary: summary(&definition.description),
                state: pin.state(),
                hash: definition.hash.clone(),
            });
            let secret_user = ServerToolId {
                server: id.as_str().into(),
                tool: tool.as_str().into(),
            };
            let tool = ServerTool::new(
                Arc::clone(&server),
                &name,
                tool.clone(),
                definition,
                offer.attachments.clone(),
            );
            let secrets = Arc::clone(&offer.secrets);
            let tool = FieldTool::new(Arc::new(tool), secret_user, secrets);
            self.tools.push(Arc::new(tool));
        }
        if let Some(wanted) = server
            .settings
            .tools
            .as_ref()
            .filter(|_| !pinned.tools.is_empty())
        {
            let missing = wanted
                .iter()
                .filter(|tool| !pinned.tools.contains_key(*tool));
            missing.for_each(|tool| warn(format!("it has no tool `{tool}`")));
        }
        self.overview
            .push(overview(&server, &pinned, found.problem, tools));
    }
}
