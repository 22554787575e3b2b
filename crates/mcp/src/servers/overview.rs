//! An overview of each server, available without connecting to it.

use crate::pins::{PinnedServer, ToolState};
use crate::server::Server;
use crate::settings::ServerTarget;
use lango_core::{AgentName, ToolName};

/// What is known about one server without connecting to it.
#[derive(Debug, Clone)]
pub struct ServerOverview {
    /// The key in `mcp.servers`.
    pub id: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// The command, or the address.
    pub target: String,
    /// The agent that gets its tools.
    pub agent: Option<AgentName>,
    /// The server's own name and version; empty until it is pinned.
    pub name: String,
    /// The server's own title without a version, from the first connection.
    pub title: Option<String>,
    pub is_pinned: bool,
    /// The reason why the server cannot be used; `None` if it can.
    pub problem: Option<String>,
    /// The tools that are offered.
    pub tools: Vec<ToolOverview>,
}

/// One offered tool of a server.
#[derive(Debug, Clone)]
pub struct ToolOverview {
    /// The name that agents use.
    pub name: ToolName,
    /// The server's name for it.
    pub tool: String,
    /// The first line of its description, shortened.
    pub summary: String,
    pub state: ToolState,
    /// The hash of its description and arguments.
    pub hash: String,
}

pub(super) fn overview(
    server: &Server,
    pinned: &PinnedServer,
    problem: Option<String>,
    tools: Vec<ToolOverview>,
) -> ServerOverview {
    let settings = &server.settings;
    ServerOverview {
        id: settings.id.clone(),
        transport: settings.target.transport_name(),
        target: match &settings.target {
            ServerTarget::Program(program) => program.argv.join(" "),
            ServerTarget::Http(address) => address.url.clone(),
        },
        agent: settings.agent.clone(),
        name: pinned.name.clone(),
        title: pinned.title.clone(),
        is_pinned: !pinned.tools.is_empty() || !pinned.name.is_empty(),
        problem,
        tools,
    }
}
