//! The status of MCP servers in words.

use lango_core::text::count;
use lango_mcp::{ServerOverview, ToolState};

/// Describes the status of a server without contacting it.
pub fn status(server: &ServerOverview) -> String {
    let changed = server
        .tools
        .iter()
        .filter(|tool| tool.state != ToolState::Pinned);
    let changed = changed.count();
    match (&server.problem, server.is_pinned) {
        (Some(problem), _) => problem.clone(),
        (None, false) => format!(
            "no successful connection yet; run `lango mcp test {}`",
            server.id
        ),
        (None, true) if changed > 0 => format!(
            "{}, {changed} changed; accept with `lango mcp trust {}`",
            count(server.tools.len() as u64, "tool"),
            server.id
        ),
        (None, true) => format!("{} pinned", count(server.tools.len() as u64, "tool")),
    }
}
