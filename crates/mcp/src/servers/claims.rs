//! Which tool a name stands for. Two servers can produce the same name (`pay` with `b_login`, `pay_b` with `login`), and rules
//! and answers of the user hold for a name. So a name stays with the tool that was accepted under it, also while its server is
//! down; if that is true of two tools, none of them is offered.

use crate::names::tool_name;
use crate::pins::{PinnedServer, ToolState};
use crate::server::Server;
use std::collections::{BTreeMap, BTreeSet};

/// The names of all tools.
pub(super) struct Claims {
    /// The names of tools that are no server's.
    taken: BTreeSet<String>,
    by_name: BTreeMap<String, Vec<Claim>>,
}

/// A tool of a server that would have a name.
struct Claim {
    server: String,
    tool: String,
    is_accepted: bool,
}

impl Claims {
    /// Collects the names of the wanted tools of all configured servers.
    pub(super) fn new<'a>(
        taken: BTreeSet<String>,
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
        Self { taken, by_name }
    }

    /// Returns what else has the name of a tool, for the user; `None` if the tool can be offered under it.
    pub(super) fn conflict(&self, name: &str, server: &str, tool: &str) -> Option<String> {
        if self.taken.contains(name) {
            return Some("another".to_owned());
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
