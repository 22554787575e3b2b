//! Resolves conflicts between tool names. Two servers can produce the same name: prefix `pay_` with tool `b_login`, and
//! prefix `pay_b_` with tool `login`. But the user's rules and answers apply to a name, so a name stays with the tool
//! that was accepted under it, even while that tool's server is down. If two accepted tools have the same name, neither
//! is offered.

use crate::names::tool_name;
use crate::pins::{PinnedServer, ToolState};
use crate::server::Server;
use std::collections::{BTreeMap, BTreeSet};

/// The names of all tools, with the tools that claim them.
pub(super) struct Claims {
    /// The names of tools that do not belong to a server.
    reserved_names: BTreeSet<String>,
    by_name: BTreeMap<String, Vec<Claim>>,
}

/// A server's tool that claims a name.
struct Claim {
    server: String,
    tool: String,
    is_accepted: bool,
}

impl Claims {
    /// Collects the names of the wanted tools of all configured servers.
    pub(super) fn new<'a>(
        reserved_names: BTreeSet<String>,
        servers: impl Iterator<Item = (&'a Server, Option<&'a PinnedServer>)>,
    ) -> Self {
        let mut by_name: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
        for (server, known) in servers {
            let tools = known.into_iter().flat_map(|known| &known.tools);
            for (tool, pin) in tools.filter(|(tool, _)| server.settings.wants(tool)) {
                let name = tool_name(&server.settings.prefix, tool);
                by_name.entry(name).or_default().push(Claim {
                    server: server.id().to_owned(),
                    tool: tool.clone(),
                    is_accepted: pin.state() != ToolState::New,
                });
            }
        }
        Self {
            reserved_names,
            by_name,
        }
    }

    /// Describes the other tool with this name, for a warning. Returns `None` if the tool may use the name.
    pub(super) fn conflict(&self, name: &str, server: &str, tool: &str) -> Option<String> {
        if self.reserved_names.contains(name) {
            return Some("another tool".to_owned());
        }
        let claims = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let is_own = |claim: &Claim| claim.server == server && claim.tool == tool;
        let is_accepted = claims
            .iter()
            .any(|claim| is_own(claim) && claim.is_accepted);
        let mut others = claims.iter().filter(|claim| !is_own(claim));
        let other = others.find(|claim| claim.is_accepted || !is_accepted)?;
        Some(format!(
            "`{}` of the MCP server `{}`",
            other.tool, other.server
        ))
    }
}
