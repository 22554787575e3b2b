//! Connects to a server for `lango mcp test`.

use crate::error::ConnectError;
use crate::names::tool_name;
use crate::pins::ToolState;
use crate::server::Server;
use crate::tool::summary;
use std::time::{Duration, Instant};

/// The result of connecting to a server.
#[derive(Debug)]
pub struct ServerProbe {
    pub id: String,
    pub took: Duration,
    pub result: Result<ProbeResult, ConnectError>,
    /// The end of the program's error output.
    pub stderr: String,
}

/// What a server reported when it was connected.
#[derive(Debug)]
pub struct ProbeResult {
    /// The protocol version.
    pub protocol: String,
    /// The server's own name and version.
    pub name: String,
    pub tools: Vec<ProbedTool>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A tool that the server listed.
#[derive(Debug)]
pub struct ProbedTool {
    /// The name that agents use.
    pub name: String,
    /// The first line of its description, shortened.
    pub summary: String,
    pub state: ToolState,
    /// Whether the configuration selects it.
    pub is_wanted: bool,
}

pub(super) async fn probe(server: &Server) -> ServerProbe {
    let started = Instant::now();
    let connected = server.connect().await;
    let took = started.elapsed();
    let (result, stderr) = match connected {
        Err(failure) => (Err(failure.error), failure.stderr),
        Ok(connected) => {
            let tools = connected.pinned.tools.iter().filter_map(|(tool, pin)| {
                Some(ProbedTool {
                    name: tool_name(&server.settings.prefix, tool),
                    summary: summary(&pin.offered()?.description),
                    state: pin.state(),
                    is_wanted: server.settings.wants(tool),
                })
            });
            let probed = ProbeResult {
                protocol: connected.info.protocol,
                name: connected.info.name,
                tools: tools.collect(),
                notes: [connected.notes, server.hints()].concat(),
            };
            (Ok(probed), server.error_output())
        }
    };
    ServerProbe {
        id: server.id().to_owned(),
        took,
        result,
        stderr,
    }
}
