//! From a server to its tools: what is known of it, and which of its tools are offered.

use super::claims::Claims;
use super::overview::{ToolOverview, overview};
use super::{Servers, Start};
use crate::attachments::Attachments;
use crate::error::ConnectError;
use crate::names::tool_name;
use crate::pins::{Book, PinnedServer};
use crate::server::Server;
use crate::settings::Reach;
use crate::tool::{ServerTool, summary};
use lango_core::ToolName;
use lango_sandbox::Strength;
use lango_secrets::{FieldTool, SecretSource, ServerToolId};
use std::sync::Arc;

/// What is known of a server.
#[derive(Default)]
pub(super) struct Found {
    pinned: Option<PinnedServer>,
    problem: Option<String>,
    notes: Vec<String>,
}

/// What the tools of all servers share.
pub(super) struct Offering {
    pub(super) attachments: Attachments,
    pub(super) claims: Claims,
    pub(super) secrets: Arc<dyn SecretSource>,
}

impl Found {
    /// Returns what is known of a server, also while it cannot be used or reached with its settings: its names stay its own.
    pub(super) fn known<'a>(&'a self, server: &Server, book: &'a Book) -> Option<&'a PinnedServer> {
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
    /// What is known of a server, from its pins or by asking it.
    pub(super) async fn look(&self, server: &Server, book: &Book, start: Start) -> Found {
        let pinned = book.of(server.id(), &server.digest).cloned();
        let needs_sandbox = matches!(server.settings.reach, Reach::Program(_));
        if let (Strength::None { why }, true) = (&self.strength, needs_sandbox) {
            let error = ConnectError::NoSandbox { why: why.clone() };
            return Found::unusable(error.to_string());
        }
        if let Err(error) = server.check_command() {
            return Found::unusable(error.to_string());
        }
        match (pinned, start) {
            (Some(pinned), _) => Found {
                pinned: Some(pinned),
                notes: server.hints(),
                ..Found::default()
            },
            (None, Start::PinsOnly) => Found::default(),
            (None, Start::ConnectUnpinned) => match server.connect().await {
                Ok(connected) => Found {
                    pinned: Some(connected.pinned),
                    problem: None,
                    notes: [connected.notes, server.hints()].concat(),
                },
                Err(failure) => Found::unusable(failure.line()),
            },
        }
    }

    /// Takes in what was found: an overview, warnings, and the tools whose names nothing else claims.
    pub(super) fn add(&mut self, server: Arc<Server>, found: Found, offering: &Offering) {
        let id = server.id().to_owned();
        let mut warn = |text: String| self.warnings.push(format!("MCP server `{id}`: {text}"));
        if let Some(problem) = &found.problem {
            warn(problem.clone());
        }
        found.notes.into_iter().for_each(&mut warn);
        let mut tools = Vec::new();
        let pinned = found.pinned.unwrap_or_default();
        for (tool, pin) in &pinned.tools {
            let Some(form) = pin.offered().filter(|_| server.settings.wants(tool)) else {
                continue;
            };
            let name = tool_name(&server.settings.prefix, tool);
            if let Some(other) = offering.claims.conflict(&name, &id, tool) {
                warn(format!(
                    "its tool `{name}` is left out, because {other} has that name; set mcp.servers.{id}.prefix"
                ));
                continue;
            }
            tools.push(ToolOverview {
                name: ToolName::new(name.as_str()),
                tool: tool.clone(),
                summary: summary(&form.description),
                state: pin.state(),
                hash: form.hash.clone(),
            });
            let secret_user = ServerToolId {
                server: id.as_str().into(),
                tool: tool.as_str().into(),
            };
            let tool = ServerTool::new(
                Arc::clone(&server),
                &name,
                tool.clone(),
                form,
                offering.attachments.clone(),
            );
            let secrets = Arc::clone(&offering.secrets);
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
