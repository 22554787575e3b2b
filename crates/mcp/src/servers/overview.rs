//! What there is to say about servers without starting them.

use crate::pins::{PinnedServer, ToolState};
use crate::server::Server;
use crate::settings::Reach;
use lango_core::{AgentName, ToolName};

/// What there is to say about one server without starting it.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The name it has here.
    pub id: String,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// The command, or the address.
    pub target: String,
    /// The agent that is given its tools.
    pub agent: Option<AgentName>,
    /// What it called itself; empty as long as nothing is pinned.
    pub name: String,
    /// The same without its version, as it was when it was first seen.
    pub title: Option<String>,
    /// Whether its tools are pinned.
    pub is_pinned: bool,
    /// Why it cannot be used here, if it cannot.
    pub problem: Option<String>,
    /// Its tools that are offered.
    pub tools: Vec<ToolOverview>,
}

/// One tool of a server.
#[derive(Debug, Clone)]
pub struct ToolOverview {
    /// Its name here.
    pub name: ToolName,
    /// What the server calls it.
    pub tool: String,
    /// The beginning of what the server says of it.
    pub summary: String,
    /// How it stands against its pin.
    pub state: ToolState,
    /// Stands for its description and arguments.
    pub hash: String,
}

pub(super) fn overview(
    server: &Server,
    pinned: &PinnedServer,
    problem: Option<String>,
    tools: Vec<ToolOverview>,
) -> Overview {
    let settings = &server.settings;
    Overview {
        id: settings.id.clone(),
        transport: settings.reach.word(),
        target: match &settings.reach {
            Reach::Program(program) => program.argv.join(" "),
            Reach::Address(address) => address.url.clone(),
        },
        agent: settings.agent.clone(),
        name: pinned.name.clone(),
        title: pinned.title.clone(),
        is_pinned: !pinned.tools.is_empty() || !pinned.name.is_empty(),
        problem,
        tools,
    }
}
